import { beforeEach, describe, expect, test } from 'vitest';
import { type Answers, type Entry, EVERYTHING, type Place, type Tag, type Versions } from '../../src/store/store.ts';
import { type Engine, type MakeEngine, PATIENT } from './engine.ts';

let accounts = 0;

/** An account that no other test has used: a store may outlive a test. */
export const newAccount = (): string => `account-${++accounts}-${crypto.randomUUID()}`;

export const entryOf = (text: string, changes: Partial<Entry> = {}): Entry => ({
  text,
  links: [],
  etag: `"${text.length}-${text.slice(0, 16)}"`,
  askedAt: 1_780_000_000_000,
  storedAt: 1_780_000_000_000,
  expiresAt: 1_780_000_600_000,
  validators: {},
  ...changes,
});

/** A read from its beginning to its end. */
export const keep = async (store: Answers, place: Place, entry: Entry): Promise<boolean> => {
  const { versions } = await store.lookup(place);
  return store.save(place, entry, versions);
};

export const heldIn = async (store: Answers, place: Place): Promise<string | undefined> =>
  (await store.lookup(place)).entry?.text;

const KEY = 'getSubuser/5?';
const TAGS = ['subusers', 'subusers/5'] as const;

export const placeIn = (account: string, key = KEY, tags: readonly Tag[] = TAGS): Place => ({ account, key, tags });

/** What makes a copy at the place with `TAGS` worthless, and what does not. */
const TOUCHES: readonly (readonly [string, readonly Tag[], boolean])[] = [
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

/** What any store has to keep, whatever it keeps it in. */
export function answersContract(name: string, makeEngine: MakeEngine): void {
  describe(`${name}, as a keeper of answers`, PATIENT, () => {
    let engine: Engine;
    let store: Answers;
    let account: string;
    let place: Place;

    beforeEach(async () => {
      engine = await makeEngine();
      store = engine.store.answers;
      account = newAccount();
      place = placeIn(account);
    });

    test('finds nothing where nothing was saved', async () => {
      expect((await store.lookup(place)).entry).toBeUndefined();
    });

    test('gives back an entry as it was saved', async () => {
      const entry = entryOf('{"next":"","x":9007199254740993123,"é":"\u{1f600}\u2028"}', {
        links: [9],
        storedAt: 1_780_000_000_123.25,
        validators: { etag: 'W/"a"', lastModified: 'Tue, 09 Jun 2026 11:50:08 GMT' },
      });
      expect(await keep(store, place, entry)).toBe(true);
      expect((await store.lookup(place)).entry).toEqual(entry);
    });

    test('keeps an entry for as long as it is of use, whether anybody looks for it or not', async () => {
      const entry = entryOf('"kept"');
      await keep(store, place, entry);
      await engine.pass(entry.expiresAt - entry.storedAt - 1 - engine.slackMs);
      expect(await heldIn(store, place)).toBe('"kept"');
    });

    test('keeps the newest entry', async () => {
      await keep(store, place, entryOf('"old"'));
      await keep(store, place, entryOf('"new"'));
      expect(await heldIn(store, place)).toBe('"new"');
    });

    test('does not put an answer to an earlier question in the place of one to a later', async () => {
      const { versions } = await store.lookup(place);
      const later = entryOf('"later"', { askedAt: 1_780_000_000_001, storedAt: 1_780_000_000_001 });
      const earlier = entryOf('"earlier"', { askedAt: 1_780_000_000_000.5, storedAt: 1_780_000_000_002 });
      expect(await store.save(place, later, versions)).toBe(true);
      expect(await store.save(place, earlier, versions)).toBe(false);
      expect(await heldIn(store, place)).toBe('"later"');
      await store.touch(account, ['subusers']);
      expect(await keep(store, place, earlier)).toBe(true);
    });

    test('saves what several readers began with the same versions', async () => {
      const [one, other] = [await store.lookup(place), await store.lookup(place)];
      expect(one.versions).toBe(other.versions);
      expect(await store.save(place, entryOf('"one"'), one.versions)).toBe(true);
      expect(await store.save(place, entryOf('"other"'), other.versions)).toBe(true);
    });

    test('takes an answer without tags', async () => {
      const untagged = placeIn(account, KEY, []);
      await keep(store, untagged, entryOf('"kept"'));
      await store.touch(account, ['subusers']);
      expect(await heldIn(store, untagged)).toBe('"kept"');
      await store.touch(account, [EVERYTHING]);
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
        for (const key of KEYS) await keep(store, placeIn(account, key), entryOf(key));
        for (const key of KEYS) expect(await heldIn(store, placeIn(account, key))).toBe(key);
      });

      test('accounts, whatever happens to one of them', async () => {
        const other = placeIn(newAccount());
        await keep(store, place, entryOf('"mine"'));
        await keep(store, other, entryOf('"theirs"'));
        expect([await heldIn(store, place), await heldIn(store, other)]).toEqual(['"mine"', '"theirs"']);
        await store.drop(other);
        expect([await heldIn(store, place), await heldIn(store, other)]).toEqual(['"mine"', undefined]);
        await store.touch(other.account, [EVERYTHING, ...TAGS]);
        expect(await heldIn(store, place)).toBe('"mine"');
      });
    });

    describe('drop', () => {
      test('forgets one answer and no other', async () => {
        const other = placeIn(account, 'getSubuser/5?plan_id=1');
        await keep(store, place, entryOf('"gone"'));
        await keep(store, other, entryOf('"kept"'));
        await store.drop(place);
        expect([await heldIn(store, place), await heldIn(store, other)]).toEqual([undefined, '"kept"']);
      });

      test('of what is not there does nothing', async () => {
        await store.drop(place);
        expect(await keep(store, place, entryOf('"kept"'))).toBe(true);
      });

      test('refuses what began before it', async () => {
        await keep(store, place, entryOf('"gone"'));
        const { versions } = await store.lookup(place);
        await store.drop(place);
        expect(await store.save(place, entryOf('"late"'), versions)).toBe(false);
        expect(await heldIn(store, place)).toBeUndefined();
      });

      test('refuses what began before it, also where nothing was held', async () => {
        const { versions } = await store.lookup(place);
        await store.drop(place);
        expect(await store.save(place, entryOf('"late"'), versions)).toBe(false);
      });

      test('leaves the place usable', async () => {
        await keep(store, place, entryOf('"gone"'));
        await store.drop(place);
        expect(await keep(store, place, entryOf('"again"'))).toBe(true);
        expect(await heldIn(store, place)).toBe('"again"');
      });
    });

    describe.each(TOUCHES)('touching %s', (_, tags, ends) => {
      test(ends ? 'makes a copy worthless' : 'leaves a copy alone', async () => {
        await keep(store, place, entryOf('"copy"'));
        await store.touch(account, tags);
        expect(await heldIn(store, place)).toBe(ends ? undefined : '"copy"');
      });

      test(ends ? 'refuses what began before it' : 'takes what began before it', async () => {
        const { versions } = await store.lookup(place);
        await store.touch(account, tags);
        expect(await store.save(place, entryOf('"copy"'), versions)).toBe(!ends);
        expect(await heldIn(store, place)).toBe(ends ? undefined : '"copy"');
      });

      test('leaves the place usable', async () => {
        await store.touch(account, tags);
        expect(await keep(store, place, entryOf('"after"'))).toBe(true);
        expect(await heldIn(store, place)).toBe('"after"');
      });
    });

    describe('a fence', () => {
      test('holds against a late answer when a newer one is there', async () => {
        const before = await store.lookup(place);
        await store.touch(account, ['subusers/5']);
        await keep(store, place, entryOf('"new"'));
        expect(await store.save(place, entryOf('"late"'), before.versions)).toBe(false);
        expect(await heldIn(store, place)).toBe('"new"');
      });

      test('holds between two touches of one write', async () => {
        await store.touch(account, ['subusers/5']);
        const { versions } = await store.lookup(place);
        await store.touch(account, ['subusers/5']);
        expect(await store.save(place, entryOf('"between"'), versions)).toBe(false);
      });

      test('holds for an account that has only ever written', async () => {
        await store.touch(account, ['subusers']);
        const { versions } = await store.lookup(place);
        await store.touch(account, ['subusers']);
        expect(await store.save(place, entryOf('"between"'), versions)).toBe(false);
      });

      test('holds after everything was dropped', async () => {
        await store.touch(account, ['subusers/5']);
        const { versions } = await store.lookup(place);
        await store.touch(account, [EVERYTHING]);
        expect(await store.save(place, entryOf('"late"'), versions)).toBe(false);
      });

      test('of one account does not open for the versions of another', async () => {
        const other = placeIn(newAccount());
        const { versions } = await store.lookup(other);
        await store.lookup(place);
        expect(await store.save(place, entryOf('"foreign"'), versions)).toBe(false);
      });

      test('does not open for versions that nobody gave out', async () => {
        await keep(store, place, entryOf('"kept"'));
        for (const versions of ['', '0', '-1.0.0', 'undefined'])
          expect(await store.save(place, entryOf('"forged"'), versions), versions).toBe(false);
      });
    });

    test('never gives out versions again', async () => {
      const given = new Set<Versions>();
      const steps = [['subusers'], ['subusers/5'], [EVERYTHING], ['subusers', 'subusers/5'], [EVERYTHING, 'subusers']];
      for (let i = 0; i < 100; i += 1) {
        await store.touch(account, steps[i % steps.length] ?? []);
        const { versions } = await store.lookup(place);
        expect(given.has(versions)).toBe(false);
        given.add(versions);
      }
      for (const versions of given) {
        const isCurrent = versions === (await store.lookup(place)).versions;
        expect(await store.save(place, entryOf('"old"'), versions)).toBe(isCurrent);
      }
    });

    test('of an account that touches tags without end stays right', async () => {
      const before = await store.lookup(place);
      await keep(store, place, entryOf('"copy"'));
      await store.touch(account, ['subusers/5']);
      const between = await store.lookup(place);
      for (let id = 1000; id < 3000; id += 1) await store.touch(account, [`subusers/${id}`]);
      expect(await heldIn(store, place)).toBeUndefined();
      expect(await store.save(place, entryOf('"late"'), before.versions)).toBe(false);
      await store.touch(account, ['subusers/5']);
      expect(await store.save(place, entryOf('"late"'), between.versions)).toBe(false);
      expect(await keep(store, place, entryOf('"after"'))).toBe(true);
      expect(await heldIn(store, place)).toBe('"after"');
    });
  });
}
