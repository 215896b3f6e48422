import { describe, expect, test } from 'vitest';
import { Copies } from '../../src/store/copies.ts';
import type { CacheKey } from '../../src/store/port.ts';
import { keyIn, newAccount } from './contract.ts';

const MEGABYTE = 1_048_576;

const keyOf = (account: string, n: number, keyLength = 0): CacheKey =>
  keyIn(account, `getTransaction/${n}?`.padEnd(keyLength, 'k'));

const entryOf = (text: string) => ({ text, links: [], etag: '', storedAt: 0, validators: {} });

const keep = (copies: Copies, key: CacheKey, text: string) =>
  copies.set(key, { entry: entryOf(text), version: 'the same', askedAt: 0 });

const heldIn = (copies: Copies, key: CacheKey) => copies.get(key)?.entry.text;

const countHeld = (copies: Copies, keys: readonly CacheKey[]) =>
  keys.filter((key) => copies.get(key) !== undefined).length;

/** How much of what is put in stays: `count` entries with keys and bodies of these lengths. */
function fill(copies: Copies, of: { count: number; keyLength: number; body: string; accounts: number }) {
  const accounts = Array.from({ length: of.accounts }, newAccount);
  const keys = Array.from({ length: of.count }, (_, n) => keyOf(accounts[n % of.accounts] ?? '', n, of.keyLength));
  for (const key of keys) keep(copies, key, of.body);
  return { keys, held: countHeld(copies, keys) };
}

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
  test.each(SHAPES)('the bytes held stay within the bound with %s, and come near it', (_, shape, bytes) => {
    const count = Math.ceil((3 * MEGABYTE) / bytes);
    const { held } = fill(new Copies(MEGABYTE), { count, accounts, ...shape });
    const bound = MEGABYTE * Math.min(1, accounts / 16);
    expect(held * bytes).toBeLessThanOrEqual(bound);
    expect(held * (bytes + 900)).toBeGreaterThan(bound / 2); // what it costs to hold an entry is counted as well
  });
});

describe('the bound', () => {
  test('evicts what was used least recently', () => {
    const copies = new Copies(MEGABYTE);
    const body = 'x'.repeat(20_000);
    const used = keyOf(newAccount(), 0);
    keep(copies, used, body);
    const { keys } = fill(copies, { count: 20, accounts: 20, keyLength: 0, body });
    for (let i = 0; i < 10; i++) {
      expect(heldIn(copies, used)).toBe(body);
      fill(copies, { count: 20, accounts: 20, keyLength: 0, body });
    }
    expect(countHeld(copies, keys)).toBe(0);
  });

  test('of an account is a sixteenth: it loses what it used least recently, and nobody else anything', () => {
    const copies = new Copies(16 * MEGABYTE);
    const [account, other] = [newAccount(), newAccount()];
    keep(copies, keyOf(other, 0), '"other"');
    keep(copies, keyOf(account, 0), '"used"');
    const keys = Array.from({ length: 1_000 }, (_, n) => keyOf(account, n + 1));
    for (const key of keys) {
      keep(copies, key, 'x'.repeat(20_000));
      expect(heldIn(copies, keyOf(account, 0))).toBe('"used"');
    }
    const held = countHeld(copies, keys);
    expect(held * 20_000).toBeLessThanOrEqual(MEGABYTE);
    expect(held * 20_000).toBeGreaterThan(MEGABYTE * 0.8);
    expect(countHeld(copies, keys.slice(-held))).toBe(held);
    expect(heldIn(copies, keyOf(other, 0))).toBe('"other"');
  });

  test('refuses what is larger than all of it, forgets the copy from before and keeps the rest', () => {
    const copies = new Copies(MEGABYTE);
    const account = newAccount();
    keep(copies, keyOf(account, 1), '"rest"');
    keep(copies, keyOf(account, 2), '"small"');
    expect(keep(copies, keyOf(account, 2), 'x'.repeat(2 * MEGABYTE))).toBe(false);
    expect([heldIn(copies, keyOf(account, 2)), heldIn(copies, keyOf(account, 1))]).toEqual([undefined, '"rest"']);
  });

  test('of nothing holds nothing', () => {
    expect(keep(new Copies(0), keyOf(newAccount(), 1), '')).toBe(false);
  });

  test('counts an entry again that replaces another', () => {
    const copies = new Copies(MEGABYTE);
    const keys = Array.from({ length: 20 }, (_, n) => keyOf(newAccount(), n));
    for (let round = 0; round < 10; round++)
      for (const key of keys) expect(keep(copies, key, 'x'.repeat(20_000))).toBe(true);
    expect(countHeld(copies, keys)).toBe(20);
  });

  test('has room again for what is gone, and nothing to show for it', () => {
    const copies = new Copies(MEGABYTE);
    const kept = keyOf(newAccount(), 0);
    keep(copies, kept, '"kept"');
    const account = newAccount();
    const keys = Array.from({ length: 30 }, (_, n) => keyOf(account, n));
    for (let round = 0; round < 20; round++) {
      for (const key of keys) keep(copies, key, 'x'.repeat(20_000));
      if (round % 2) for (const key of keys) copies.delete(key);
      else copies.deleteAll(account);
    }
    expect(heldIn(copies, kept)).toBe('"kept"');
    copies.delete(kept);
    expect(copies.usage()).toMatchObject({ bytes: 0, entries: 0 });
  });
});
