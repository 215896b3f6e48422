import { connect, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { listenLocally } from '../../src/testing/ports.ts';
import { exposition } from '../metrics/exposition.ts';
import { call } from '../support/http.ts';
import { hasRedis, SKIPPED, startRedis } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { openWorld, type World } from '../support/world.ts';

const READ = 'getSubscription';

/** A way to a server on which each answer takes so long. */
async function farAway(port: number) {
  let ms = 0;
  const server = createServer({ noDelay: true }, (from) => {
    const to = connect({ port, host: '127.0.0.1', noDelay: true });
    for (const socket of [from, to]) socket.on('error', () => undefined);
    from.pipe(to);
    to.on('data', (chunk) => void setTimeout(() => from.write(chunk), ms));
    to.once('close', () => from.destroy());
  });
  const at = await listenLocally(server);
  onTestFinished(() => void server.close());
  return { port: at, by: (more: number) => void (ms = more) };
}

const storeIn = async ({ gateway }: World) => {
  const { value } = exposition((await call(gateway.adminUrl ?? '', { path: '/metrics' })).text);
  const of = (name: string) => value(`portico_store_${name}`);
  return { up: of('up'), usable: of('usable'), givenUp: of('waits_given_up_total') };
};

test.skipIf(!hasRedis)(
  `a store whose answers come too late is not usable, and a slow request says so${SKIPPED}`,
  async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.close());
    const way = await farAway(redis.port);
    const env = { STORE_URL: `redis://127.0.0.1:${way.port}`, SECRETS: secret().padEnd(32, 'x'), SLOW_MS: '50' };
    const world = await openWorld(env, { hasAdmin: true });
    world.answerAll();
    await expect.poll(() => storeIn(world)).toMatchObject({ up: 1, usable: 1, givenUp: 0 });
    way.by(300);
    for (let times = 0; times < 2; times++)
      expect((await world.ask(READ)).headers['cache-status']).toBe('portico; fwd=miss');
    const { usable, givenUp } = await storeIn(world);
    expect(usable).toBe(0);
    expect(givenUp).toBeGreaterThan(0);
    const [line] = world.gateway.lines.filter(({ msg }) => msg === 'request');
    expect(line?.legs?.[0]?.phases.store).toBeGreaterThan(50);
    way.by(0);
    const isUsable = async () => {
      await world.ask(READ, { token: secret() });
      return storeIn(world);
    };
    await expect.poll(isUsable).toMatchObject({ up: 1, usable: 1 });
  },
);
