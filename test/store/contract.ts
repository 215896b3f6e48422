import { beforeEach, describe, expect, test } from 'vitest';
import {
  type CacheKey,
  type Entry,
  EVERYTHING,
  type Found,
  type Saved,
  type Store,
  type Tag,
} from '../../src/store/store.ts';
import { type Engine, type MakeEngine } from './engine.ts';
import { START_MS } from '../support/clock.ts';
import { ANSWER, questionOf, writeOf } from './writes.ts';

let accounts = 0;

/** An account that no other test has used: a store may outlive a test. */
export const newAccount = (): string => `account-${++accounts}-${crypto.randomUUID()}`;

export const entryOf = (text: string, changes: Partial<Entry> = {}): Entry => ({
  text,
  links: [],
  etag: `"${text.length}-${text.slice(0, 16)}"`,
  storedAt: START_MS,
  validators: {},
  ...changes,
});

const arrivalOf = (account: string, now = START_MS) => ({
  account,
  owner: account,
  now,
  window: undefined,
  waitUntil: () => undefined,
});

/** What a new request finds. */
export const look = async (store: Store, key: CacheKey, now = START_MS): Promise<Found> => {
  const snapshot = await store.snapshot(arrivalOf(key.account, now));
  return snapshot.lookup(key, now);
};

/** Ends a fetch that began with `found`, with or without a copy. */
export const save = async (store: Store, key: CacheKey, found: Found, entry?: Entry): Promise<Saved> => {
  const snapshot = await store.snapshot(arrivalOf(key.account));
  return snapshot.save(key, found, { entry });
};

/** A read from its beginning to its end. */
export const keep = async (store: Store, key: CacheKey, entry: Entry): Promise<boolean> =>
  (await save(store, key, await look(store, key), entry)).stored;

export const saved = async (...of: Parameters<typeof save>): Promise<boolean> => (await save(...of)).stored;

export const heldIn = async (store: Store, key: CacheKey): Promise<string | undefined> =>
  (await look(store, key)).entry?.text;

export const drop = async (store: Store, key: CacheKey, what: 'key' | 'everything' = 'key'): Promise<void> => {
  const snapshot = await store.snapshot(arrivalOf(key.account));
  await snapshot.save(key, await snapshot.lookup(key, START_MS), { drop: what });
};

/** A write that invalidates these, from beginning to end. */
export const invalidate = async (store: Store, account: string, tags: readonly Tag[]): Promise<void> => {
  const write = writeOf({ account, tags, now: START_MS, endsAt: START_MS + 10_000, until: START_MS + 70_000 });
  await store.beginWrite(write);
  await store.endWrite(write, ANSWER);
};

const KEY = 'getSubuser/5?';
const TAGS = ['subusers', 'subusers/5'] as const;

export const keyIn = (account: string, key = KEY, tags: readonly Tag[] = TAGS): CacheKey => ({
  account,
  key,
  tags,
  freshMs: 30_000,
  lifeMs: 600_000,
});

/** What invalidates a copy with `TAGS`, and what does not. */
const INVALIDATIONS: readonly (readonly [string, readonly Tag[], boolean])[] = [
  ['its group', ['subusers'], true],
  ['its item', ['subusers/5'], true],
  ['everything', [EVERYTHING], true],
  ['everything among others', ['transactions', EVERYTHING], true],
  ['one of its tags among others', ['transactions', 'subusers/5'], true],
  ['another group', ['transactions'], false],
  ['another item', ['subusers/6'], false],
  ['an item that begins alike', ['subusers/50'], false],
  ['a group that begins alike', ['subuser'], false],
  ['nothing', [], false],
];

/** What is true of every store. */
export function copiesContract(name: string, makeEngine: MakeEngine): void {
  describe(`copies in ${name}`, () => {
    let engine: Engine;
    let store: Store;
    let account: string;
    let key: CacheKey;

    beforeEach(async () => {
      engine = await makeEngine();
      store = engine.store;
      account = newAccount();
      key = keyIn(account);
    });

    test('finds nothing where nothing was saved', async () => {
      expect((await look(store, key)).entry).toBeUndefined();
    });

    test('gives back an entry as it was saved', async () => {
      const entry = entryOf('{"next":"","x":9007199254740993123,"é":"\u{1f600}\u2028"}', {
        links: [9],
        storedAt: 1_780_000_000_123.25,
        validators: { etag: 'W/"a"', lastModified: 'Tue, 09 Jun 2026 11:50:08 GMT' },
      });
      expect(await keep(store, key, entry)).toBe(true);
      expect((await look(store, key)).entry).toEqual({ ...entry, storedAt: expect.any(Number) as number });
    });

    test('keeps an entry to the end of its life, read or not', async () => {
      const entry = entryOf('"kept"');
      await keep(store, key, entry);
      await engine.pass(key.lifeMs - 1 - engine.slackMs);
      expect(await heldIn(store, key)).toBe('"kept"');
    });

    test('keeps the newest entry', async () => {
      await keep(store, key, entryOf('"old"'));
      await keep(store, key, entryOf('"new"'));
      expect(await heldIn(store, key)).toBe('"new"');
    });

    test('does not replace an answer with one that was asked for earlier', async () => {
      const earlier = await look(store, key);
      await engine.pass(5);
      const later = await look(store, key);
      expect(await saved(store, key, later, entryOf('"later"'))).toBe(true);
      expect(await saved(store, key, earlier, entryOf('"earlier"'))).toBe(false);
      expect(await heldIn(store, key)).toBe('"later"');
    });

    test('saves what several readers began with the same version', async () => {
      const [one, other] = [await look(store, key), await look(store, key)];
      expect(one.version).toBe(other.version);
      expect(await saved(store, key, one, entryOf('"one"'))).toBe(true);
      expect(await saved(store, key, other, entryOf('"other"'))).toBe(true);
    });

    test('takes an answer without tags', async () => {
      const untagged = keyIn(account, KEY, []);
      await keep(store, untagged, entryOf('"kept"'));
      await invalidate(store, account, ['subusers']);
      expect(await heldIn(store, untagged)).toBe('"kept"');
      await invalidate(store, account, [EVERYTHING]);
      expect(await heldIn(store, untagged)).toBeUndefined();
    });

    describe('keeps apart', () => {
      const KEYS = [
        'a/1?',
        'a/1?x',
        'a/1?x=1',
        'a/1?x=1&',
        'a/11?',
        'a/?1',
        'a/?',
        'A/1?',
        'a/1? ',
        'a/1?:',
        'a/1?*',
        'a/1?é',
      ];

      test('keys', async () => {
        for (const one of KEYS) await keep(store, keyIn(account, one), entryOf(one));
        for (const one of KEYS) expect(await heldIn(store, keyIn(account, one))).toBe(one);
      });

      test('accounts, whatever happens to one of them', async () => {
        const other = keyIn(newAccount());
        await keep(store, key, entryOf('"mine"'));
        await keep(store, other, entryOf('"theirs"'));
        expect([await heldIn(store, key), await heldIn(store, other)]).toEqual(['"mine"', '"theirs"']);
        await drop(store, other);
        expect([await heldIn(store, key), await heldIn(store, other)]).toEqual(['"mine"', undefined]);
        await invalidate(store, other.account, [EVERYTHING, ...TAGS]);
        expect(await heldIn(store, key)).toBe('"mine"');
      });
    });

    describe('drop', () => {
      test('forgets one answer and no other', async () => {
        const other = keyIn(account, 'getSubuser/5?plan_id=1');
        await keep(store, key, entryOf('"gone"'));
        await keep(store, other, entryOf('"kept"'));
        await drop(store, key);
        expect([await heldIn(store, key), await heldIn(store, other)]).toEqual([undefined, '"kept"']);
      });

      test('of what is not there does nothing', async () => {
        await drop(store, key);
        expect(await keep(store, key, entryOf('"kept"'))).toBe(true);
      });

      test('refuses what began before it', async () => {
        await keep(store, key, entryOf('"gone"'));
        const found = await look(store, key);
        await drop(store, key);
        expect(await saved(store, key, found, entryOf('"late"'))).toBe(false);
        expect(await heldIn(store, key)).toBeUndefined();
      });

      test('refuses what began before it, also where nothing was held', async () => {
        const found = await look(store, key);
        await drop(store, key);
        expect(await saved(store, key, found, entryOf('"late"'))).toBe(false);
      });

      test('leaves the key usable', async () => {
        await keep(store, key, entryOf('"gone"'));
        await drop(store, key);
        expect(await keep(store, key, entryOf('"again"'))).toBe(true);
        expect(await heldIn(store, key)).toBe('"again"');
      });
    });

    describe.each(INVALIDATIONS)('invalidating %s', (_, tags, ends) => {
      test(ends ? 'ends a copy' : 'leaves a copy alone', async () => {
        await keep(store, key, entryOf('"copy"'));
        await invalidate(store, account, tags);
        expect(await heldIn(store, key)).toBe(ends ? undefined : '"copy"');
      });

      test(ends ? 'refuses what began before it' : 'takes what began before it', async () => {
        const found = await look(store, key);
        await invalidate(store, account, tags);
        expect(await saved(store, key, found, entryOf('"copy"'))).toBe(!ends);
        expect(await heldIn(store, key)).toBe(ends ? undefined : '"copy"');
      });

      test('leaves the key usable', async () => {
        await invalidate(store, account, tags);
        expect(await keep(store, key, entryOf('"after"'))).toBe(true);
        expect(await heldIn(store, key)).toBe('"after"');
      });
    });

    describe('a version', () => {
      test('refuses a late answer where a newer one is there', async () => {
        const before = await look(store, key);
        await invalidate(store, account, ['subusers/5']);
        await keep(store, key, entryOf('"new"'));
        expect(await saved(store, key, before, entryOf('"late"'))).toBe(false);
        expect(await heldIn(store, key)).toBe('"new"');
      });

      test('refuses what was read between two writes that invalidate the same', async () => {
        await invalidate(store, account, ['subusers/5']);
        const found = await look(store, key);
        await invalidate(store, account, ['subusers/5']);
        expect(await saved(store, key, found, entryOf('"between"'))).toBe(false);
      });

      test('refuses it for an account that has only ever written', async () => {
        await invalidate(store, account, ['subusers']);
        const found = await look(store, key);
        await invalidate(store, account, ['subusers']);
        expect(await saved(store, key, found, entryOf('"between"'))).toBe(false);
      });

      test('refuses what was read before everything was dropped', async () => {
        await invalidate(store, account, ['subusers/5']);
        const found = await look(store, key);
        await invalidate(store, account, [EVERYTHING]);
        expect(await saved(store, key, found, entryOf('"late"'))).toBe(false);
      });

      test('of another account is refused', async () => {
        const other = keyIn(newAccount());
        const found = await look(store, other);
        await look(store, key);
        expect(await saved(store, key, found, entryOf('"foreign"'))).toBe(false);
      });

      test('that nobody gave out is refused', async () => {
        await keep(store, key, entryOf('"kept"'));
        const found = await look(store, key);
        for (const version of ['', '0', '-1.0.0', 'undefined'])
          expect(await saved(store, key, { ...found, version }, entryOf('"forged"')), version).toBe(false);
      });
    });

    test('never gives out a version again', async () => {
      const given: Found[] = [];
      const steps = [['subusers'], ['subusers/5'], [EVERYTHING], ['subusers', 'subusers/5'], [EVERYTHING, 'subusers']];
      for (let i = 0; i < 100; i += 1) {
        await invalidate(store, account, steps[i % steps.length] ?? []);
        given.push(await look(store, key));
      }
      expect(new Set(given.map(({ version }) => version)).size).toBe(100);
      for (const found of given) expect(await saved(store, key, found, entryOf('"old"'))).toBe(found === given.at(-1));
    });

    test('stays right however many tags an account invalidates', async () => {
      const before = await look(store, key);
      await keep(store, key, entryOf('"copy"'));
      await invalidate(store, account, ['subusers/5']);
      const between = await look(store, key);
      for (let id = 1000; id < 3000; id += 1) await invalidate(store, account, [`subusers/${id}`]);
      expect(await heldIn(store, key)).toBeUndefined();
      expect(await saved(store, key, before, entryOf('"late"'))).toBe(false);
      await invalidate(store, account, ['subusers/5']);
      expect(await saved(store, key, between, entryOf('"late"'))).toBe(false);
      expect(await keep(store, key, entryOf('"after"'))).toBe(true);
      expect(await heldIn(store, key)).toBe('"after"');
    });
  });
}

/** What every store says of a key that it is asked about. */
export function outcomesContract(name: string, makeEngine: MakeEngine): void {
  describe(`the outcome of a key in ${name}`, () => {
    let engine: Engine;
    let store: Store;
    let account: string;
    const TIMES = { now: START_MS, endsAt: START_MS + 10_000, until: START_MS + 70_000 };
    const keyed = (key = 'key') => writeOf({ account, key, ...TIMES });
    const asked = async (key = 'key', whose = account) =>
      (await store.beginWrite(questionOf({ account: whose, key, now: START_MS }))).record?.outcome;

    beforeEach(async () => {
      engine = await makeEngine();
      store = engine.store;
      account = newAccount();
    });

    test('is none of one that nobody has taken, however often it is asked for', async () => {
      for (let time = 0; time < 3; time++) expect(await asked()).toBeUndefined();
      expect(await store.beginWrite(keyed())).toEqual({ use: undefined });
    });

    test('is under way, then unknown, then the answer and when it was recorded', async () => {
      const write = keyed();
      await store.beginWrite(write);
      expect(await asked()).toBe('under_way');
      await store.endWrite(write, 'unknown');
      expect(await asked()).toBe('unknown');
      await store.endWrite(write, { ...ANSWER, at: 5 });
      expect(await asked()).toEqual({ ...ANSWER, at: 5 });
      await store.endWrite(write, ANSWER);
      expect(await asked()).toEqual(ANSWER);
    });

    test.each(['refused', 'credential_refused', 'not_sent'] as const)('is none where it was %s', async (end) => {
      const write = keyed();
      await store.beginWrite(write);
      await store.endWrite(write, end);
      expect(await asked()).toBeUndefined();
    });

    test('is of that key and that account only', async () => {
      const write = keyed();
      await store.beginWrite(write);
      await store.endWrite(write, ANSWER);
      expect([await asked('other'), await asked('key', newAccount())]).toEqual([undefined, undefined]);
    });
  });
}
