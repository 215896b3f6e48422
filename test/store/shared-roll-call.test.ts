import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Claim, Store, WriteRecord } from '../../src/store/store.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { entryOf, heldIn, keep } from './contract.ts';
import { PATIENT } from './engine.ts';
import { ask, claimOf, DAY_MS, later } from './records.ts';
import { type OpenedStore, type RedisWorld, redisWorld } from './redis-world.ts';

const ANSWER = { status: 201, text: '{"id":1}' };
const PEERS = 'portico:peers';

const begun = async ({ records }: Store, claim: Claim) => {
  expect(await ask(records, claim)).toBeUndefined();
  await records.begin(claim);
};

/** What a client that tries again for a while finds. */
const askPatiently = (store: Store, claim: Claim): Promise<WriteRecord | undefined> =>
  vi.waitFor(() => ask(store.records, later(claim, 1)), { timeout: 10_000, interval: 20 });

describe.skipIf(!hasRedis)(`a Redis that comes back empty${SKIPPED}`, PATIENT, () => {
  let world: RedisWorld;
  let first: OpenedStore;
  let second: OpenedStore;

  beforeEach(async () => {
    world = await redisWorld();
    [first, second] = [await world.open(), await world.open()];
    await beatsOf(2);
  });

  afterEach(() => world.close());

  const scores = async () => {
    const all = await world.redis.client.zrange(PEERS, '0', '-1', 'WITHSCORES');
    return new Map(all.flatMap((name, n) => (n % 2 === 0 ? [[name, Number(all[n + 1])]] : [])));
  };

  /** Until each of so many instances knows who was there when this was called. */
  async function beatsOf(count: number): Promise<void> {
    for (let round = 0; round < 2; round += 1) {
      const last = Math.max(0, ...(await scores()).values());
      await vi.waitFor(async () => {
        const since = [...(await scores()).values()].filter((time) => time > last);
        expect(since.length).toBeGreaterThanOrEqual(count);
      }, 3_000);
    }
  }

  const EMPTYINGS: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['emptied', () => world.redis.client.flushall()],
    ['killed and started', () => world.redis.kill().then(() => world.redis.start())],
  ];

  describe.each(EMPTYINGS)('having been %s', (_, empty) => {
    test('never has a key free again that an instance has used', async () => {
      const [answered, unknown, sent] = [claimOf(), claimOf(), claimOf()];
      for (const claim of [answered, unknown, sent]) await begun(first.store, claim);
      await first.store.records.settle(answered, ANSWER);
      await first.store.records.settle(unknown, 'unknown');
      await empty();
      const asked = [second, first].flatMap(({ store }) =>
        [answered, unknown, sent].map((claim) => askPatiently(store, claim)),
      );
      const outcomes = (await Promise.all(asked)).map((known) => known?.outcome);
      expect(outcomes).toEqual([ANSWER, 'unknown', 'under_way', ANSWER, 'unknown', 'under_way']);
    });

    test('has those free that were released', async () => {
      const claim = claimOf();
      await begun(first.store, claim);
      await first.store.records.release(claim);
      await empty();
      expect(await askPatiently(second.store, claim)).toBeUndefined();
    });

    test('lets a write that was under way come to its end', async () => {
      const claim = claimOf();
      await begun(first.store, claim);
      await empty();
      await first.store.records.settle(claim, ANSWER);
      expect(await askPatiently(second.store, claim)).toMatchObject({ outcome: ANSWER });
    });

    test('does not let a write begin whose claim it has lost', async () => {
      const claim = claimOf();
      expect(await ask(first.store.records, claim)).toBeUndefined();
      await empty();
      expect(await askPatiently(second.store, claim)).toBeUndefined();
      await expect(first.store.records.begin(claim)).rejects.toThrow('store_unavailable');
    });
  });

  test('lets a claim wait for all who were there, and none fail', async () => {
    const claims = Array.from({ length: 600 }, () => claimOf());
    for (const claim of claims) await begun(first.store, claim);
    await Promise.all(claims.map((claim) => first.store.records.settle(claim, ANSWER)));
    await world.redis.client.flushall();
    const found = await Promise.all(claims.map((claim) => ask(second.store.records, later(claim, 1))));
    expect(found.filter((known) => known?.outcome === 'unknown' || known === undefined)).toEqual([]);
    expect(await ask(second.store.records, claimOf())).toBeUndefined();
  });

  test('is not told again of a key whose day is over', async () => {
    const claim = claimOf({ now: Date.now() - DAY_MS - 1_000 });
    await begun(first.store, claim);
    await first.store.records.settle(claim, ANSWER);
    await world.redis.client.flushall();
    expect(await ask(second.store.records, later(claim, DAY_MS + 2_000))).toBeUndefined();
  });

  test('is written again each time', async () => {
    const claim = claimOf();
    await begun(first.store, claim);
    await first.store.records.settle(claim, ANSWER);
    for (let time = 0; time < 3; time += 1) {
      await world.redis.client.flushall();
      expect(await ask(second.store.records, later(claim, 1))).toMatchObject({ outcome: ANSWER });
      await beatsOf(2);
    }
  });

  /** How long it takes until a key can be had. */
  const untilFree = async () => {
    const from = performance.now();
    await askPatiently(first.store, claimOf());
    return performance.now() - from;
  };

  test('waits for an instance that died meanwhile, for about five seconds', async () => {
    await vi.waitFor(async () => expect((await scores()).size).toBe(2));
    await world.redis.client.zadd(PEERS, String(Date.now()), 'one that will have died');
    await beatsOf(2);
    await world.redis.client.flushall();
    const ms = await untilFree();
    expect(ms).toBeGreaterThan(4_000);
    expect(ms).toBeLessThan(8_000);
  });

  test('does not wait for an instance that died long before', async () => {
    await world.redis.client.zadd(PEERS, String(Date.now() - 10_000), 'one that died long before');
    await beatsOf(2);
    await world.redis.client.flushall();
    expect(await untilFree()).toBeLessThan(1_000);
  });

  test('does not wait for an instance that has left', async () => {
    await second.close();
    await beatsOf(1);
    await world.redis.client.flushall();
    expect(await untilFree()).toBeLessThan(1_000);
  });

  test('waits for an instance that was stalled when it was emptied', async () => {
    const claim = claimOf();
    await begun(first.store, claim);
    await first.store.records.settle(claim, ANSWER);
    // As if it had not been heard of for three seconds.
    const [name] = await world.redis.client.zrange(PEERS, '0', '0');
    await world.redis.client.zadd(PEERS, String(Date.now() - 3_000), name!);
    await world.redis.client.flushall();
    expect((await askPatiently(second.store, claim))?.outcome).toEqual(ANSWER);
  });

  test('gives no key out while an instance still writes again, however long that takes', async () => {
    const { client } = world.redis;
    const name = 'one with much to write';
    await client.zadd(PEERS, String(Date.now()), name);
    await beatsOf(2);
    await client.flushall();
    const saying = setInterval(() => void client.zadd('portico:writing', String(Date.now()), name), 100);
    const until = performance.now() + 6_000; // longer than anybody is waited for who says nothing
    while (performance.now() < until)
      await expect(second.store.records.claim(claimOf())).rejects.toThrow('store_unavailable');
    clearInterval(saying);
    expect(await untilFree()).toBeLessThan(4_000);
  });

  test('makes who comes new wait for a second, since that one cannot know whether others were there', async () => {
    await Promise.all([first.close(), second.close()]);
    await world.redis.client.flushall();
    first = await world.open();
    expect(await untilFree()).toBeLessThan(1_500);
    first = await world.open();
    expect(await untilFree()).toBeLessThan(200);
  });

  test('has no key free again for an instance that comes new', async () => {
    const claim = claimOf();
    await begun(first.store, claim);
    await first.store.records.settle(claim, ANSWER);
    await world.redis.client.flushall();
    const fresh = await world.open();
    expect((await askPatiently(fresh.store, claim))?.outcome).toEqual(ANSWER);
  });
});

describe.skipIf(!hasRedis)(`instances that know of each other${SKIPPED}`, PATIENT, () => {
  let world: RedisWorld;
  let first: OpenedStore;
  const place = { account: 'account', key: 'getSubuser/5?', tags: ['subusers'] };

  beforeEach(async () => {
    world = await redisWorld();
    first = await world.open();
    await keep(first.store.answers, place, entryOf('"copy"'));
  });

  afterEach(() => world.close());

  const isDoubtful = async () => (await first.store.answers.lookup(place)).isDoubtful;

  test('doubt all copies that are not fresh while one is missing that has not said that it leaves', async () => {
    expect(await isDoubtful()).toBe(false);
    await world.redis.client.zadd(PEERS, String(Date.now() - 2_000), 'one that may be cut off');
    await vi.waitFor(async () => expect(await isDoubtful()).toBe(true));
    await world.redis.client.zrem(PEERS, 'one that may be cut off');
    await vi.waitFor(async () => expect(await isDoubtful()).toBe(false));
  });

  test('miss nobody who has left', async () => {
    await (await world.open()).close();
    await vi.waitFor(async () => expect(await world.redis.client.zcard(PEERS)).toBe(1));
    expect(await isDoubtful()).toBe(false);
  });

  test('complain of one with other secrets', async () => {
    await world.open();
    expect(world.troubles).toEqual(new Set());
    await world.open(['another secret, which is long enough too']);
    await vi.waitFor(() => expect(world.troubles).toContain('OTHER_SECRETS'));
  });

  test('complain of a store that may evict, and of one that is full', async () => {
    const { client } = world.redis;
    await client.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru');
    await vi.waitFor(() => expect(world.troubles).toContain('EVICTS'));
    await client.config('SET', 'maxmemory', '1', 'maxmemory-policy', 'noeviction');
    await expect(first.store.records.claim(claimOf())).rejects.toThrow('store_unavailable');
    await vi.waitFor(() => expect(world.troubles).toContain('OOM'));
  });
});

describe.skipIf(!hasRedis)(`a Redis that comes back as it was some time ago${SKIPPED}`, PATIENT, () => {
  let world: RedisWorld;
  let first: OpenedStore;
  let second: OpenedStore;
  let snapshot: string;
  const place = { account: 'account', key: 'getSubuser/5?', tags: ['subusers'] };
  const claim = claimOf();

  beforeEach(async () => {
    world = await redisWorld();
    [first, second] = [await world.open(), await world.open()];
    await begun(first.store, claim);
    await keep(first.store.answers, place, entryOf('"old"'));
    expect(await heldIn(second.store.answers, place)).toBe('"old"');
    snapshot = await world.redis.snapshot();
  });

  afterEach(() => world.close());

  const goBack = async () => {
    await world.redis.kill();
    await world.redis.start(snapshot);
  };

  test('gives no copy from before, which may have been touched since', async () => {
    await second.store.answers.touch(place.account, place.tags);
    await goBack();
    expect(await world.redis.client.exists('portico:life')).toBe(1);
    for (const { store } of [first, second]) {
      await vi.waitFor(() => keep(store.answers, { ...place, key: 'other' }, entryOf('"new"')).then(expectKept));
      expect(await heldIn(store.answers, place)).toBeUndefined();
    }
  });

  test('knows of the writes that were settled since', async () => {
    await first.store.records.settle(claim, ANSWER);
    await goBack();
    const outcomes = [second, first].map(async ({ store }) => (await askPatiently(store, claim))?.outcome);
    expect(await Promise.all(outcomes)).toEqual([ANSWER, ANSWER]);
  });
});

const expectKept = (isKept: boolean) => expect(isKept).toBe(true);
