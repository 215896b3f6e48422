import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Place, Store } from '../../src/store/store.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { PATIENT } from './engine.ts';
import { entryOf, heldIn, keep, newAccount, placeIn } from './contract.ts';
import { ask, claimOf, later, WITHHELD } from './records.ts';
import { type RedisWorld, redisWorld } from './redis-world.ts';
import { arrivalOf } from './visits.ts';

/** 200 ms are promised; the rest is for a machine that is busy with other tests. */
const PROMPT_MS = 400;

const inTime = async <T>(act: () => T): Promise<Awaited<T>> => {
  const begun = performance.now();
  const result = await act();
  expect(performance.now() - begun).toBeLessThan(PROMPT_MS);
  return result;
};

describe.skipIf(!hasRedis)(`the connection to Redis${SKIPPED}`, PATIENT, () => {
  let world: RedisWorld;
  let store: Store;
  let place: Place;

  beforeEach(async () => {
    world = await redisWorld();
    ({ store } = await world.open());
    place = placeIn(newAccount());
  });

  afterEach(async () => {
    world.redis.signal('SIGCONT');
    await world.close();
  });

  /** Until the store keeps something again. */
  const thereAgain = () =>
    vi.waitFor(async () => expect(await keep(store.answers, placeIn(newAccount()), entryOf('1'))).toBe(true), 5_000);

  const expectNothing = async () => {
    for (let n = 0; n < 3; n += 1) {
      const { known } = await inTime(() => store.visit(arrivalOf(place.account, [place])));
      expect((await inTime(async () => known.lookup(place))).entry).toBeUndefined();
      expect(await inTime(() => heldIn(store.answers, place))).toBeUndefined();
    }
  };

  test('that is refused lets reads go on and writes with a key not, until there is one', async () => {
    await world.redis.kill();
    const changes: boolean[] = [];
    const opened = await world.open(undefined, (isThere) => changes.push(isThere));
    ({ store } = opened);
    await expectNothing();
    await expect(store.records.claim(claimOf())).rejects.toMatchObject(WITHHELD);
    expect(changes).toEqual([false]);
    await world.redis.start();
    await thereAgain();
    expect(await ask(store.records, claimOf())).toBeUndefined();
    expect(changes).toEqual([false, true]);
  });

  test('that breaks while something is asked fails that, at once', async () => {
    await keep(store.answers, place, entryOf('"before"'));
    world.redis.signal('SIGSTOP');
    const reading = store.answers.lookup(place);
    const claiming = expect(store.records.claim(claimOf())).rejects.toMatchObject(WITHHELD);
    await world.redis.kill();
    expect((await inTime(() => reading)).entry).toBeUndefined();
    await claiming;
    await expectNothing();
  });

  test('to one that comes back empty finds no copy from before, and saves none', async () => {
    await keep(store.answers, place, entryOf('"before"'));
    const { versions } = await store.answers.lookup(place);
    await world.redis.kill();
    await expectNothing();
    await world.redis.start();
    await thereAgain();
    expect(await heldIn(store.answers, place)).toBeUndefined();
    expect(await store.answers.save(place, entryOf('"late"'), versions)).toBe(false);
    expect(await heldIn(store.answers, place)).toBeUndefined();
    expect(await keep(store.answers, place, entryOf('"after"'))).toBe(true);
  });

  test('to one that was emptied finds no copy from before, and saves none', async () => {
    await keep(store.answers, place, entryOf('"before"'));
    const { versions } = await store.answers.lookup(place);
    await world.redis.client.flushall();
    expect(await heldIn(store.answers, place)).toBeUndefined();
    expect(await store.answers.save(place, entryOf('"late"'), versions)).toBe(false);
    expect(await keep(store.answers, place, entryOf('"after"'))).toBe(true);
  });

  test('to one that hangs lets each read go on in time, and finds all again afterwards', async () => {
    await keep(store.answers, place, entryOf('"kept"'));
    world.redis.signal('SIGSTOP');
    await expectNothing();
    await expect(inTime(async () => store.records.claim(claimOf()))).rejects.toMatchObject(WITHHELD);
    world.redis.signal('SIGCONT');
    await vi.waitFor(async () => expect(await heldIn(store.answers, place)).toBe('"kept"'), 5_000);
  });

  test('to one that hangs keeps what was touched meanwhile, and tells it first', async () => {
    const { store: other } = await world.open();
    await keep(store.answers, place, entryOf('"before"'));
    world.redis.signal('SIGSTOP');
    await store.answers.touch(place.account, ['subusers/5']);
    await expectNothing();
    world.redis.signal('SIGCONT');
    await vi.waitFor(async () => expect(await heldIn(other.answers, place)).toBeUndefined(), 5_000);
    await thereAgain();
    expect(await heldIn(store.answers, place)).toBeUndefined();
  });

  test('to one that fills keeps no more copies, and all else', async () => {
    const { client } = world.redis;
    const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
    await client.config('SET', 'maxmemory', String(Math.round(used * 1.2)));
    await vi.waitFor(async () => expect(await keep(store.answers, place, entryOf('"copy"'))).toBe(false), 3_000);
    const claim = claimOf();
    expect(await ask(store.records, claim)).toBeUndefined();
    await store.records.begin(claim);
    await client.config('SET', 'maxmemory', '0');
    await vi.waitFor(async () => expect(await keep(store.answers, place, entryOf('"copy"'))).toBe(true), 3_000);
  });

  test('to one that is full keeps what was touched, and tells it unasked once there is room', async () => {
    const { store: other } = await world.open();
    await keep(other.answers, place, entryOf('"before"'));
    await world.redis.client.config('SET', 'maxmemory', '1');
    await store.answers.touch(place.account, ['subusers/5']);
    expect(await heldIn(store.answers, place)).toBeUndefined();
    await expect(store.records.claim(claimOf())).rejects.toMatchObject(WITHHELD);
    await world.redis.client.config('SET', 'maxmemory', '0');
    await vi.waitFor(async () => {
      expect(await keep(other.answers, placeIn(newAccount()), entryOf('"room"'))).toBe(true);
      expect(await heldIn(other.answers, place)).toBeUndefined();
    }, 5_000);
  });

  test('to one that hung during a claim does not leave its key taken for long', async () => {
    const claim = claimOf();
    world.redis.signal('SIGSTOP');
    await expect(store.records.claim(claim)).rejects.toMatchObject(WITHHELD);
    world.redis.signal('SIGCONT');
    await thereAgain();
    await world.redis.pass(20_000);
    expect(await ask(store.records, later(claim, 20_000))).toBeUndefined();
  });

  test('that is cut is made anew', async () => {
    await keep(store.answers, place, entryOf('"kept"'));
    await world.redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await vi.waitFor(async () => expect(await heldIn(store.answers, place)).toBe('"kept"'), 5_000);
  });

  test('to one that has forgotten the scripts gives it them again', async () => {
    await keep(store.answers, place, entryOf('"kept"'));
    await world.redis.client.script('FLUSH');
    expect(await heldIn(store.answers, place)).toBe('"kept"');
    for (let n = 0; n < 3; n += 1) {
      await world.redis.client.script('FLUSH');
      expect(await ask(store.records, claimOf())).toBeUndefined();
    }
  });
});
