import { beforeAll, describe, expect, test } from 'vitest';
import { buyOnce, fleetOfFile, newOrder } from './fleet.ts';
import { exposition } from '../metrics/exposition.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { exampleInput } from '../support/examples.ts';
import { call } from '../support/http.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import type { Env } from '../support/world.ts';
import { freePort } from '../support/ports.ts';

const paths = ['/bff/v1/account-overview', exampleInput('getSubscription').path];

const etagAt = async (at: NodeGateway, path: string, token: string) =>
  (await call(at.url, { path, token })).headers['etag'] ?? '';

const gauge = async (at: NodeGateway, name: string) =>
  exposition((await call(at.adminUrl, { path: '/metrics' })).text).value(name);

/** Comes back once it waits, and is not under way any more. */
const begin = async (at: NodeGateway, path: string, token: string) => {
  const headers = { 'If-None-Match': await etagAt(at, path, token), Prefer: 'wait=30' };
  const answer = call(at.url, { path, token, headers });
  const counts = () =>
    Promise.all(['portico_waiting_requests', 'portico_requests_under_way'].map((name) => gauge(at, name)));
  await expect.poll(counts, { timeout: 5_000 }).toEqual([1, 0]);
  return { answer };
};

describe.skipIf(!hasRedis)(`a wait on one instance${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  let a: NodeGateway;
  let b: NodeGateway;

  beforeAll(async () => {
    [a, b] = await Promise.all([start(), start()]);
  }, 30_000);

  const start = async (env: Env = {}) => fleet().start({ ADMIN_PORT: String(await freePort()), ...env });

  test.each(paths)('for %s ends when a write on the other is over', async (path) => {
    const order = newOrder();
    const { answer } = await begin(b, path, order.token);
    await buyOnce(a, order);
    const { status, headers } = await answer;
    expect([status, headers['preference-applied']]).toEqual([200, 'wait=30']);
    expect(headers['etag']).toBe(await etagAt(a, path, order.token));
  });

  test('ends by SIGTERM with its 304, and the process ends', async () => {
    const other = await start();
    const { answer } = await begin(other, paths[0]!, secret());
    other.signal('SIGTERM');
    const { status, headers } = await answer;
    expect([status, headers['preference-applied']]).toEqual([304, 'wait=30']);
    await other.exited;
  });
});
