import { beforeEach, describe, expect, test } from 'vitest';
import type { MaybePromise } from '../../src/core/runtime.ts';
import type { Claim, Records, WriteAnswer, WriteRecord } from '../../src/store/store.ts';
import { newAccount } from './contract.ts';
import { type Engine, type MakeEngine, travelling } from './engine.ts';

export const DAY_MS = 86_400_000;
/** How long the request behind a claim may take. */
const BUSY_MS = 10_000;
/** By which time nobody takes it to be under way any more. */
export const LONG_OVER_MS = 2 * BUSY_MS;

/** Of now, since a store may count its own time as well. */
export const claimOf = (changes: Partial<Claim> = {}): Claim => {
  const now = changes.now ?? Date.now();
  return {
    account: newAccount(),
    key: 'key',
    fingerprint: 'print',
    nonce: crypto.randomUUID(),
    now,
    endsAt: now + BUSY_MS,
    expiresAt: now + DAY_MS,
    lasting: false,
    ...changes,
  };
};

/** A refusal that says that nothing was sent. */
export const WITHHELD = { code: 'store_unavailable', particulars: { fault: 'withheld' } };

/** Another request of the same client, so much later. */
export const later = (claim: Claim, ms: number, changes: Partial<Claim> = {}): Claim => {
  const now = claim.now + ms;
  return { ...claim, nonce: crypto.randomUUID(), now, endsAt: now + BUSY_MS, expiresAt: now + DAY_MS, ...changes };
};

const ANSWERS: readonly (readonly [string, WriteAnswer])[] = [
  ['JSON', { status: 201, text: '{"id":9007199254740993123,"amount":25.0}' }],
  ['no body', { status: 204, text: null }],
  ['an empty body', { status: 200, text: '' }],
  ['text beyond Latin-1', { status: 200, text: '"é я \u{1f600} \u2028 \u0000"' }],
  ['half a surrogate pair, as JSON writes it', { status: 200, text: String.raw`"\ud83d"` }],
  ['what reads like another outcome', { status: 200, text: '"unknown"' }],
  ['a megabyte', { status: 200, text: `"${'x'.repeat(1_048_576)}"` }],
];

/** What has become of a claimed write. */
type Ending = readonly [name: string, end: (store: Records, claim: Claim) => MaybePromise<void>, found: Found];
type Found = WriteRecord['outcome'] | undefined;

const ENDINGS: readonly Ending[] = [
  ['was begun', (store, claim) => store.begin(claim), 'under_way'],
  ['has an unknown outcome', (store, claim) => store.settle(claim, 'unknown'), 'unknown'],
  ['was answered', (store, claim) => store.settle(claim, { status: 200, text: '1' }), { status: 200, text: '1' }],
  ['was released', (store, claim) => store.release(claim), undefined],
];

/** An unsettled write whose request must be over. */
const NEVER_FREE: unknown = expect.stringMatching(/^(?:under_way|unknown)$/);

const KEYS = ['a', 'A', 'aa', 'a:', 'a/b', 'a*', '*', '?', '{a}', '%61', "a'", '"a"', '__proto__', 'k'.repeat(255)];
/** Keys of ours hold a space. */
const OWN_KEYS = ['equal a', 'equal aa', 'equal'];

/** Claims; what is known of the write, where it is not free, and nothing that the store may say besides. */
export const ask = async (store: Records, claim: Claim): Promise<WriteRecord | undefined> => {
  const known = await store.claim(claim);
  return known && { fingerprint: known.fingerprint, outcome: known.outcome };
};

/** What any store has to keep, whatever it keeps it in. */
export function recordsContract(name: string, makeEngine: MakeEngine): void {
  describe(`${name}, as a keeper of records`, () => {
    let engine: Engine;
    let store: Records;
    let claim: Claim;
    let at: (ms: number) => Promise<void>;

    beforeEach(async () => {
      engine = await makeEngine();
      store = engine.store.records;
      claim = claimOf();
      at = travelling(engine);
    });

    /** What another request finds, so much later. */
    const askAt = async (ms: number, changes: Partial<Claim> = {}) => {
      await at(ms);
      return ask(store, later(claim, ms, changes));
    };

    /** The last moment of a span that is surely in it, and the first that surely is not. */
    const lastOf = (ms: number) => ms - 1 - engine.slackMs;
    const after = (ms: number) => ms + engine.slackMs;

    describe.each(ENDINGS)('a write that %s', (_, end, found) => {
      const known = found === undefined ? undefined : { fingerprint: 'print', outcome: found };

      beforeEach(async () => {
        expect(await ask(store, claim)).toBeUndefined();
        await end(store, claim);
      });

      test('is known as that, however often it is looked for', async () => {
        for (let time = 0; time < (known ? 3 : 1); time += 1) expect(await ask(store, claim)).toEqual(known);
      });

      test('is known by its first fingerprint', async () => {
        expect(await ask(store, { ...claim, fingerprint: 'other' })).toEqual(known);
        if (!known) expect(await ask(store, claim)).toEqual({ fingerprint: 'other', outcome: 'under_way' });
      });

      test('is known until its day is over, and no longer for having been looked for', async () => {
        // Who was to settle it may be gone, and the write done.
        const still = found === 'under_way' ? { ...known, outcome: NEVER_FREE } : known;
        expect(await askAt(DAY_MS / 2)).toEqual(still);
        if (!known) return;
        expect(await askAt(lastOf(DAY_MS))).toEqual(still);
        if (found !== 'under_way') expect(await askAt(after(DAY_MS), { fingerprint: 'next' })).toBeUndefined();
      });

      test('says nothing of other keys and accounts', async () => {
        expect(await ask(store, { ...claim, key: 'other' })).toBeUndefined();
        expect(await ask(store, { ...claim, account: newAccount() })).toBeUndefined();
      });
    });

    test('a write that was claimed and not begun yet is under way as long as its request may be', async () => {
      await ask(store, claim);
      expect(await askAt(lastOf(BUSY_MS))).toEqual({ fingerprint: 'print', outcome: 'under_way' });
    });

    test('a write that was begun is under way as long as its request may be, and never free after that', async () => {
      await ask(store, claim);
      await store.begin(claim);
      expect(await askAt(lastOf(BUSY_MS))).toEqual({ fingerprint: 'print', outcome: 'under_way' });
      expect(await askAt(LONG_OVER_MS)).toEqual({ fingerprint: 'print', outcome: NEVER_FREE });
    });

    test('a write that was begun can be answered, and released', async () => {
      const other = claimOf();
      for (const one of [claim, other]) {
        await ask(store, one);
        await store.begin(one);
      }
      await store.settle(claim, { status: 200, text: '1' });
      await store.release(other);
      expect(await ask(store, claim)).toEqual({ fingerprint: 'print', outcome: { status: 200, text: '1' } });
      expect(await ask(store, other)).toBeUndefined();
    });

    test.each(ANSWERS)('gives back an answer of %s as it was', async (_, answer) => {
      await ask(store, claim);
      await store.settle(claim, answer);
      expect(await ask(store, claim)).toEqual({ fingerprint: 'print', outcome: answer });
    });

    test.each<['unknown' | WriteAnswer]>([['unknown'], [{ status: 200, text: '1' }]])(
      'a key that was settled as %o can be had anew after its day, and begins a day of its own',
      async (outcome) => {
        await ask(store, claim);
        await store.settle(claim, outcome);
        const begun = after(DAY_MS);
        const second = later(claim, begun, { fingerprint: 'second' });
        await at(begun);
        expect(await ask(store, second)).toBeUndefined();
        expect(await askAt(begun + 1)).toEqual({ fingerprint: 'second', outcome: 'under_way' });
        await store.settle(second, { status: 201, text: '2' });
        const known = { fingerprint: 'second', outcome: { status: 201, text: '2' } };
        expect(await askAt(begun + lastOf(DAY_MS))).toEqual(known);
        expect(await askAt(begun + after(DAY_MS))).toBeUndefined();
      },
    );

    test('an answer counts its day from the claim, not from when it came', async () => {
      await ask(store, claim);
      await store.settle(claim, { status: 200, text: '1' });
      expect(await askAt(DAY_MS + 5000)).toBeUndefined();
    });

    test('instants may have fractions', async () => {
      claim = claimOf({ now: Date.now() + 0.4375 });
      await ask(store, claim);
      await store.settle(claim, { status: 200, text: '1' });
      expect(await askAt(lastOf(DAY_MS))).toMatchObject({ outcome: { text: '1' } });
      expect(await askAt(after(DAY_MS) + 1)).toBeUndefined();
    });

    test('a released key can be used and released again', async () => {
      for (let time = 0; time < 3; time += 1) {
        const next = { ...claim, fingerprint: `print ${time}` };
        expect(await ask(store, next)).toBeUndefined();
        expect(await ask(store, claim)).toEqual({ fingerprint: `print ${time}`, outcome: 'under_way' });
        await store.release(next);
      }
    });

    test('releasing what nobody claimed does nothing', async () => {
      await store.release(claim);
      expect(await ask(store, claim)).toBeUndefined();
    });

    test('of many claims at one moment exactly one gets the key', async () => {
      const prints = Array.from({ length: 20 }, (_, n) => `print ${n}`);
      const results = await Promise.all(prints.map((fingerprint) => ask(store, { ...claim, fingerprint })));
      const winner = results.findIndex((result) => result === undefined);
      const known = { fingerprint: `print ${winner}`, outcome: 'under_way' };
      expect(results.filter((result) => result === undefined)).toHaveLength(1);
      for (const result of results) expect(result ?? known).toEqual(known);
    });

    test('of many claims at the moment that the day is over exactly one gets the key', async () => {
      await ask(store, claim);
      await store.settle(claim, 'unknown');
      await at(after(DAY_MS));
      const next = () => later(claim, after(DAY_MS));
      const results = await Promise.all(Array.from({ length: 20 }, () => ask(store, next())));
      expect(results.filter((result) => result === undefined)).toHaveLength(1);
    });

    test('keeps keys apart', async () => {
      const keys = [...KEYS, ...OWN_KEYS];
      for (const key of keys) expect(await ask(store, { ...claim, key, fingerprint: key })).toBeUndefined();
      for (const key of keys) await store.settle({ ...claim, key, fingerprint: key }, { status: 200, text: key });
      for (const key of keys) {
        const known = { fingerprint: key, outcome: { status: 200, text: key } };
        expect(await ask(store, { ...claim, key })).toEqual(known);
      }
    });

    test('keeps accounts apart, whatever happens to one of them', async () => {
      const others = Array.from({ length: 4 }, () => claimOf({ now: claim.now }));
      for (const one of [claim, ...others]) expect(await ask(store, one)).toBeUndefined();
      await store.settle(others[0]!, 'unknown');
      await store.settle(others[1]!, { status: 200, text: 'theirs' });
      await store.release(others[2]!);
      expect(await ask(store, claim)).toEqual({ fingerprint: 'print', outcome: 'under_way' });
      await store.settle(claim, { status: 200, text: 'mine' });
      expect(await ask(store, others[0]!)).toMatchObject({ outcome: 'unknown' });
      expect(await ask(store, others[1]!)).toMatchObject({ outcome: { text: 'theirs' } });
      expect(await ask(store, others[2]!)).toBeUndefined();
      expect(await ask(store, others[3]!)).toMatchObject({ outcome: 'under_way' });
    });
  });
}
