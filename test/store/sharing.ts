import { beforeEach, describe, expect, test } from 'vitest';
import type { MaybePromise } from '../../src/core/runtime.ts';
import {
  type Claim,
  EVERYTHING,
  type Place,
  type Records,
  type Store,
  type Turns,
  type Versions,
} from '../../src/store/store.ts';
import { entryOf, heldIn, keep, newAccount, placeIn } from './contract.ts';
import type { MakeSharedEngine, SharedEngine } from './engine.ts';
import { MINUTE_MS, windowOf, within } from './limits.ts';
import { ask, claimOf, LONG_OVER_MS, WITHHELD } from './records.ts';
import { arrivalOf } from './visits.ts';

/** What the holder of a claim may do with its record. */
const DEEDS: readonly (readonly [string, (records: Records, claim: Claim) => MaybePromise<void>])[] = [
  ['begin', async (records, claim) => records.begin(claim)],
  ['settle', async (records, claim) => records.settle(claim, { status: 200, text: 'foreign' })],
  ['settle as unknown', async (records, claim) => records.settle(claim, 'unknown')],
  ['release', async (records, claim) => records.release(claim)],
];

const knownAs = (outcome: unknown) => ({ fingerprint: 'print', outcome });

const TURN_MS = 1_000;

function turnsOf({ turns }: Store): Turns {
  if (!turns) throw new Error('instances that share a store take turns');
  return turns;
}

/** What any store has to keep that several instances share. */
export function sharingContract(name: string, makeEngine: MakeSharedEngine): void {
  describe(`${name}, shared by two instances`, () => {
    let engine: SharedEngine;
    let store: Store;
    let other: Store;
    let account: string;
    let place: Place;

    beforeEach(async () => {
      engine = await makeEngine();
      ({ store, other } = engine);
      account = newAccount();
      place = placeIn(account);
    });

    describe('lets each see of the other', () => {
      test('what it saved', async () => {
        const entry = entryOf('{"a":"é"}', {
          links: [3],
          storedAt: 1_780_000_000_000.5,
          validators: { etag: 'W/"a"' },
        });
        await keep(store.answers, place, entry);
        expect((await other.answers.lookup(place)).entry).toEqual(entry);
      });

      test('what it saved anew, also where an older copy is at hand', async () => {
        await keep(store.answers, place, entryOf('"old"'));
        expect(await heldIn(other.answers, place)).toBe('"old"');
        await keep(store.answers, place, entryOf('"new"', { askedAt: 1_780_000_000_001 }));
        expect(await heldIn(other.answers, place)).toBe('"new"');
      });

      test.each([
        ['one of its tags', ['subusers/5']],
        ['its group', ['subusers']],
        ['everything', [EVERYTHING]],
      ])('that it touched %s', async (_, tags) => {
        await keep(store.answers, place, entryOf('"gone"'));
        expect(await heldIn(other.answers, place)).toBe('"gone"');
        await store.answers.touch(account, tags);
        expect(await heldIn(other.answers, place)).toBeUndefined();
      });

      test('that it dropped an answer', async () => {
        await keep(store.answers, place, entryOf('"gone"'));
        await heldIn(other.answers, place);
        await store.answers.drop(place);
        expect(await heldIn(other.answers, place)).toBeUndefined();
      });

      test('how often it took from a window', async () => {
        const window = windowOf({ account });
        const uses = [];
        for (const { limits } of [store, other, other, store]) uses.push((await limits.take(window)).used);
        uses.push((await other.visit(arrivalOf(account, [], { now: window.now }))).use?.used);
        expect(uses).toEqual([1, 2, 3, 4, 5]);
      });

      test('with its next visit that the upstream wants no calls', async () => {
        const now = Date.now();
        await store.limits.hold(account, now + MINUTE_MS);
        expect(other.limits.heldUntil(account)).toBeLessThanOrEqual(now);
        await other.visit(arrivalOf(account, [], { window: undefined }));
        expect(other.limits.heldUntil(account) - now).toEqual(within(MINUTE_MS, engine.slackMs));
      });

      test('that a hold was made longer, and never that it is shorter', async () => {
        const now = Date.now();
        await store.limits.hold(account, now + 2 * MINUTE_MS);
        await other.limits.hold(account, now + MINUTE_MS);
        await other.visit(arrivalOf(account));
        expect(other.limits.heldUntil(account) - now).toEqual(within(2 * MINUTE_MS, engine.slackMs));
      });
    });

    describe('refuses what one began', () => {
      test('before the other touched its tags', async () => {
        const { versions } = await store.answers.lookup(place);
        await other.answers.touch(account, ['subusers']);
        expect(await store.answers.save(place, entryOf('"late"'), versions)).toBe(false);
        expect(await heldIn(other.answers, place)).toBeUndefined();
      });

      test('before a later question of the other was answered', async () => {
        const { versions } = await store.answers.lookup(place);
        await keep(other.answers, place, entryOf('"later"', { askedAt: 1_780_000_000_001 }));
        expect(await store.answers.save(place, entryOf('"earlier"'), versions)).toBe(false);
        expect(await heldIn(store.answers, place)).toBe('"later"');
      });
    });

    test('a visit knows answers as they stood then, whatever the other does next', async () => {
      const empty = placeIn(account, 'empty?');
      await keep(other.answers, place, entryOf('"then"'));
      const { known } = await store.visit(arrivalOf(account, [place, empty]));
      await other.answers.touch(account, ['subusers']);
      await keep(other.answers, empty, entryOf('"since"'));
      const [found, missed] = [await known.lookup(place), await known.lookup(empty)];
      expect([found.entry?.text, missed.entry]).toEqual(['"then"', undefined]);
      expect(await store.answers.save(place, entryOf('"late"'), found.versions)).toBe(false);
    });

    describe('a key that one has claimed', () => {
      let claim: Claim;

      beforeEach(async () => {
        claim = claimOf({ account });
        expect(await ask(store.records, claim)).toBeUndefined();
      });

      /** What another request finds on the other instance. */
      const askOther = () => ask(other.records, { ...claim, nonce: crypto.randomUUID(), fingerprint: 'other' });

      test('is taken for the other, from the claim to the answer', async () => {
        expect(await askOther()).toEqual(knownAs('under_way'));
        await store.records.begin(claim);
        expect(await askOther()).toEqual(knownAs('under_way'));
        await store.records.settle(claim, { status: 201, text: '{"id":1}' });
        expect(await askOther()).toEqual(knownAs({ status: 201, text: '{"id":1}' }));
      });

      test('is free for the other once it is released', async () => {
        await store.records.release(claim);
        expect(await askOther()).toBeUndefined();
      });

      test('has an outcome that is unknown to both', async () => {
        await store.records.begin(claim);
        await store.records.settle(claim, 'unknown');
        expect(await askOther()).toEqual(knownAs('unknown'));
      });

      test('is free again once the request must be over that has not begun', async () => {
        await engine.pass(LONG_OVER_MS);
        expect(await askOther()).toBeUndefined();
      });

      test('has an outcome that is unknown once the request that began it must be over', async () => {
        await store.records.begin(claim);
        await engine.pass(LONG_OVER_MS);
        expect(await askOther()).toEqual(knownAs('unknown'));
        await store.records.settle(claim, { status: 200, text: 'late' });
        expect(await askOther()).toEqual(knownAs({ status: 200, text: 'late' }));
      });

      test.each(DEEDS)('is nothing that a request of another nonce can %s', async (_, act) => {
        const foreign = { ...claim, nonce: crypto.randomUUID() };
        await Promise.resolve(act(other.records, foreign)).catch(() => undefined);
        expect(await askOther()).toEqual(knownAs('under_way'));
        await store.records.begin(claim);
        await store.records.settle(claim, { status: 200, text: 'own' });
        await Promise.resolve(act(other.records, foreign)).catch(() => undefined);
        expect(await askOther()).toEqual(knownAs({ status: 200, text: 'own' }));
      });

      test('cannot be begun under another nonce, nor once it is free', async () => {
        const foreign = { ...claim, nonce: crypto.randomUUID() };
        await expect(async () => other.records.begin(foreign)).rejects.toMatchObject(WITHHELD);
        await store.records.release(claim);
        await expect(async () => store.records.begin(claim)).rejects.toMatchObject(WITHHELD);
      });
    });

    describe('the turn at a place', () => {
      let turns: Turns;
      let others: Turns;
      let versions: Versions;

      beforeEach(async () => {
        [turns, others] = [turnsOf(store), turnsOf(other)];
        ({ versions } = await store.answers.lookup(place));
      });

      test('is one instance’s at a time, which may take it again', async () => {
        expect(await turns.take(place, versions)).toBe(true);
        expect(await others.take(place, versions)).toBe(false);
        expect(await turns.take(place, versions)).toBe(true);
        await turns.pass(place);
        expect(await others.take(place, versions)).toBe(true);
        expect(await turns.take(place, versions)).toBe(false);
      });

      test('is passed by nobody but who has it', async () => {
        await turns.take(place, versions);
        await others.pass(place);
        expect(await others.take(place, versions)).toBe(false);
      });

      test('is taken over once something touched what is asked for', async () => {
        await turns.take(place, versions);
        await store.answers.touch(account, ['subusers']);
        expect(await others.take(place, (await other.answers.lookup(place)).versions)).toBe(true);
      });

      test('has nothing to do with those at other places, and of other accounts', async () => {
        await turns.take(place, versions);
        expect(await others.take(placeIn(account, 'other?'), versions)).toBe(true);
        expect(await others.take(placeIn(newAccount()), versions)).toBe(true);
      });

      test('is not kept for long by an instance that is gone', async () => {
        await turns.take(place, versions);
        await engine.pass(TURN_MS);
        expect(await others.take(place, versions)).toBe(true);
      });

      test('is one of many instances’ at one moment', async () => {
        const taken = await Promise.all([turns, others].map((each) => each.take(place, versions)));
        expect(taken.filter(Boolean)).toHaveLength(1);
      });
    });

    test('of many claims at one moment exactly one gets the key', async () => {
      const claims = Array.from({ length: 40 }, () => claimOf({ account }));
      const asked = claims.map((claim, n) => ask((n % 2 ? store : other).records, claim));
      const free = (await Promise.all(asked)).filter((known) => known === undefined);
      expect(free).toHaveLength(1);
    });
  });
}
