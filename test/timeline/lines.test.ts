import { describe, expect, test } from 'vitest';
import { parseConfig } from '../../src/config.ts';
import { nodeDigest } from '../../src/entry/node/digest.ts';
import { webDigest } from '../../src/entry/worker/deps.ts';
import { json } from '../support/scripted-upstream.ts';
import { accountTables } from '../support/account-api.ts';
import { callOf } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';
import { openWorld, type World } from '../support/world.ts';

const READ = 'getSubscription';

const statusesOf = ({ gateway }: World) =>
  gateway.lines.filter(({ msg }) => msg === 'request').map(({ status }) => status);

/** A good answer, one of a client that does wrong, one that fails. */
async function askAll(world: World): Promise<void> {
  world.answerAll();
  await world.ask(READ);
  await world.call({ path: '/nothing' });
  world.upstream.on(callOf(READ), json(500, {}));
  await world.ask(READ, { token: secret() });
}

describe('LOG_REQUESTS', () => {
  test.each([
    [undefined, [200, 404, 502]],
    ['all', [200, 404, 502]],
    ['errors', [404, 502]],
    ['failures', [502]],
    ['0', [502]],
    ['1', [200, 404, 502]],
  ])('%s', async (value, statuses) => {
    const world = await openWorld(value === undefined ? {} : { LOG_REQUESTS: value });
    await askAll(world);
    expect(statusesOf(world)).toEqual(statuses);
  });

  test.each(['toString', '__proto__', 'ALL', '1.5', '-0.1', '1e-3'])('%s is refused', (value) => {
    expect(parseConfig({ UPSTREAM_BASE_URL: 'http://a.test', LOG_REQUESTS: value }, accountTables.table)).toMatchObject(
      {
        problems: [{ variable: 'LOG_REQUESTS' }],
      },
    );
  });

  test('a share of all, and every failure', async () => {
    const world = await openWorld({ LOG_REQUESTS: '0.5' });
    world.answerAll();
    for (let times = 0; times < 200; times++) await world.ask(READ);
    expect(statusesOf(world).length).toBeGreaterThan(50);
    expect(statusesOf(world).length).toBeLessThan(150);
  });
});

describe('the line of a request', () => {
  test('is an error where it fails, and else is not', async () => {
    const world = await openWorld();
    await askAll(world);
    const lines = world.gateway.lines.filter(({ msg }) => msg === 'request');
    expect(lines.map(({ level }) => level)).toEqual(['info', 'info', 'error']);
  });

  test('has the hash of the client’s address, the same for all its requests and another for others', async () => {
    const world = await openWorld({ TRUSTED_PROXIES: '127.0.0.1' });
    world.answerAll();
    for (const address of ['192.0.2.7', '192.0.2.7', '192.0.2.8'])
      await world.ask(READ, { headers: { 'X-Forwarded-For': address } });
    const [one, again, other] = world.gateway.lines.map(({ client }) => client);
    expect(one).toMatch(/^[\w-]{16}$/);
    expect(again).toBe(one);
    expect(other).not.toBe(one);
    expect(JSON.stringify(world.gateway.lines)).not.toContain('192.0.2');
  });

  test('has a hash that is the same in all processes with the same SECRETS, and no account’s', async () => {
    const secrets = [secret().padEnd(32, 'x')];
    const made = [nodeDigest(secrets, 'http://a.test'), nodeDigest(secrets, 'http://a.test')];
    const [one, again] = made.map((digest) => digest.address('192.0.2.7'));
    expect(one).toBe(again);
    expect(await webDigest(secrets, 'http://a.test').address('192.0.2.7')).toMatch(/^[\w-]{16}$/);
    expect(made[0]?.account('192.0.2.7')).not.toContain(one);
    expect(nodeDigest([], 'http://a.test').address('192.0.2.7')).not.toBe(one);
  });

  test('is there for neither probes nor scrapes', async () => {
    const world = await openWorld({}, { hasAdmin: true });
    for (const path of ['/livez', '/readyz']) expect((await world.call({ path })).status).toBe(200);
    for (const path of ['/livez', '/readyz', '/metrics']) expect((await world.admin({ path })).status).toBe(200);
    expect(world.gateway.lines).toEqual([]);
    expect((await world.call({ path: '/%6civez' })).status).toBe(404); // which only a router takes for one
    expect(world.gateway.lines).toMatchObject([{ status: 404, code: 'unknown_endpoint' }]);
  });
});
