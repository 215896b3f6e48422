import { describe, expect, test } from 'vitest';
import { SharedStore } from '../../src/store/shared.ts';
import { Vault } from '../../src/store/shared/vault.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import type { NewWrite, Place, Store, Tag } from '../../src/store/store.ts';
import { entryOf } from './contract.ts';
import { MemoryRemote } from './memory-remote.ts';
import { manualClock } from '../support/clock.ts';
import { exampleRequest } from '../support/examples.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { json, reset } from '../support/scripted-upstream.ts';
import { openWorld } from '../support/world.ts';

const DAY_MS = 86_400_000;
const ANSWER = { status: 200, text: '{}' };

let nonces = 0;

const writeOf = (changes: Partial<NewWrite> = {}): NewWrite => ({
  principal: 'account',
  tags: ['group'],
  nonce: String(++nonces),
  now: 0,
  endsAt: 10_000,
  until: 70_000,
  record: undefined,
  purchase: undefined,
  ...changes,
});

const keyed = (key: string, changes: Partial<NewWrite> = {}): NewWrite => {
  const write = writeOf(changes);
  const { principal: account, nonce, now, endsAt, purchase: fingerprint = 'body' } = write;
  return {
    ...write,
    record: { account, key, fingerprint, nonce, now, endsAt, expiresAt: now + DAY_MS, lasting: true },
  };
};

const memoryStore = () => new MemoryStore({ maxBytes: 1_048_576 });

const sharedStore = () =>
  new SharedStore({
    remote: new MemoryRemote(),
    vault: new Vault(['a secret that is long enough to be one']),
    maxBytes: 1_048_576,
    clock: manualClock(0),
    isVolatile: true,
  });

const PLACE: Place = { account: 'account', key: 'key', tags: ['group'] };

const OVERLAPS: readonly (readonly [one: Tag, other: Tag])[] = [
  ['*', '*'],
  ['group', 'group'],
  ['group', '*'],
  ['*', 'group'],
];

describe.each(OVERLAPS)('of two writes at once that touch %s and %s', (tag, otherTag) => {
  test.each(['first', 'second'] as const)('neither was sent, the %s ends first: the copy is there again', (first) => {
    const store = memoryStore();
    store.answers.save(PLACE, entryOf('1'), store.answers.lookup(PLACE).versions);
    const writes = [writeOf({ tags: [tag] }), writeOf({ tags: [otherTag] })];
    for (const write of writes) store.beginWrite(write);
    for (const write of first === 'first' ? writes : writes.toReversed()) {
      expect(store.answers.lookup(PLACE, 1).entry).toBeUndefined();
      store.endWrite(write, 'not_sent');
    }
    expect(store.answers.lookup(PLACE, 1).entry).toBeDefined();
  });

  test.each(['not_sent', 'unknown'] as const)('one is done, the other %s: it is gone', (end) => {
    const store = memoryStore();
    store.answers.save(PLACE, entryOf('1'), store.answers.lookup(PLACE).versions);
    const [done, other] = [writeOf({ tags: [tag] }), writeOf({ tags: [otherTag] })];
    for (const write of [done, other]) store.beginWrite(write);
    store.endWrite(done, ANSWER);
    store.endWrite(other, end);
    for (const now of [1, 70_000]) expect(store.answers.lookup(PLACE, now).entry).toBeUndefined();
  });
});

const leave = async (store: Store, write: NewWrite) => {
  await store.beginWrite(write);
  await store.endWrite(write, 'unknown');
};

describe.each<readonly [string, () => Store]>([
  ['in the process', memoryStore],
  ['over a shared store', sharedStore],
])('writes of unknown outcome, %s,', (_, open) => {
  test('of one account are a thousand at most, and cost others nothing', async () => {
    const store = open();
    for (let n = 0; n < 1_000; n++) await leave(store, writeOf());
    await expect(async () => store.beginWrite(writeOf())).rejects.toThrow('store_unavailable');
    expect(await store.beginWrite(writeOf({ principal: 'other' }))).toBeUndefined();
    expect(await store.beginWrite(writeOf({ now: 70_000, until: 140_000 }))).toBeUndefined();
  });

  test('make room for others when their time is over, whether their account comes again or not', async () => {
    const store = open();
    for (let n = 0; n < 20_000; n++) await leave(store, writeOf({ principal: `account-${n}` }));
    await expect(async () => store.beginWrite(writeOf())).rejects.toThrow('store_unavailable');
    expect(await store.beginWrite(writeOf({ now: 70_000, until: 140_000 }))).toBeUndefined();
  });

  test('say so to an equal purchase without a key, as often as it comes', async () => {
    const store = open();
    await leave(store, keyed('key', { purchase: 'plan' }));
    for (let times = 0; times < 3; times++)
      expect(await store.beginWrite(writeOf({ purchase: 'plan' }))).toMatchObject({ outcome: 'unknown' });
  });

  test('a purchase that was refused beside an equal one leaves nothing of its own', async () => {
    const store = open();
    const first = keyed('key', { purchase: 'plan' });
    expect(await store.beginWrite(first)).toBeUndefined();
    expect(await store.beginWrite(writeOf({ purchase: 'plan' }))).toMatchObject({ outcome: 'under_way' });
    await store.endWrite(first, ANSWER);
    expect(await store.beginWrite(writeOf({ purchase: 'plan' }))).toBeUndefined();
  });
});

test('full of them, a store in the process still takes a key that marks nothing', () => {
  const store = memoryStore();
  for (let n = 0; n < 20_000; n++) store.beginWrite(writeOf({ principal: `account-${n}` }));
  expect(store.beginWrite(keyed('key', { tags: [] }))).toBeUndefined();
});

test('under a mark equal items of a batch share a call, and no two requests do', async () => {
  const world = await openWorld();
  world.upstream.on(callOf('purchasePlan'), reset());
  expect(await world.ask('purchasePlan')).toMatchObject({ json: { outcome: 'unknown' } });
  world.upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)));
  const { path } = exampleRequest('getSubscription');
  const requests = Array.from({ length: 20 }, (_, n) => ({ id: String(n), path }));
  const headers = { 'X-Request-Id': 'the-same' };
  const batch = () => world.call({ path: '/bff/v1/batch', token: world.token, body: { requests }, headers });
  for (const { status } of await Promise.all([batch(), batch()])) expect(status).toBe(200);
  expect(world.upstream.callsTo(callOf('getSubscription'))).toHaveLength(2);
});
