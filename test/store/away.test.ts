import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { CacheKey, Found, NewWrite, SessionId, Snapshot, Store } from '../../src/store/port.ts';
import { barrier } from '../support/barrier.ts';
import { type ManualClock, manualClock } from '../support/clock.ts';
import { NOTE_MS, sharedStores } from '../support/stores.ts';
import { find, heldIn, keyIn, newAccount } from './contract.ts';
import { ANSWER, writeOf } from './writes.ts';

const waitUntil = () => undefined;
const never = () => new Promise<never>(() => {});

/** All that waits for no clock is done. */
const settle = () => setImmediate();

/** Lets time pass in parts, since what waits may wait again. */
const pass = async (clock: ManualClock, ms: number, part = 50) => {
  await settle();
  for (let passed = 0; passed < ms; passed += part) {
    clock.advance(Math.min(part, ms - passed));
    await settle();
  }
};

/** What has come of it so far. */
function watched<T>(promise: Promise<T>) {
  const seen: { value?: T } = {};
  void promise.then((value) => (seen.value = value));
  return seen;
}

function openWorld() {
  const clock = manualClock();
  const stores = sharedStores(clock);
  const entryOf = (text: string) => ({ text, links: [], etag: '', storedAt: clock.now(), validators: {} });
  const save = async (store: Store, key: CacheKey, found: Found, text: string) => {
    const snapshot = await store.snapshot({ account: key.account, window: undefined, keys: [key], waitUntil });
    return snapshot.save(key, found, { entry: entryOf(text) });
  };
  const keep = async (store: Store, key: CacheKey, text: string) => {
    const saved = await save(store, key, await find(store, key), text);
    await settle();
    return saved;
  };
  const begin = (store: Store, changes: Partial<NewWrite>) => {
    const write = writeOf({ now: clock.now(), ...changes });
    return { write, beginning: store.beginWrite(write) };
  };
  return { clock, ...stores, keep, save, begin };
}

const request = async (store: Store, keys: readonly CacheKey[]): Promise<Snapshot> =>
  store.snapshot({ account: keys[0]!.account, window: undefined, keys, waitUntil });

const REFUSED = { refusal: { code: 'store_unavailable' } };

describe('what a shared store is asked', () => {
  test('for all that a request reads is one question', async () => {
    const { store, shelf } = openWorld();
    const account = newAccount();
    const keys = ['a', 'b', 'c'].map((name) => keyIn(account, name));
    const snapshot = await request(store, keys);
    for (const key of keys) await snapshot.lookup(key);
    expect(shelf.calls).toEqual(['read']);
  });

  test('for what is never cached is nothing, and nobody joins it', async () => {
    const { store, shelf } = openWorld();
    const key = { ...keyIn(newAccount()), freshMs: 0, lifeMs: 0 };
    const all = [await find(store, key), await find(store, key)];
    expect(shelf.calls).toEqual([]);
    expect(new Set(all.map(({ version }) => version)).size).toBe(2);
  });

  test('of what this instance has itself is nothing', async () => {
    const { store, other, shelf, keep } = openWorld();
    const key = keyIn(newAccount());
    await keep(store, key, '"copy"');
    const asked = shelf.calls.length;
    expect([store.copyOf(key)?.text, other.copyOf(key)?.text]).toEqual(['"copy"', undefined]);
    expect(shelf.calls).toHaveLength(asked);
  });

  test('of a limit is one for the first request of a minute, then an eighth of what is left', async () => {
    const { store, shelf } = openWorld();
    const asking = { account: newAccount(), window: { name: 'requests', lengthMs: 60_000, limit: 81 }, waitUntil };
    const asked: number[] = [];
    for (let n = 1; n <= 20; n++) {
      const { use } = await store.snapshot(asking);
      expect(use?.used).toBe(n);
      asked.push(shelf.times('count'));
    }
    expect(asked).toEqual([1, ...Array.from({ length: 10 }, () => 2), ...Array.from({ length: 8 }, () => 3), 4]);
  });
});

describe('while the store does not answer', () => {
  test('a read waits less than 200 ms, once, and goes on without it', async () => {
    const { store, shelf, clock, keep } = openWorld();
    const key = keyIn(newAccount());
    await keep(store, key, '"copy"');
    shelf.before = never;
    const found = watched(find(store, key));
    await pass(clock, 150);
    expect(found.value).toBeUndefined();
    await pass(clock, 49, 1);
    expect(found.value).toMatchObject({ isHidden: true, entry: undefined });
  });

  test('nobody joins a read', async () => {
    const { store, shelf } = openWorld();
    const key = keyIn(newAccount());
    shelf.isAway = true;
    const [one, other] = [await find(store, key), await find(store, key)];
    expect([one.isHidden, other.isHidden]).toEqual([true, true]);
    expect(one.version).not.toBe(other.version);
  });

  test('limits are counted on from what this instance knows', async () => {
    const { store, shelf, clock } = openWorld();
    const asking = { account: newAccount(), window: { name: 'requests', lengthMs: 60_000, limit: 4 }, waitUntil };
    const used = async () => (await store.snapshot(asking)).use?.used;
    await used();
    shelf.isAway = true;
    expect([await used(), await used(), await used(), await used()]).toEqual([2, 3, 4, 5]);
    clock.advance(60_000);
    expect(await used()).toBe(1);
  });

  test('a write is refused within a second, and does nothing later', async () => {
    const { store, other, shelf, clock, keep, begin } = openWorld();
    const key = keyIn(newAccount());
    await keep(other, key, '"copy"');
    const gate = barrier();
    shelf.before = (call) => (call === 'swap' ? gate.arrive() : undefined);
    const { beginning } = begin(store, { account: key.account, key: 'key' });
    const begun = watched(beginning);
    await pass(clock, 750);
    expect(begun.value).toBeUndefined();
    await pass(clock, 250);
    expect(begun.value).toMatchObject(REFUSED);
    gate.release();
    await pass(clock, 500);
    expect(store.pending).toBe(0);
    expect(await heldIn(other, key)).toBe('"copy"');
    expect(await begin(other, { account: key.account, key: 'key' }).beginning).toEqual({ use: undefined });
  });

  test('a write that was given up before its turn never was', async () => {
    const { store, other, shelf, clock, begin } = openWorld();
    const account = newAccount();
    const gate = barrier();
    shelf.before = (call) => (call === 'swap' ? gate.arrive() : undefined);
    const all = ['first', 'second', 'third'].map((key) => begin(store, { account, key }).beginning);
    await pass(clock, 1_000);
    for (const begun of await Promise.all(all)) expect(begun).toMatchObject(REFUSED);
    expect([store.pending, shelf.times('swap')]).toEqual([0, 1]);
    gate.release();
    await pass(clock, 500);
    expect([store.pending, shelf.times('swap')]).toEqual([0, 2]);
    const again = await Promise.all(['first', 'second'].map((key) => begin(other, { account, key }).beginning));
    expect(again).toEqual([{ use: undefined }, { use: undefined }]);
  });

  test('of many writes with one key that wait for their turn, one reads for all what prevents them', async () => {
    const { store, shelf, clock, begin } = openWorld();
    const account = newAccount();
    const all = Array.from({ length: 30 }, () => begin(store, { account, key: 'key' }).beginning);
    await pass(clock, 100);
    const outcomes = (await Promise.all(all)).map(({ record }) => record?.outcome);
    expect(outcomes).toEqual([undefined, ...Array.from({ length: 29 }, () => 'under_way')]);
    expect([shelf.times('read'), shelf.times('swap')]).toEqual([2, 1]);
  });

  test('a write that never comes to an end does not hold up its account for good', async () => {
    const { clock, store, shelf, begin } = openWorld();
    const account = newAccount();
    shelf.before = (method) => (method === 'swap' ? never() : undefined);
    const refused = watched(begin(store, { account }).beginning);
    await pass(clock, 1_000);
    expect(refused.value).toMatchObject(REFUSED);
    shelf.before = () => undefined;
    await pass(clock, 10_000);
    expect(await begin(store, { account }).beginning).toEqual({ use: undefined });
  });

  test('a write that was given up while its note was read does not begin later', async () => {
    const { clock, store, shelf, begin } = openWorld();
    const [account, key] = [newAccount(), 'key'];
    const late = barrier();
    shelf.after = (method) => (method === 'read' ? late.arrive() : undefined);
    const refused = watched(begin(store, { account, key }).beginning);
    await pass(clock, 1_000);
    expect(refused.value).toMatchObject(REFUSED);
    shelf.after = () => undefined;
    const before = shelf.calls.length;
    late.release();
    await pass(clock, 1_000);
    expect(shelf.calls.slice(before)).toEqual([]);
    expect(await store.outcomeOf({ account, key, window: undefined, session: undefined, waitUntil })).toEqual({
      use: undefined,
    });
  });

  test('a question after a key is refused', async () => {
    const { store, shelf } = openWorld();
    shelf.isAway = true;
    const asking = { account: newAccount(), window: undefined, key: 'key', waitUntil };
    expect(await store.outcomeOf(asking)).toMatchObject(REFUSED);
    expect(store.pending).toBe(0);
  });
});

describe('the end of a write', () => {
  test('is waited for 200 ms, and told until the store knows it', async () => {
    const { store, other, shelf, clock, begin } = openWorld();
    const key = keyIn(newAccount());
    const { write, beginning } = begin(store, { account: key.account, tags: key.tags });
    await beginning;
    shelf.isAway = true;
    const isEnded = watched(store.endWrite(write, ANSWER).then(() => true));
    await pass(clock, 150);
    expect(isEnded.value).toBeUndefined();
    await pass(clock, 50);
    expect(isEnded.value).toBe(true);
    expect([(await find(other, key)).isHidden, store.pending]).toEqual([true, 1]);
    shelf.isAway = false;
    await pass(clock, 2_000);
    expect([(await find(other, key)).isHidden, store.pending]).toEqual([undefined, 0]);
  });

  test('is told no longer than its mark stands', async () => {
    const { store, shelf, clock, begin } = openWorld();
    const { write, beginning } = begin(store, { account: newAccount() });
    await beginning;
    shelf.isAway = true;
    void store.endWrite(write, ANSWER);
    await pass(clock, 75_000, 1_000);
    const { length } = shelf.calls;
    expect(store.pending).toBe(0);
    await pass(clock, 10_000, 1_000);
    expect(shelf.calls).toHaveLength(length);
  });
});

describe.each(['read', 'write'] as const)('the refused credential of a %s', (what) => {
  test('is told until the store knows it, and its copies are not used meanwhile', async () => {
    const { store, other, shelf, clock, keep, begin } = openWorld();
    const key = keyIn(newAccount());
    await keep(store, key, '"copy"');
    expect(await heldIn(other, key)).toBe('"copy"');
    const snapshot = await request(store, [key]);
    const found = await snapshot.lookup(key);
    const { write, beginning } = begin(store, { account: key.account, tags: ['another'] });
    await beginning;
    shelf.before = (call) => (call === 'swap' ? Promise.reject(new Error('away')) : undefined);
    const refusing = async () =>
      what === 'read' ? snapshot.save(key, found, { drop: 'everything' }) : store.endWrite(write, 'credential_refused');
    const refused = refusing();
    await pass(clock, 250);
    await refused;
    expect(await find(store, key)).toMatchObject({ isHidden: true });
    expect(snapshot.holds(key, found)).toBe(false);
    shelf.before = () => undefined;
    await pass(clock, 2_000);
    expect([await heldIn(store, key), await heldIn(other, key)]).toEqual([undefined, undefined]);
    expect((await find(store, key)).isHidden).toBeUndefined();
  });
});

test('a read from before a refusal is neither kept nor joined, though the account has no note yet', async () => {
  const { store, save } = openWorld();
  const key = keyIn(newAccount());
  const before = await find(store, key);
  await (await request(store, [key])).save(key, before, { drop: 'everything' });
  expect(await save(store, key, before, '"late"')).toEqual({ stored: false, holds: false });
  expect((await find(store, key)).version).not.toBe(before.version);
});

test('the refusal of a credential ends a copy that was kept when the first note of the account had nearly ended', async () => {
  const { store, other, clock, keep } = openWorld();
  const key = keyIn(newAccount());
  await keep(store, keyIn(key.account, 'getSubuser/6?'), '"first"');
  clock.advance(NOTE_MS - 1_000);
  await keep(store, key, '"copy"');
  clock.advance(2_000);
  const snapshot = await request(other, [key]);
  await snapshot.save(key, await snapshot.lookup(key), { drop: 'everything' });
  clock.advance(300_000);
  expect([await heldIn(store, key), await heldIn(other, key)]).toEqual([undefined, undefined]);
});

const signedOut = async () => {
  const world = openWorld();
  const { store, shelf, clock } = world;
  const account = newAccount();
  const session = { id: 'session', epoch: (await store.epochOf(account)) ?? NaN };
  shelf.isAway = true;
  const known = watched(store.revoke({ account, waitUntil }, session, 'one'));
  await pass(clock, 1_000);
  expect(known.value).toBe(false);
  const stateIn = async (one: Store) =>
    (await one.snapshot({ account, window: undefined, session, waitUntil })).session;
  return { ...world, stateIn };
};

describe('a sign-out that the store does not hear', () => {
  test('holds on this instance at once, and everywhere when the store is back', async () => {
    const { store, other, shelf, clock, stateIn } = await signedOut();
    expect(await stateIn(store)).toEqual({ isOver: true, isLocal: true });
    expect(await stateIn(other)).toEqual({ isOver: false });
    shelf.isAway = false;
    await pass(clock, 3_000);
    expect([await stateIn(other), store.pending]).toEqual([{ isOver: true }, 0]);
  });

  test('is told for ten minutes', async () => {
    const { store, shelf, clock } = await signedOut();
    await pass(clock, 590_000, 1_000);
    expect(store.pending).toBe(1);
    await pass(clock, 15_000, 1_000);
    expect(store.pending).toBe(0);
    expect(shelf.isAway).toBe(true);
  });
});

test('all are signed out of by the number of sign-outs that the store knows, not by that of one instance', async () => {
  const { store, other, clock } = openWorld();
  const account = newAccount();
  const epoch = (await store.epochOf(account)) ?? NaN;
  const signOut = (one: Store, n: number) => one.revoke({ account, waitUntil }, { id: `session ${n}`, epoch }, 'one');
  for (let n = 0; n < 65; n++) await signOut(n < 40 ? store : other, n); // the last one signs all out
  clock.advance(60_000);
  const session = { id: 'new', epoch: (await store.epochOf(account)) ?? NaN };
  clock.advance(60_000);
  for (let n = 65; n < 90; n++) await signOut(store, n); // with which it has done 65
  for (const one of [store, other])
    expect((await one.snapshot({ account, window: undefined, session, waitUntil })).session).toEqual({ isOver: false });
});

test('a session that begins while the store is still to hear of a sign-out everywhere outlives it', async () => {
  const { store, other, shelf, clock } = openWorld();
  const account = newAccount();
  const session = { id: 'session', epoch: (await store.epochOf(account)) ?? NaN };
  shelf.before = (method) => (method === 'swap' ? Promise.reject(new Error('away')) : undefined);
  const known = watched(store.revoke({ account, waitUntil }, session, 'all'));
  await pass(clock, 1_000);
  expect(known.value).toBe(false);
  const begun = { id: 'new', epoch: (await store.epochOf(account)) ?? NaN };
  shelf.before = () => undefined;
  await pass(clock, 3_000);
  const stateOf = async (one: SessionId) =>
    (await other.snapshot({ account, window: undefined, session: one, waitUntil })).session?.isOver;
  expect([await stateOf(session), await stateOf(begun)]).toEqual([true, false]);
});

describe('a store that takes the place of another', () => {
  test('voids all copies, and none is given or kept until it can be relied on', async () => {
    const { store, other, shelf, clock, keep } = openWorld();
    const key = keyIn(newAccount());
    await keep(store, key, '"old"');
    expect(await heldIn(other, key)).toBe('"old"');
    shelf.replace();
    for (const one of [store, other]) {
      expect(await find(one, key)).toMatchObject({ isHidden: true, entry: undefined });
      expect(await keep(one, key, '"early"')).toMatchObject({ stored: false });
    }
    clock.advance(15_001);
    expect([await heldIn(store, key), await heldIn(other, key)]).toEqual([undefined, undefined]);
    await keep(store, key, '"new"');
    expect(await heldIn(other, key)).toBe('"new"');
  });

  test('voids a copy of an account that has a note in neither', async () => {
    const { store, shelf, clock, save } = openWorld();
    const key = keyIn(newAccount());
    shelf.before = (call) => (call === 'keep' ? never() : undefined);
    await save(store, key, await find(store, key), '"old"');
    expect(await heldIn(store, key)).toBe('"old"');
    shelf.replace();
    clock.advance(15_001);
    expect(await heldIn(store, key)).toBeUndefined();
  });

  test('refuses purchases, keyed writes and questions until then, and says for how long', async () => {
    const { store, shelf, clock, begin } = openWorld();
    shelf.replace();
    const account = newAccount();
    const refused = { refusal: { code: 'store_unavailable', particulars: { fault: 'not_sent', retryAfter: 15 } } };
    expect(await begin(store, { account, key: 'key' }).beginning).toMatchObject(refused);
    expect(await begin(store, { account, isPurchase: true }).beginning).toMatchObject(refused);
    const question = { account, window: undefined, key: 'key', waitUntil };
    expect(await store.outcomeOf(question)).toMatchObject({ refusal: { code: 'store_unavailable' } });
    expect(await begin(store, { account }).beginning).toEqual({ use: undefined });
    clock.advance(15_001);
    expect(await begin(store, { account, key: 'key' }).beginning).toEqual({ use: undefined });
    expect(await store.outcomeOf({ ...question, key: 'another' })).toEqual({ use: undefined });
  });

  test('is told the ends of writes that were under way, which are replayed at once', async () => {
    const { store, other, shelf, begin } = openWorld();
    const account = newAccount();
    const { write, beginning } = begin(store, { account, key: 'key' });
    await beginning;
    shelf.replace();
    await store.endWrite(write, ANSWER);
    expect((await begin(other, { account, key: 'key' }).beginning).record).toMatchObject({ outcome: ANSWER });
  });
});

test('a copy is as old for instances whose clocks differ', async () => {
  const { store, shelf, clock, open, keep } = openWorld();
  const late = manualClock(clock.now() + 7 * 86_400_000);
  const other = open(shelf.beside(), late);
  const key = keyIn(newAccount());
  await keep(store, key, '"copy"');
  for (const one of [clock, late]) one.advance(10_000);
  expect((await find(other, key)).entry?.storedAt).toBe(late.now() - 10_000);
});

test('where the store has no room no write begins, and those under way end', async () => {
  const { store, other, shelf, begin } = openWorld();
  const account = newAccount();
  const { write, beginning } = begin(store, { account, key: 'key' });
  await beginning;
  shelf.isFull = true;
  expect(await begin(store, { account, key: 'another' }).beginning).toMatchObject(REFUSED);
  await store.endWrite(write, ANSWER);
  expect((await begin(other, { account, key: 'key' }).beginning).record).toMatchObject({ outcome: ANSWER });
});
