import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/entry/node/deps.ts';
import type { Entry } from '../../src/store/store.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { entryOf, heldIn, keep, newAccount } from './contract.ts';
import { type OpenedStore, type RedisWorld, redisWorld, SECRET } from './redis-world.ts';

const HOUR_MS = 3_600_000;

/** An entry as an instance makes it whose clock is so much ahead. */
const madeNow = (text: string, aheadMs: number): Entry => {
  const now = systemClock.now() + aheadMs;
  return entryOf(text, { askedAt: now, storedAt: now, expiresAt: now + 60_000 });
};

const placeOf = () => ({ account: newAccount(), key: 'getSubuser/5?', tags: ['subusers'] });

describe.skipIf(!hasRedis)(`instances whose clocks differ${SKIPPED}`, () => {
  let world: RedisWorld;
  let right: OpenedStore;
  let wrong: OpenedStore;
  let aheadMs = 0;

  beforeAll(async () => {
    world = await redisWorld();
    right = await world.open();
    const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
    wrong = await world.open([SECRET], () => undefined, clock);
  });

  afterAll(() => world.close());

  test('take no copy for younger than its time in the store, when its maker is ahead', async () => {
    aheadMs = HOUR_MS;
    const place = placeOf();
    await keep(wrong.store.answers, place, madeNow('"copy"', aheadMs));
    const { entry } = await right.store.answers.lookup(place);
    expect(entry?.text).toBe('"copy"');
    expect(entry?.storedAt).toBeLessThanOrEqual(systemClock.now());
  });

  test('take no copy for younger than its time in the store, when its reader is behind', async () => {
    aheadMs = -HOUR_MS;
    const place = placeOf();
    await keep(right.store.answers, place, madeNow('"copy"', 0));
    const { entry } = await wrong.store.answers.lookup(place);
    expect(entry?.storedAt).toBeLessThanOrEqual(systemClock.now() + aheadMs);
  });

  test('can replace what one made who is ahead', async () => {
    aheadMs = HOUR_MS;
    const place = placeOf();
    await keep(wrong.store.answers, place, madeNow('"old"', aheadMs));
    expect(await keep(right.store.answers, place, madeNow('"new"', 0))).toBe(true);
    expect(await heldIn(wrong.store.answers, place)).toBe('"new"');
  });
});
