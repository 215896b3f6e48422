import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openShelf } from '../store/redis.ts';
import { testClock } from '../support/clock.ts';
import { says } from '../support/contract.ts';
import { openGateway } from '../support/gateway.ts';
import { freePort } from '../support/ports.ts';
import { hasRedis, relyOn, SKIPPED } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { Upstream } from '../support/upstream.ts';
import { startSentinel, type TestSentinel } from '../support/sentinel.ts';

const newOrder = () => ({ token: secret(), key: secret() });

describe.skipIf(!hasRedis)(`Sentinel${SKIPPED}`, () => {
  let sentinel: TestSentinel;
  const closing: (() => void)[] = [];

  beforeAll(async () => {
    sentinel = await startSentinel();
    await relyOn(sentinel.primary);
  });
  afterEach(() => {
    for (const close of closing.splice(0)) close();
  });
  afterAll(() => sentinel.close());

  const open = async (url = sentinel.url, options?: Parameters<typeof openShelf>[1]) => {
    const one = await openShelf(url, options);
    closing.push(one.close);
    return one;
  };

  test('is found through those of several sentinels that answer', async () => {
    const one = await open(sentinel.url.replace('@', `@127.0.0.1:${await freePort()},`));
    expect(one.shelf.isThere).toBe(true);
  });

  test('is not there where no sentinel knows the name', async () => {
    const { shelf, troubles } = await open(`${sentinel.url}-other`);
    expect([[...troubles], shelf.isThere]).toEqual([['NO_SENTINEL'], false]);
  });

  test(says('Sentinel needs `min-replicas-to-write` of 1 or more, `min-replicas-max-lag` of 2 or less'), async () => {
    const first = await open();
    await first.until(() => first.troubles.has('NOT_PERSISTENT'));
    expect([...first.troubles]).toEqual(['NOT_PERSISTENT', 'FEW_MIN_REPLICAS', 'LAG']);
    await sentinel.client.call('SENTINEL', 'SET', 'portico', 'down-after-milliseconds', '4999');
    const second = await open();
    await second.until(() => second.troubles.has('DOWN_AFTER'));
    await sentinel.client.call('SENTINEL', 'SET', 'portico', 'down-after-milliseconds', '3600000');
  });

  test('gets the login of the address where it asks for one, and says what is wrong where it gets none', async () => {
    await sentinel.askForLogin();
    expect((await open()).shelf.isThere).toBe(true);
    expect([...(await open(sentinel.url.replace('p%40ss', 'other'))).troubles]).toEqual(['WRONGPASS']);
    expect([...(await open(sentinel.url.replace(/\/\/.*@/, '//'))).troubles]).toEqual(['NOAUTH']);
  });

  test('leads to the replica when the primary is gone: what it has is replayed, and nothing new is bought', async () => {
    const upstream = new Upstream();
    const clock = testClock();
    const env = { STORE_URL: sentinel.url, SECRETS: 'for-development-only-and-known-to-all' };
    const gateway = openGateway(env, { upstream, clock });
    const said = async (words: string) => {
      while (gateway.lines.at(-1)?.msg !== words) await clock.pass(1);
    };
    const [known, next] = [newOrder(), newOrder()];
    // It is connecting.
    while ((await gateway.ask('purchasePlan', known)).status !== 200) await clock.pass(0);
    expect(await sentinel.primary.client.wait(1, 0)).toBe(1);
    await sentinel.primary.kill();
    await said('the store does not answer');
    expect((await gateway.ask('purchasePlan', next)).code).toBe('store_unavailable');
    await sentinel.promote();
    await said('the store answers again');
    expect((await gateway.ask('purchasePlan', known)).headers.get('Idempotency-Replayed')).toBe('true');
    expect((await gateway.ask('purchasePlan', next)).code).toBe('store_unavailable');
    expect(upstream.callsTo('purchasePlan')).toHaveLength(1);
  });
});
