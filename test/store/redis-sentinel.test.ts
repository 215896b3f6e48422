import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { startSentinel, type TestSentinel } from '../support/sentinel.ts';
import { asker } from './engine-asker.ts';
import { engineContract } from './engine-contract.ts';
import { Instances, LONG_WINDOW_MS, passWindow, ready, WINDOW_MS } from './engine-world.ts';

describe.skipIf(!hasRedis)(`Sentinel${SKIPPED}`, () => {
  let sentinel: TestSentinel;
  const instances = new Instances();

  beforeAll(async () => {
    sentinel = await startSentinel();
  });
  afterAll(async () => {
    instances.close();
    await sentinel.close();
  });

  engineContract('keeps the contract of the engine', async () => {
    const one = await instances.open(sentinel.url);
    await ready(one);
    await sentinel.primary.pass(WINDOW_MS);
    return { engine: one.engine, pass: (ms) => sentinel.primary.pass(ms), slackMs: 3_000 };
  });

  it('leads to the replica when the primary is gone, which is another store', async () => {
    instances.close(); // one that comes later from the store before begins the window anew
    const one = await instances.open(sentinel.url, LONG_WINDOW_MS);
    await ready(one);
    await passWindow(sentinel.primary, LONG_WINDOW_MS);
    const its = asker(one.engine, 'account');
    const known = await its.keep('kept');
    await its.begin({ nonce: 'n', tags: ['u'], purchase: 'bought', markMs: 3 * LONG_WINDOW_MS });
    expect(await sentinel.primary.client.call('WAIT', '1', '0')).toBe(1);
    await sentinel.primary.kill();
    await sentinel.promote();
    const isAnother = async () => {
      expect((await its.snapshot()).reply).toBeUndefined();
      expect(await its.save(known)).toBe('void');
      expect((await its.begin({ purchase: 'p' })).is).toBe('another_store');
      expect((await its.begin({ purchase: 'bought' })).is).toBe('equal');
    };
    // The connection goes once more when the sentinel says who the primary is.
    await vi.waitFor(isAnother, { timeout: 45_000, interval: 20 });
    await sentinel.replica.pass(LONG_WINDOW_MS);
    const after = await vi.waitFor(() => its.look(), { timeout: 45_000, interval: 20 });
    expect([after.copy, after.version === known.version]).toEqual([undefined, false]);
    expect((await its.snapshot({ tags: ['u'] })).reply).toBeUndefined();
    expect(one.changes.slice(0, 2)).toEqual([false, true]);
  });
});
