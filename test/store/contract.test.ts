import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Account } from '../../src/store/account.ts';
import { Store } from '../../src/store/store.ts';
import { Copies, type Copy } from '../../src/store/copies.ts';
import { MemoryBackend } from '../../src/store/memory.ts';
import type { RedisShelf } from '../../src/entry/node/redis/backend.ts';
import { START_MS, testClock } from '../support/clock.ts';
import { FirstProcess, sharingCopies } from '../support/ipc.ts';
import { accountsOver, objectShelf } from '../support/object-storage.ts';
import { hasRedis, relyOn, SKIPPED, startRedis, type TestRedis } from '../support/redis.ts';
import { FakeShelf } from '../support/fake-shelf.ts';
import { sharedStores, shelfOf, storeOver } from '../support/stores.ts';
import { keyIn, newAccount, type OwnKey, storeContract } from './contract.ts';
import { shelfContract } from './shelf.ts';

const maxBytes = 8_388_608;

storeContract('the store of one process', () => {
  const clock = testClock();
  const store = new Store({ backend: new MemoryBackend({ now: () => clock.now() }), clock, maxBytes });
  return { instances: [store, store], clock, pass: (ms) => clock.advance(ms) };
});

const MEGABYTE = 1_048_576;
const keep = (copies: Copies, key: OwnKey, text: string) =>
  copies.set(key.account, key, {
    entry: { text, links: [], etag: '', storedAt: 0, storedWall: 0, validators: {} },
    version: '',
    askedAt: 0,
  });

describe('copies of one process', () => {
  /** Bytes that one copy takes at the very least. */
  const SHAPES = [
    ['large bodies', 20_000, '', 'x'.repeat(20_000)],
    ['small bodies', 200, '', 'x'.repeat(200)],
    ['long keys', 8_000, 'k'.repeat(8_000), '{}'],
    ['bodies beyond Latin-1, of two bytes a character', 20_000, '', 'я'.repeat(10_000)],
    ['bodies of nothing', 100, '', ''],
  ] as const;

  test.each(SHAPES)('stay within the bound with %s, come near it, and leave nothing behind', (_, bytes, more, text) => {
    const copies = new Copies(MEGABYTE);
    const accounts = Array.from({ length: 100 }, newAccount);
    const keys = Array.from({ length: Math.ceil((3 * MEGABYTE) / bytes) }, (__, n) =>
      keyIn(accounts[n % 100]!, `getTransaction/${n}?${more}`),
    );
    for (const key of keys) keep(copies, key, text);
    const held = keys.filter((key) => copies.get(key.account, key)).length;
    expect(held * bytes).toBeLessThanOrEqual(MEGABYTE);
    expect(held * (bytes + 900)).toBeGreaterThan(MEGABYTE / 2); // what it costs to hold a copy is counted as well
    for (const [n, key] of keys.entries()) if (n % 2) copies.delete(key.account, key);
    for (const account of accounts) copies.deleteAll(account);
    expect(copies.usage()).toMatchObject({ bytes: 0, entries: 0 });
  });

  test('give way where they were used least recently', () => {
    const copies = new Copies(MEGABYTE);
    const used = keyIn(newAccount());
    keep(copies, used, '{}');
    for (let n = 0; n < 200; n++) {
      keep(copies, keyIn(newAccount()), 'x'.repeat(20_000));
      expect(copies.get(used.account, used)).toBeDefined();
    }
  });
});

storeContract('workers that ask the first process', () => {
  const clock = testClock();
  const first = new FirstProcess(() => clock.now());
  const copies = new Map<string, Copy>();
  const open = () => new Store({ backend: sharingCopies(first.worker(), copies), clock, maxBytes });
  return { instances: [open(), open()], clock, pass: (ms) => clock.advance(ms) };
});

test('a worker that knows a note is told no more than its number, and has the same object', async () => {
  const first = new FirstProcess(() => START_MS);
  const worker = first.worker();
  const account = new Account('account');
  const known = await worker.look(account);
  first.sent.length = 0;
  expect((await worker.look(account)).note).toBe(known.note);
  expect(first.sent).toEqual([`[["look","account",${String(known.seen)}]]`, `[${String(known.seen)}]`]);
});

test('what is asked while a message has no answer goes together in the next, and each has the answer to its own question', async () => {
  const first = new FirstProcess(() => START_MS);
  const worker = first.worker();
  const window = { name: 'w', lengthMs: 60_000 };
  const account = new Account('account');
  const asked = [1, 2, 3].map((many) => worker.count(account, window, many));
  await setImmediate();
  asked.push(...[4, 5].map((many) => worker.count(account, window, many)));
  expect((await Promise.all(asked)).map(({ used }) => used)).toEqual([1, 3, 6, 10, 15]);
  expect(first.sent.map((text) => (JSON.parse(text) as unknown[]).length)).toEqual([3, 3, 2, 2]);
});

storeContract('the objects of accounts', () => {
  const clock = testClock();
  const shelf = objectShelf({ now: () => clock.now() });
  const pass = (ms: number) => {
    shelf.pass(ms);
    clock.advance(ms);
  };
  return { instances: [accountsOver(shelf, clock), accountsOver(shelf, clock)], clock, pass };
});

shelfContract('each of them', () => {
  const shelf = objectShelf(testClock());
  return { shelf, pass: (ms) => shelf.pass(ms) };
});

storeContract('the double that tests of a fleet have', () => {
  const clock = testClock();
  const { store, other } = sharedStores(clock);
  return { instances: [store, other], clock, pass: (ms) => clock.advance(ms) };
});

shelfContract('its calls', () => {
  const clock = testClock();
  return { shelf: new FakeShelf(clock), pass: (ms) => clock.advance(ms) };
});

describe.skipIf(!hasRedis)(`in Redis${SKIPPED}`, () => {
  const clock = testClock();
  let redis: TestRedis;
  let shelf: RedisShelf;
  let instances: [Store, Store];

  beforeAll(async () => {
    redis = await startRedis();
    const token = await relyOn(redis);
    shelf = await shelfOf({ url: redis.url, token }, clock);
    instances = [storeOver(shelf, clock, ['secret']), storeOver(shelf, clock, ['secret'])];
  });
  afterAll(async () => {
    shelf.close();
    await redis.close();
  });

  const pass = async (ms: number) => {
    clock.advance(ms);
    await redis.pass(ms);
  };

  shelfContract('its commands', () => ({ shelf, pass }));
  storeContract('two instances', () => ({ instances, clock, pass }));
});
