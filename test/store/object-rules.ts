import { expect, test } from 'vitest';
import { COPY_HEAD, FIRST_REV, NOTE, type SealedNext, type SealedValue, type Shelf } from '../../src/store/sealed.ts';

/** Objects of accounts, which time passes for by `pass` only, or by less than a second. */
export interface Objects {
  readonly shelf: Shelf;
  pass(ms: number): void | Promise<void>;
  /** All that the objects had in memory is gone. */
  putAway(): void | Promise<void>;
  /** Rows of an account's object, as 'kind name'. */
  kept(account: string): readonly string[] | Promise<readonly string[]>;
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
/** How long after its end a row is gone at the latest. */
export const SWEPT_MS = 600_000;

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

const recordOf = (text: string | undefined, lifeMs = HOUR_MS): SealedNext['record'] => ({
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

export const readerOf =
  ({ shelf }: Objects, account: string) =>
  async (...names: readonly string[]) =>
    (await shelf.read(account, names)).values.map(textOf);

/** What an object promises, in this process and in workerd. */
export function objectRules(open: () => Promise<{ readonly objects: Objects; readonly account: string }>): void {
  test('a note takes the place of the one that was seen only, and its record goes with it', async () => {
    const { objects, account } = await open();
    const { shelf } = objects;
    const read = readerOf(objects, account);
    expect(await read(NOTE, 'r:key')).toEqual([undefined, undefined]);
    expect(await shelf.swap(account, seenOf('one'), next('two', recordOf('early')))).toBe('other');
    expect(await shelf.swap(account, '', next('one', recordOf('begun')))).toBe('done');
    expect(await shelf.swap(account, '', next('two', recordOf('late')))).toBe('other');
    expect(await read(NOTE, 'r:key')).toEqual(['one......... its text', 'begun']);
    expect(await shelf.swap(account, seenOf('one'), next('two'))).toBe('done');
    expect(await read(NOTE, 'r:key')).toEqual(['two......... its text', 'begun']);
    expect(await shelf.swap(account, seenOf('two'), next('three', recordOf(undefined)))).toBe('done');
    expect(await read(NOTE, 'r:key')).toEqual(['three....... its text', undefined]);
  });

  test('of many that have seen the same note one takes its place', async () => {
    const { objects, account } = await open();
    const swapped = await Promise.all(
      Array.from({ length: 20 }, (_, n) => objects.shelf.swap(account, '', next(`rev ${n}`))),
    );
    expect(swapped.toSorted()).toEqual(['done', ...Array.from({ length: 19 }, () => 'other')]);
  });

  test('what has expired is not found: a note that has ended is a missing one', async () => {
    const { objects, account } = await open();
    const { shelf } = objects;
    await shelf.swap(account, '', { ...next('one', recordOf('begun', 2 * HOUR_MS)), note: noteOf('one') });
    await shelf.keep(account, seenOf('one'), FIRST, copyOf('v', 0, '', MINUTE_MS));
    await objects.pass(HOUR_MS);
    expect(await readerOf(objects, account)(NOTE, 'c:a1', 'r:key')).toEqual([undefined, undefined, 'begun']);
    expect(await shelf.swap(account, seenOf('one'), next('two'))).toBe('other');
    expect(await shelf.swap(account, '', next('two'))).toBe('done');
  });

  test('a copy is kept unless there is one of its version that was asked for later, by less than a minute', async () => {
    const { objects, account } = await open();
    const { shelf } = objects;
    const keeping = async (version: string, askedAt: number, text: string) => {
      await shelf.keep(account, FIRST_REV, FIRST, copyOf(version, askedAt, text));
      const [copy] = await readerOf(objects, account)('c:a1');
      return copy?.slice(COPY_HEAD);
    };
    expect(await keeping('v', 100_000, 'first')).toBe('first');
    expect(await keeping('v', 99_999, 'asked for earlier')).toBe('first');
    expect(await keeping('v', 100_000 - MINUTE_MS + 1, 'much earlier')).toBe('first');
    expect(await keeping('v', 100_001, 'later')).toBe('later');
    expect(await keeping('w', 99_999, 'of another version')).toBe('of another version');
    expect(await keeping('w', 100_000, 'w')).toBe('w');
    expect(await keeping('w', 100_000 - MINUTE_MS, 'the clock was set back')).toBe('the clock was set back');
  });

  test('with a copy, or for one that is too large, a note is made where there is none', async () => {
    const { objects, account } = await open();
    const { shelf } = objects;
    const read = readerOf(objects, account);
    expect(await shelf.keep(account, FIRST_REV, FIRST, undefined)).toBe(true);
    expect(await read(NOTE, 'c:a1')).toEqual([`${FIRST_REV} its text`, undefined]);
    expect(await shelf.keep(account, FIRST_REV, FIRST, copyOf('v', 1))).toBe(true);
    expect(await read(NOTE, 'c:a1')).not.toContain(undefined);
  });

  test('nothing is kept where the note is another one than that which was seen', async () => {
    const { objects, account } = await open();
    const { shelf } = objects;
    const read = readerOf(objects, account);
    expect(await shelf.keep(account, seenOf('one'), FIRST, copyOf('v', 1))).toBe(false);
    expect(await read(NOTE, 'c:a1')).toEqual([undefined, undefined]);
    await shelf.swap(account, '', next('one'));
    expect(await shelf.keep(account, FIRST_REV, FIRST, copyOf('v', 1))).toBe(false);
    expect(await read(NOTE, 'c:a1')).toEqual(['one......... its text', undefined]);
    expect(await shelf.keep(account, seenOf('one'), FIRST, copyOf('v', 1))).toBe(true);
    expect(await read(NOTE)).toEqual(['one......... its text']);
  });

  test('a note outlives the copies that are kept under it, and ends no sooner than the one before', async () => {
    const { objects, account } = await open();
    const { shelf } = objects;
    await shelf.swap(account, '', next('one'));
    await objects.pass(HOUR_MS - 10 * MINUTE_MS);
    expect(await shelf.keep(account, seenOf('one'), FIRST, copyOf('v', 1))).toBe(true);
    await objects.pass(20 * MINUTE_MS);
    expect(await readerOf(objects, account)(NOTE)).toEqual(['one......... its text']);
    const short = { note: noteOf('two', MINUTE_MS), isBeginning: false };
    expect(await shelf.swap(account, seenOf('one'), short)).toBe('done');
    await objects.pass(20 * MINUTE_MS);
    expect(await readerOf(objects, account)(NOTE)).toEqual(['two......... its text']);
  });

  test('what is counted in a window is added up until its end, each window by itself', async () => {
    const { objects, account } = await open();
    const { shelf } = objects;
    const count = async (name: string, many: number) =>
      (await shelf.count(account, { name, lengthMs: HOUR_MS }, many)).used;
    expect([await count('one', 1), await count('one', 75), await count('other', 2)]).toEqual([1, 76, 2]);
    await objects.putAway();
    expect(await count('one', 1)).toBe(77);
    const { endsAt } = await shelf.count(account, { name: 'one', lengthMs: HOUR_MS }, 0);
    expect([endsAt > shelf.now(), endsAt <= shelf.now() + HOUR_MS]).toEqual([true, true]);
    await objects.pass(endsAt - shelf.now());
    expect(await count('one', 1)).toBe(1);
  });

  test('an object that was evicted knows all that it has acknowledged', async () => {
    const { objects, account } = await open();
    await objects.shelf.swap(account, '', next('one', recordOf('begun')));
    await objects.shelf.keep(account, seenOf('one'), FIRST, copyOf('v', 1, 'text'));
    await objects.putAway();
    const [note, record, copy] = await readerOf(objects, account)(NOTE, 'r:key', 'c:a1');
    expect([note, record, copy?.slice(COPY_HEAD)]).toEqual(['one......... its text', 'begun', 'text']);
    expect(await objects.shelf.swap(account, seenOf('one'), next('two'))).toBe('done');
  });

  test('the shelf has the time of the objects', async () => {
    const { objects, account } = await open();
    const { shelf } = objects;
    await shelf.read(account, [NOTE]);
    const before = shelf.now();
    await objects.pass(HOUR_MS);
    await shelf.read(account, [NOTE]);
    const passedMs = shelf.now() - before;
    expect([passedMs >= HOUR_MS, passedMs < HOUR_MS + MINUTE_MS]).toEqual([true, true]);
  });

  test('reads and refused changes leave nothing', async () => {
    const { objects, account } = await open();
    await readerOf(objects, account)(NOTE, 'r:key', 'c:a1');
    await objects.shelf.swap(account, seenOf('one'), next('two', recordOf('text')));
    expect(await objects.kept(account)).toEqual([]);
  });
}
