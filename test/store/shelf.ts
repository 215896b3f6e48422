import { describe, expect, test } from 'vitest';
import { COPY_HEAD, FIRST_REV, NOTE, type SealedNext, type SealedValue, type Shelf } from '../../src/store/sealed.ts';
import { newAccount } from './contract.ts';

interface TestedShelf {
  readonly shelf: Shelf;
  /** Lets time pass for what it holds. */
  readonly pass: (ms: number) => void | Promise<void>;
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;

const encoder = new TextEncoder();
const textOf = (value: Uint8Array | null | undefined) => value && Buffer.from(value).toString('latin1');

/** A note that begins with 12 characters. */
export const noteOf = (rev: string, lifeMs = HOUR_MS): SealedValue => ({
  name: NOTE,
  value: encoder.encode(`${rev.padEnd(12, '.')} its text`),
  lifeMs,
});

/** The first note. */
export const FIRST = noteOf(FIRST_REV);

const seenOf = (rev: string) => rev.padEnd(12, '.');

const recordOf = (text?: string, lifeMs = HOUR_MS): SealedNext['record'] => ({
  name: 'r:key',
  ...(text !== undefined && { value: encoder.encode(text) }),
  lifeMs,
});

export const next = (rev: string, record?: SealedNext['record']): SealedNext => ({
  note: noteOf(rev),
  record,
  isBeginning: false,
});

export const copyOf = (version: string, askedAt: number, text = '', lifeMs = HOUR_MS): SealedValue => {
  const value = new Uint8Array(COPY_HEAD + text.length);
  value.set(encoder.encode(version.padEnd(16, '.')));
  new DataView(value.buffer).setFloat64(16, askedAt);
  value.set(encoder.encode(text), COPY_HEAD);
  return { name: 'c:a1', value, lifeMs };
};

export const readIn = async (shelf: Shelf, account: string, ...names: readonly string[]) =>
  (await shelf.read(account, names)).values.map((value) => textOf(value) ?? undefined);

type Open = () => TestedShelf | Promise<TestedShelf>;

const openedBy = async (open: Open) => {
  const { shelf, pass } = await open();
  const account = newAccount();
  return { shelf, pass, account, read: (...names: readonly string[]) => readIn(shelf, account, ...names) };
};

/** What is true of every shelf. */
export function shelfContract(name: string, open: Open): void {
  describe(name, () => {
    test('a note takes the place of the one that was seen only, and its record goes with it', async () => {
      const { shelf, account, read } = await openedBy(open);
      const both = () => read(NOTE, 'r:key');
      expect(await both()).toEqual([undefined, undefined]);
      expect(await shelf.swap(account, seenOf('one'), next('two', recordOf('early')))).toBe('other');
      expect(await both()).toEqual([undefined, undefined]);
      expect(await shelf.swap(account, '', next('one', recordOf('begun')))).toBe('done');
      expect(await shelf.swap(account, '', next('two', recordOf('late')))).toBe('other');
      expect(await both()).toEqual(['one......... its text', 'begun']);
      expect(await shelf.swap(account, seenOf('one'), next('two'))).toBe('done');
      expect(await both()).toEqual(['two......... its text', 'begun']);
      expect(await shelf.swap(account, seenOf('two'), next('three', recordOf()))).toBe('done');
      expect(await both()).toEqual(['three....... its text', undefined]);
    });

    test('what has expired is not found: a note that has ended is a missing one', async () => {
      const { shelf, account, read, pass } = await openedBy(open);
      await shelf.swap(account, '', next('one', recordOf('begun', 2 * HOUR_MS)));
      await shelf.keep(account, seenOf('one'), FIRST, copyOf('v', 0, '', MINUTE_MS));
      await pass(HOUR_MS);
      expect(await read(NOTE, 'c:a1', 'r:key')).toEqual([undefined, undefined, 'begun']);
      expect(await shelf.swap(account, seenOf('one'), next('two'))).toBe('other');
      expect(await shelf.swap(account, '', next('two'))).toBe('done');
    });

    test('a copy is kept unless there is one of its version that was asked for later, by less than a minute', async () => {
      const { shelf, account, read } = await openedBy(open);
      const keeping = async (version: string, askedAt: number, text: string) => {
        await shelf.keep(account, FIRST_REV, FIRST, copyOf(version, askedAt, text));
        return (await read('c:a1'))[0]?.slice(COPY_HEAD);
      };
      expect(await keeping('v', 100_000, 'first')).toBe('first');
      expect(await keeping('v', 99_999, 'asked for earlier')).toBe('first');
      expect(await keeping('v', 40_001, 'much earlier')).toBe('first');
      expect(await keeping('v', 100_001, 'later')).toBe('later');
      expect(await keeping('w', 99_999, 'of another version')).toBe('of another version');
      expect(await keeping('w', 39_999, 'the clock was set back')).toBe('the clock was set back');
    });

    test('with a copy, or for one that is too large, a note is made where there is none', async () => {
      const { shelf, account, read } = await openedBy(open);
      expect(await shelf.keep(account, FIRST_REV, FIRST, undefined)).toBe(true);
      expect(await read(NOTE, 'c:a1')).toEqual([`${FIRST_REV} its text`, undefined]);
      expect(await shelf.keep(account, FIRST_REV, FIRST, copyOf('v', 1))).toBe(true);
      expect(await read(NOTE, 'c:a1')).not.toContain(undefined);
    });

    test('nothing is kept where the note is another one than that which was seen', async () => {
      const { shelf, account, read } = await openedBy(open);
      expect(await shelf.keep(account, seenOf('one'), FIRST, copyOf('v', 1))).toBe(false);
      expect(await read(NOTE, 'c:a1')).toEqual([undefined, undefined]);
      await shelf.swap(account, '', next('one'));
      expect(await shelf.keep(account, FIRST_REV, FIRST, copyOf('v', 1))).toBe(false);
      expect(await read(NOTE, 'c:a1')).toEqual(['one......... its text', undefined]);
      expect(await shelf.keep(account, seenOf('one'), FIRST, copyOf('v', 1))).toBe(true);
      expect(await read(NOTE)).toEqual(['one......... its text']);
    });

    test('a note outlives the copies that are kept under it, and ends no sooner than the one before', async () => {
      const { shelf, account, read, pass } = await openedBy(open);
      await shelf.swap(account, '', next('one'));
      await pass(HOUR_MS - 10 * MINUTE_MS);
      expect(await shelf.keep(account, seenOf('one'), FIRST, copyOf('v', 1))).toBe(true);
      const short = { ...next('two'), note: noteOf('two', MINUTE_MS) };
      expect(await shelf.swap(account, seenOf('one'), short)).toBe('done');
      await pass(HOUR_MS - 10 * MINUTE_MS);
      expect(await read(NOTE)).toEqual(['two......... its text']);
      await pass(10 * MINUTE_MS);
      expect(await read(NOTE)).toEqual([undefined]);
    });
  });
}
