import { connect, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { listenLocally } from '../support/ports.ts';
import { json, startUpstream } from '../support/scripted-upstream.ts';
import { exposition } from '../metrics/exposition.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { call } from '../support/http.ts';
import { hasRedis, SKIPPED, startRedis } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';

const READ = '/api/v2/subscription/';

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

const storeIn = async ({ adminUrl = '' }: TestGateway) => {
  const { value } = exposition((await call(adminUrl, { path: '/metrics' })).text);
  const of = (name: string) => value(`portico_store_${name}`);
  return { usable: of('usable'), givenUp: of('waits_given_up_total') };
};

test.skipIf(!hasRedis)(`a store 300 ms away is not usable, and a slow request says so${SKIPPED}`, async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.close());
  const way = await farAway(redis.port);
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  upstream.on(`GET ${READ}`, json(200, { id: 1 }));
  const env = { STORE_URL: `redis://127.0.0.1:${way.port}`, SECRETS: secret().padEnd(32, 'x'), SLOW_MS: '50' };
  const gateway = await startGateway(upstream.url, { env, admin: true }); // by the real clock
  onTestFinished(() => gateway.close());
  const ask = (token = secret()) => call(gateway.url, { path: READ, token });
  const isUsable = () => ask().then(() => storeIn(gateway));
  await expect.poll(isUsable).toMatchObject({ usable: 1 });
  const before = (await storeIn(gateway)).givenUp;
  way.by(300);
  const linesBefore = gateway.lines.length;
  const token = secret();
  for (let times = 0; times < 2; times++) expect((await ask(token)).headers['cache-status']).toBe('portico; fwd=miss');
  const { usable, givenUp } = await storeIn(gateway);
  expect(usable).toBe(0);
  expect(givenUp).toBeGreaterThan(before);
  const waits = gateway.lines
    .slice(linesBefore)
    .flatMap(({ legs = [] }) => legs.map(({ phases }) => phases.store ?? 0));
  expect(Math.max(...waits)).toBeGreaterThan(100);
  way.by(0);
  await expect.poll(isUsable, { timeout: 10_000 }).toMatchObject({ usable: 1 });
});
