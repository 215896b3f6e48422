import { randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../../src/store/memory.ts';
import { type CacheKey, EVERYTHING, type Store } from '../../src/store/store.ts';
import {
  copiesContract,
  drop,
  entryOf,
  heldIn,
  invalidate,
  keep,
  keyIn,
  look,
  newAccount,
  outcomesContract,
  saved,
} from './contract.ts';
import { memoryEngine } from './engine.ts';
import { writeOf } from './writes.ts';

const MEGABYTE = 1_048_576;

const memoryStore = (maxBytes = MEGABYTE) => new MemoryStore({ maxBytes });

copiesContract('the memory store', memoryEngine);
outcomesContract('the memory store', memoryEngine);

const keyOf = (account: string, n: number, keyLength = 0): CacheKey =>
  keyIn(account, `getTransaction/${n}?`.padEnd(keyLength, 'k'), ['transactions', `transactions/${n}`]);

const countHeld = async (store: Store, keys: readonly CacheKey[]) => {
  let count = 0;
  for (const key of keys) if ((await look(store, key)).entry) count += 1;
  return count;
};

/** How much of what is put in stays: `count` entries with keys and bodies of these lengths. */
const fill = async (store: Store, of: { count: number; keyLength: number; body: string; accounts: number }) => {
  const accounts = Array.from({ length: of.accounts }, newAccount);
  const keys = Array.from({ length: of.count }, (_, n) => keyOf(accounts[n % of.accounts] ?? '', n, of.keyLength));
  for (const key of keys) await keep(store, key, entryOf(of.body));
  return { keys, held: await countHeld(store, keys) };
};

/** `bytes` is what one entry takes at the very least. */
const SHAPES = [
  ['large bodies', { keyLength: 0, body: 'x'.repeat(20_000) }, 20_000],
  ['small bodies', { keyLength: 0, body: 'x'.repeat(200) }, 200],
  ['long keys', { keyLength: 8_000, body: '{}' }, 8_000],
  ['bodies beyond Latin-1, of two bytes a character', { keyLength: 0, body: 'я'.repeat(10_000) }, 20_000],
  ['keys beyond Latin-1', { keyLength: 4_000, body: 'я' }, 4_000],
  ['bodies of nothing', { keyLength: 0, body: '' }, 100],
] as const;

describe.each([1, 7, 100])('of %i accounts', (accounts) => {
  test.each(SHAPES)('the bytes held stay within the bound with %s, and come near it', async (_, shape, bytes) => {
    const store = memoryStore();
    const count = Math.ceil((3 * MEGABYTE) / bytes);
    const { held } = await fill(store, { count, accounts, ...shape });
    expect(held * bytes).toBeLessThanOrEqual(MEGABYTE);
    // What it costs to hold an entry is counted as well, and there is a share for what is known of accounts.
    expect(held * (bytes + 600)).toBeGreaterThan((MEGABYTE / 2) * Math.min(1, accounts / 16));
    expect(held * bytes).toBeLessThanOrEqual(MEGABYTE * Math.min(1, accounts / 16));
  });
});

describe('the bound', () => {
  test('evicts what was used least recently', async () => {
    const store = memoryStore();
    const used = keyOf(newAccount(), 0);
    const body = 'x'.repeat(20_000);
    await keep(store, used, entryOf(body));
    const { keys } = await fill(store, { count: 20, accounts: 20, keyLength: 0, body });
    for (let i = 0; i < 10; i += 1) {
      expect(await heldIn(store, used)).toBe(body);
      await fill(store, { count: 20, accounts: 20, keyLength: 0, body });
    }
    expect(await countHeld(store, keys)).toBe(0);
  });

  test('refuses what is larger than all of it, forgets the copy from before and keeps the rest', async () => {
    const store = memoryStore();
    const account = newAccount();
    await keep(store, keyOf(account, 1), entryOf('"rest"'));
    await keep(store, keyOf(account, 2), entryOf('"small"'));
    expect(await keep(store, keyOf(account, 2), entryOf('x'.repeat(2 * MEGABYTE)))).toBe(false);
    expect(await heldIn(store, keyOf(account, 2))).toBeUndefined();
    expect(await heldIn(store, keyOf(account, 1))).toBe('"rest"');
    await invalidate(store, account, [EVERYTHING]);
    expect(await heldIn(store, keyOf(account, 1))).toBeUndefined();
  });

  test('of an account is a sixteenth: it loses what it used least recently, and nobody else anything', async () => {
    const store = memoryStore(16 * MEGABYTE);
    const [account, other] = [newAccount(), newAccount()];
    await keep(store, keyOf(other, 0), entryOf('"other"'));
    await keep(store, keyOf(account, 0), entryOf('"used"'));
    const keys = Array.from({ length: 1_000 }, (_, n) => keyOf(account, n + 1));
    for (const key of keys) {
      await keep(store, key, entryOf('x'.repeat(20_000)));
      expect(await heldIn(store, keyOf(account, 0))).toBe('"used"');
    }
    const held = await countHeld(store, keys);
    expect(held * 20_000).toBeLessThanOrEqual(MEGABYTE);
    expect(held * 20_000).toBeGreaterThan(MEGABYTE * 0.8);
    expect(await countHeld(store, keys.slice(-held))).toBe(held);
    expect(await heldIn(store, keyOf(other, 0))).toBe('"other"');
  });

  test('of all evicts those of the account that was not used for longest', async () => {
    const store = memoryStore();
    const body = 'x'.repeat(20_000);
    const keys = Array.from({ length: 60 }, (_, n) => keyOf(newAccount(), n));
    for (const key of keys) {
      await keep(store, key, entryOf(body));
      expect(await heldIn(store, keys[0]!)).toBe(body);
    }
    const held = await countHeld(store, keys);
    expect(await countHeld(store, keys.slice(1 - held))).toBe(held - 1);
  });

  test('has nothing to show for what is gone', async () => {
    const store = memoryStore();
    const { keys } = await fill(store, { count: 500, accounts: 60, keyLength: 0, body: 'x'.repeat(5_000) });
    for (const key of keys) await drop(store, key);
    expect(store.usage()).toMatchObject({ bytes: 0, entries: 0 });
  });

  test('of nothing holds nothing', async () => {
    const store = memoryStore(0);
    const account = newAccount();
    expect(await keep(store, keyOf(account, 1), entryOf(''))).toBe(false);
    await invalidate(store, account, ['transactions']);
    expect(await heldIn(store, keyOf(account, 1))).toBeUndefined();
  });

  test('counts an entry again that replaces another', async () => {
    const store = memoryStore();
    const keys = Array.from({ length: 20 }, (_, n) => keyOf(newAccount(), n));
    for (let round = 0; round < 10; round += 1)
      for (const key of keys) expect(await keep(store, key, entryOf('x'.repeat(20_000)))).toBe(true);
    expect(await countHeld(store, keys)).toBe(20);
  });

  test('has room again for what was dropped or invalidated', async () => {
    const store = memoryStore();
    const kept = keyOf(newAccount(), 0);
    await keep(store, kept, entryOf('"kept"'));
    const account = newAccount();
    const keys = Array.from({ length: 30 }, (_, n) => keyOf(account, n));
    for (let round = 0; round < 20; round += 1) {
      for (const key of keys) await keep(store, key, entryOf('x'.repeat(20_000)));
      if (round % 2) for (const key of keys) await drop(store, key);
      else await invalidate(store, account, [EVERYTHING]);
    }
    expect(await heldIn(store, kept)).toBe('"kept"');
  });
});

/** An account that the upstream has never accepted. */
const unacceptedOf = (account: string) => ({
  account,
  owner: `address 10.0.0.${account.length}`,
  now: 0,
  window: undefined,
  waitUntil: () => undefined,
});

describe('many accounts', () => {
  test('without copies evict no others, whatever they ask and invalidate', async () => {
    const store = memoryStore();
    const { keys } = await fill(store, { count: 100, accounts: 50, keyLength: 0, body: 'x'.repeat(500) });
    for (let i = 0; i < 50_000; i += 1) {
      const key = keyOf(`unaccepted-${i}`, i);
      const snapshot = store.snapshot(unacceptedOf(key.account));
      const found = await snapshot.lookup(key, 0);
      if (i % 2) await snapshot.save(key, found, { drop: 'everything' });
    }
    expect(await countHeld(store, keys)).toBe(keys.length);
  });

  test('do not evict a version that is in use', async () => {
    const store = memoryStore();
    const key = keyOf(newAccount(), 1);
    const found = await look(store, key);
    await invalidate(store, key.account, ['transactions/1']);
    for (let i = 0; i < 50_000; i += 1) await look(store, keyOf(`unaccepted-${i}`, i));
    expect(await saved(store, key, found, entryOf('"late"'))).toBe(false);
    await look(store, key);
    expect(await saved(store, key, found, entryOf('"late"'))).toBe(false);
  });

  test('with copies are bounded too, and an evicted one starts without any', async () => {
    const store = memoryStore();
    const first = keyOf(newAccount(), 1);
    await keep(store, first, entryOf('"first"'));
    const before = await look(store, first);
    const { held } = await fill(store, { count: 60_000, accounts: 60_000, keyLength: 0, body: '1' });
    expect(held).toBeLessThan(60_000);
    expect(await heldIn(store, first)).toBeUndefined();
    expect(await saved(store, first, before, entryOf('"late"'))).toBe(false);
    expect(await keep(store, first, entryOf('"again"'))).toBe(true);
  });
});

/** Bytes of the heap that are in use, after a full collection. */
const usedBytes = () => {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
};

describe('what is known of accounts without copies is bounded too,', () => {
  const FORGETTING: readonly (readonly [string, (store: Store, key: CacheKey) => unknown])[] = [
    ['looked up', (store, key) => look(store, key)],
    ['dropped', (store, key) => drop(store, key)],
    ['invalidated', (store, { account, tags }) => invalidate(store, account, tags)],
  ];

  test.each(FORGETTING)('however much of theirs is %s', async (_, forget) => {
    const store = memoryStore();
    const before = usedBytes();
    for (let i = 0; i < 20; i += 1) {
      const account = newAccount();
      for (let n = 0; n < 400; n += 1) {
        const key = `getTransaction/${n}?${randomBytes(4000).toString('hex')}`;
        await forget(store, keyIn(account, key, ['transactions', `transactions/${n}`]));
      }
    }
    const grown = usedBytes() - before;
    expect(await heldIn(store, keyOf(newAccount(), 1))).toBeUndefined();
    expect(grown).toBeLessThan(8 * MEGABYTE);
  });
});

test('finds a copy without waiting', async () => {
  const store = memoryStore();
  const key = keyOf(newAccount(), 1);
  const owner = key.account;
  const request = { account: owner, owner, now: 0, window: undefined, waitUntil: () => undefined };
  const snapshot = store.snapshot(request);
  expect(snapshot.copy(key, 0)).toBeUndefined();
  const entry = entryOf('{}');
  await snapshot.save(key, await snapshot.lookup(key, 0), { entry });
  expect(snapshot.copy(key, 0)).toBe(entry);
});

test('finds no copy without waiting while a write that touches it is under way', async () => {
  const store = memoryStore();
  const key = keyOf(newAccount(), 1);
  const owner = key.account;
  const snapshot = store.snapshot({
    account: owner,
    owner,
    now: 0,
    window: undefined,
    waitUntil: () => undefined,
  });
  await snapshot.save(key, await snapshot.lookup(key, 0), { entry: entryOf('{}') });
  const write = writeOf({ account: owner, tags: key.tags });
  await store.beginWrite(write);
  expect(snapshot.copy(key, 0)).toBeUndefined();
  await store.endWrite(write, 'not_sent');
  expect(snapshot.copy(key, 0)).toBeDefined();
});
