import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ask, buyOnce, fleetOfFile, newOrder, UNAVAILABLE } from './fleet.ts';
import { exposition } from '../metrics/exposition.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { exampleInput } from '../support/examples.ts';
import { call } from '../support/http.ts';
import { startCluster, type TestCluster } from '../support/cluster.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import type { Env } from '../support/world.ts';
import { freePort } from '../support/ports.ts';

/** What is promised, and something for a busy machine. */
const MOST_MS = 2_000 + 1_000;

const paths = ['/bff/v1/account-overview', exampleInput('getSubscription').path];

const etagAt = async (at: NodeGateway, path: string, token: string) =>
  (await call(at.url, { path, token })).headers['etag'] ?? '';

const gauge = async (at: NodeGateway, name: string) =>
  exposition((await call(at.adminUrl, { path: '/metrics' })).text).value(name);

/** Comes back once it waits, and is not under way any more. */
const begin = async (at: NodeGateway, path: string, token: string) => {
  const headers = { 'If-None-Match': await etagAt(at, path, token), Prefer: 'wait=20' };
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
    const from = performance.now();
    const { status, headers } = await answer;
    expect([status, headers['preference-applied']]).toEqual([200, 'wait=20']);
    expect(performance.now() - from).toBeLessThan(MOST_MS);
    expect(headers['etag']).toBe(await etagAt(a, path, order.token));
  });

  test.each(paths)('for %s ends when the other is killed after its answer', async (path) => {
    const other = await start();
    const order = newOrder();
    const { answer } = await begin(b, path, order.token);
    await buyOnce(other, order);
    other.signal('SIGKILL');
    const from = performance.now();
    expect((await answer).status).toBe(200);
    expect(performance.now() - from).toBeLessThan(MOST_MS);
  });

  test('does not end for a write of another account', async () => {
    const token = secret();
    const path = exampleInput('getSubscription').path;
    const headers = { 'If-None-Match': await etagAt(b, path, token), Prefer: 'wait=2' };
    const answer = call(b.url, { path, token, headers });
    await buyOnce(a, newOrder());
    expect((await answer).status).toBe(304);
  });

  test('ends by SIGTERM with its 304, and the process ends', async () => {
    const other = await start({ SHUTDOWN_GRACE_MS: '8000' });
    const token = secret();
    const { answer } = await begin(other, paths[0]!, token);
    const from = performance.now();
    other.signal('SIGTERM');
    const { status, headers } = await answer;
    expect([status, headers['preference-applied']]).toEqual([304, 'wait=20']);
    await other.exited;
    expect(performance.now() - from).toBeLessThan(6_000);
  });

  test('of a write on the same instance ends too', async () => {
    const token = secret();
    const { answer } = await begin(a, paths[0]!, token);
    await ask(a, 'purchasePlan', { token });
    expect((await answer).status).toBe(200);
  });
});

describe.skipIf(!hasRedis)(`a wait on one instance over a Redis Cluster${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  let cluster: TestCluster;
  let [a, b]: NodeGateway[] = [];

  beforeAll(async () => {
    cluster = await startCluster();
    const env = { STORE_URL: cluster.url, REQUEST_TIMEOUT_MS: '2000', UPSTREAM_TIMEOUT_MS: '2000' };
    const start = async () => fleet().start({ ADMIN_PORT: String(await freePort()), ...env });
    [a, b] = await Promise.all([start(), start()]);
    const sells = async () => expect(await buyOnce(a!, newOrder())).not.toBe(UNAVAILABLE);
    await vi.waitFor(sells, { timeout: 40_000, interval: 500 }); // not at once over a store that was just started
  }, 80_000);
  afterAll(() => cluster.close(), 30_000);

  test.each(paths)('for %s ends when a write on the other is over', async (path) => {
    const order = newOrder();
    const { answer } = await begin(b!, path, order.token);
    await buyOnce(a!, order);
    const from = performance.now();
    const { status, headers } = await answer;
    expect([status, headers['preference-applied']]).toEqual([200, 'wait=20']);
    expect(performance.now() - from).toBeLessThan(MOST_MS);
    expect(headers['etag']).toBe(await etagAt(a!, path, order.token));
  });
});
