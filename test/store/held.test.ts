import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { NewWrite, SessionId, WriteEnd } from '../../src/store/port.ts';
import type { Store } from '../../src/store/store.ts';
import { testClock } from '../support/clock.ts';
import { NOTE_MS, sharedStores } from '../support/stores.ts';
import { ANSWER, find, heldIn, keyIn, newAccount, type OwnKey, writeOf } from './contract.ts';

const waitUntil = () => undefined;
const HOUR_MS = 3_600_000;

const look = async (store: Store, key: OwnKey, session?: SessionId) =>
  store.snapshot({ account: key.account, window: undefined, keys: [key], session, waitUntil });

const refuse = async (store: Store, key: OwnKey) => {
  const snapshot = await look(store, key);
  return snapshot.save(key, await snapshot.lookup(key), { drop: 'everything' });
};

/** Two instances over a double of a store, whose calls are held or lost. */
function open() {
  const clock = testClock();
  const stores = sharedStores(clock);
  const keep = async (store: Store, key: OwnKey, text: string) => {
    const snapshot = await look(store, key);
    const entry = { text, links: [], etag: '', storedAt: clock.now(), storedWall: clock.wall(), validators: {} };
    const saved = await snapshot.save(key, await snapshot.lookup(key), { entry });
    await turn();
    return saved;
  };
  const write = async (store: Store, changes: Partial<NewWrite>, end: WriteEnd = ANSWER) => {
    const made = writeOf({ now: clock.now(), ...changes });
    expect(await store.beginWrite(made)).toEqual({ use: undefined });
    await store.endWrite(made, end);
  };
  return { clock, ...stores, keep, write };
}

test('the end of a write is told no longer than its mark stands', async () => {
  const { store, shelf, clock } = open();
  const write = writeOf({ account: newAccount(), now: clock.now() });
  await store.beginWrite(write);
  shelf.isAway = true;
  void store.endWrite(write, ANSWER);
  await clock.pass(75);
  const { length } = shelf.calls;
  await clock.pass(10);
  expect([store.pending, shelf.calls.length]).toEqual([0, length]);
});

test.each(['read', 'write'] as const)(
  'the refused credential of a %s is told until the store knows it, and its copies are not used meanwhile',
  async (what) => {
    const { store, other, shelf, clock, keep } = open();
    const key = keyIn(newAccount());
    await keep(store, key, '"copy"');
    expect(await heldIn(other, key)).toBe('"copy"');
    const write = writeOf({ account: key.account, tags: ['another'], now: clock.now() });
    await store.beginWrite(write);
    const swap = shelf.hold('swap');
    const refusing = what === 'read' ? refuse(store, key) : store.endWrite(write, 'credential_refused');
    await swap.call;
    expect(await find(store, key)).toMatchObject({ isHidden: true });
    swap.lose();
    await clock.pass(2);
    await refusing;
    expect([await heldIn(store, key), await heldIn(other, key)]).toEqual([undefined, undefined]);
    expect((await find(store, key)).isHidden).toBeUndefined();
  },
);

test('an account whose refusal was told in vain for too long has copies again when the store is back', async () => {
  const { store, shelf, clock, keep } = open();
  const key = keyIn(newAccount());
  await keep(store, key, '"copy"');
  const snapshot = await look(store, key);
  const found = await snapshot.lookup(key);
  shelf.isAway = true;
  void snapshot.save(key, found, { drop: 'everything' });
  await clock.pass(605);
  expect(store.pending).toBe(0);
  shelf.isAway = false;
  await keep(store, key, '"new"');
  await clock.pass(1);
  await keep(store, key, '"new"');
  expect(await heldIn(store, key)).toBe('"new"');
});

test('a copy that was kept when the note had nearly ended does not outlive a refusal', async () => {
  const { clock, store, other, keep, write } = open();
  const key = { ...keyIn(newAccount()), lifeMs: HOUR_MS };
  await keep(store, key, '"old"');
  await write(other, { account: key.account, tags: ['another'] }); // whose note has taken the place of the first one
  clock.advance(NOTE_MS - 10_000);
  await keep(store, key, '"late"');
  clock.advance(10_000);
  expect(await heldIn(other, key)).toBe('"late"');
  await refuse(other, key);
  for (const ms of [0, 120_001]) {
    clock.advance(ms);
    expect(await heldIn(other, key)).toBeUndefined();
  }
});

test('what was asked for before a refusal is not kept when its answer comes after the note of that has ended', async () => {
  const { clock, store, other } = open();
  const key = keyIn(newAccount());
  const snapshot = await look(store, key);
  const found = await snapshot.lookup(key);
  await refuse(other, key);
  clock.advance(125_000);
  const entry = { text: '"old"', links: [], etag: '', storedAt: clock.now(), storedWall: clock.wall(), validators: {} };
  expect((await snapshot.save(key, found, { entry })).stored).toBe(false);
  expect(await heldIn(other, key)).toBeUndefined();
});

test('a session that the store has said is over stays so, though what is asked next gets no answer', async () => {
  const { store, other, shelf, clock, keep, write } = open();
  const key = keyIn(newAccount());
  await keep(store, key, '"copy"');
  await write(other, { account: key.account, tags: key.tags });
  const session = { id: 'session', epoch: Math.floor(clock.now() / 1_000) };
  expect(await other.revoke({ account: key.account, waitUntil }, session, 'one')).toBe(true);
  const [first, second] = [shelf.hold('read'), shelf.hold('read')];
  const looking = look(store, key, session);
  await first.call;
  first.release();
  await second.call;
  second.lose();
  expect((await looking).session).toMatchObject({ isOver: true });
});
