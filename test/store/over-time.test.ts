import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Accounts } from '../../src/store/accounts.ts';
import type { CacheKey, Store } from '../../src/store/port.ts';
import { SealedNotes } from '../../src/store/sealed.ts';
import { manualClock, type ManualClock } from '../support/clock.ts';
import { fakeNameOf, fakeSeal, FakeShelf } from '../support/fake-shelf.ts';
import { NOTE_MS, sharedStores } from '../support/stores.ts';
import { find, heldIn, keyIn, newAccount } from './contract.ts';
import { ANSWER, writeOf } from './writes.ts';

const waitUntil = () => undefined;
const settle = () => setImmediate();
const pass = async (clock: ManualClock, ms: number, part = 50) => {
  await settle();
  for (let passed = 0; passed < ms; passed += part) {
    clock.advance(Math.min(part, ms - passed));
    await settle();
  }
};
const snap = async (store: Store, key: CacheKey) =>
  store.snapshot({ account: key.account, window: undefined, keys: [key], waitUntil });
const keep = async (store: Store, key: CacheKey, text: string, clock: ManualClock) => {
  const snapshot = await snap(store, key);
  const entry = { text, links: [], etag: '', storedAt: clock.now(), validators: {} };
  await snapshot.save(key, await snapshot.lookup(key), { entry });
  await settle();
};

const HOUR = 3_600_000;

test('a session that the store has said is over stays so, though what is asked next gets no answer', async () => {
  const clock = manualClock();
  const { store, other, shelf } = sharedStores(clock);
  const account = newAccount();
  const key = keyIn(account);
  await keep(store, key, '"copy"', clock);
  const write = writeOf({ account, tags: key.tags, now: clock.now() });
  await other.beginWrite(write);
  await other.endWrite(write, ANSWER);
  const session = { id: 'session', epoch: 1_000_000_000_0 };
  expect(await other.revoke({ account, waitUntil }, session, 'one')).toBe(true);
  let reads = 0;
  shelf.before = (m) => {
    if (m === 'read' && ++reads === 2) throw new Error('away');
    return undefined;
  };
  const s = await store.snapshot({ account, window: undefined, keys: [key], session, waitUntil });
  expect([reads, s.session]).toMatchObject([2, { isOver: true }]);
});

/** A copy that was kept ten seconds before the end of a note that had taken the place of the first one. */
async function keptLate(text: string) {
  const clock = manualClock();
  const { store, other } = sharedStores(clock);
  const account = newAccount();
  const key = { ...keyIn(account), lifeMs: HOUR };
  await keep(store, key, '"old"', clock);
  const write = writeOf({ account, tags: ['another'], now: clock.now() });
  await other.beginWrite(write);
  await other.endWrite(write, ANSWER);
  clock.advance(NOTE_MS - 10_000);
  await keep(store, key, text, clock);
  clock.advance(10_000);
  return { clock, other, key };
}

test('a copy that was kept when the note in the place of the first one had nearly ended does not outlive a refusal', async () => {
  const { clock, other, key } = await keptLate('"before the refusal"');
  expect(await heldIn(other, key)).toBe('"before the refusal"');
  await (await snap(other, key)).save(key, await find(other, key), { drop: 'everything' });
  await settle();
  expect(await heldIn(other, key)).toBeUndefined();
  clock.advance(120_001);
  expect(await heldIn(other, key)).toBeUndefined();
});

test('nor does it come back after a write that was answered and a refusal', async () => {
  const { clock, other, key } = await keptLate('"before the write"');
  const { account } = key;
  const second = writeOf({ account, tags: key.tags, now: clock.now() });
  await other.beginWrite(second);
  await other.endWrite(second, ANSWER);
  const forbidden = writeOf({ account, tags: ['another'], now: clock.now() });
  await other.beginWrite(forbidden);
  await other.endWrite(forbidden, 'credential_refused');
  await settle();
  clock.advance(120_001);
  expect(await heldIn(other, key)).toBeUndefined();
});

test('what was found in the store before does not hold', async () => {
  const clock = manualClock();
  const { store, shelf } = sharedStores(clock);
  const key = keyIn(newAccount());
  await keep(store, key, '"copy"', clock);
  const s = await snap(store, key);
  const found = await s.lookup(key);
  expect(s.holds(key, found)).toBe(true);
  shelf.replace();
  expect(s.holds(key, found)).toBe(false);
});

test('an account whose refusal was told in vain for too long has copies again when the store is back', async () => {
  const clock = manualClock();
  const { store, shelf } = sharedStores(clock);
  const key = keyIn(newAccount());
  await keep(store, key, '"copy"', clock);
  const s = await snap(store, key);
  const found = await s.lookup(key);
  shelf.isAway = true;
  void s.save(key, found, { drop: 'everything' });
  await pass(clock, 605_000, 1_000);
  expect(store.pending).toBe(0);
  shelf.isAway = false;
  await pass(clock, 5_000, 100);
  for (let n = 0; n < 3; n++) {
    await keep(store, key, '"new"', clock);
    await pass(clock, 1_000, 100);
  }
  expect(await heldIn(store, key)).toBe('"new"');
});

test('a write through an instance whose copies live shorter ends copies that live longer, for as long as they do', async () => {
  const clock = manualClock();
  const shelf = new FakeShelf(clock);
  const open = (noteMs: number) =>
    new Accounts({
      backend: new SealedNotes(shelf.beside(), { seal: fakeSeal, nameOf: fakeNameOf, noteMs }),
      clock,
      maxBytes: 8_000_000,
    });
  const [long, short] = [open(72 * HOUR), open(2 * HOUR)];
  const account = newAccount();
  const key = { ...keyIn(account), freshMs: 48 * HOUR, lifeMs: 70 * HOUR };
  await keep(long, key, '"before"', clock);
  const write = writeOf({ account, tags: key.tags, now: clock.now() });
  await short.beginWrite(write);
  await short.endWrite(write, ANSWER);
  expect(await heldIn(long, key)).toBeUndefined();
  clock.advance(2 * HOUR + 60_000);
  expect(await heldIn(long, key)).toBeUndefined();
});

test('a request that is stopped with its timers does not hold up its account for good', async () => {
  const clock = manualClock();
  const { shelf, open } = sharedStores(clock);
  let isStopped = true;
  const after: ManualClock['after'] = (ms, run) => (isStopped ? () => undefined : clock.after(ms, run));
  const store = open(shelf, { ...clock, now: () => clock.now(), wall: () => clock.wall(), after });
  const account = newAccount();
  shelf.before = (method) => (method === 'swap' ? new Promise<never>(() => {}) : undefined);
  void store.beginWrite(writeOf({ account, now: clock.now() }));
  await settle();
  isStopped = false;
  shelf.before = () => undefined;
  void store.beginWrite(writeOf({ account, now: clock.now() }));
  await pass(clock, 10_100);
  let begun: unknown;
  void store.beginWrite(writeOf({ account, now: clock.now() })).then((it) => (begun = it));
  await pass(clock, 500);
  expect(begun).toEqual({ use: undefined });
});

test('what was asked for before a refusal is not kept when its answer comes after the note of that has ended', async () => {
  const clock = manualClock();
  const { store, other } = sharedStores(clock);
  const key = keyIn(newAccount());
  const s = await snap(store, key);
  const found = await s.lookup(key);
  const o = await snap(other, key);
  await o.save(key, await o.lookup(key), { drop: 'everything' });
  clock.advance(125_000);
  const saved = await s.save(key, found, {
    entry: { text: '"old"', links: [], etag: '', storedAt: clock.now(), validators: {} },
  });
  await settle();
  expect(saved.stored).toBe(false);
  expect(await heldIn(other, key)).toBeUndefined();
});
