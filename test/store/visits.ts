import { beforeEach, describe, expect, test } from 'vitest';
import type { Arrival, Known, Place, Store } from '../../src/store/store.ts';
import { entryOf, keep, newAccount, placeIn } from './contract.ts';
import { type Engine, type MakeEngine, travelling } from './engine.ts';
import { MINUTE_MS, within } from './limits.ts';

const WINDOW = { name: 'requests', lengthMs: MINUTE_MS };

/** A request that has come, looking for what it names. */
export const arrivalOf = (account: string, places: readonly Place[] = [], changes: Partial<Arrival> = {}): Arrival => ({
  account,
  now: Date.now(),
  window: WINDOW,
  places: () => places,
  ...changes,
});

const textIn = async (known: Known, place: Place) => (await known.lookup(place)).entry?.text;

/** What any store has to keep, whatever it keeps it in. */
export function visitsContract(name: string, makeEngine: MakeEngine): void {
  describe(`${name}, visited`, () => {
    let engine: Engine;
    let store: Store;
    let account: string;

    beforeEach(async () => {
      engine = await makeEngine();
      ({ store } = engine);
      account = newAccount();
    });

    test('counts in the window that takes count in', async () => {
      const now = Date.now();
      const uses = [];
      for (let n = 0; n < 2; n += 1) uses.push((await store.visit(arrivalOf(account, [], { now }))).use?.used);
      uses.push((await store.limits.take({ account, now, ...WINDOW })).used);
      uses.push((await store.visit(arrivalOf(account, [placeIn(account)], { now }))).use?.used);
      expect(uses).toEqual([1, 2, 3, 4]);
    });

    test('says when the window ends, and begins another after that', async () => {
      const now = Date.now();
      const at = travelling(engine);
      const endAt = async (ms: number) => {
        await at(ms);
        const { use } = await store.visit(arrivalOf(account, [], { now: now + ms }));
        return [use?.used, (use?.endsAt ?? 0) - now];
      };
      const about = (ms: number) => within(ms, engine.slackMs);
      expect(await endAt(0)).toEqual([1, about(MINUTE_MS)]);
      expect(await endAt(MINUTE_MS / 2)).toEqual([2, about(MINUTE_MS)]);
      expect(await endAt(MINUTE_MS)).toEqual([1, about(2 * MINUTE_MS)]);
    });

    test('counts nothing where no limit applies', async () => {
      const { use } = await store.visit(arrivalOf(account, [placeIn(account)], { window: undefined }));
      expect(use).toBeUndefined();
      expect((await store.visit(arrivalOf(account))).use?.used).toBe(1);
    });

    test('counts each of many at one moment once', async () => {
      const now = Date.now();
      const visits = await Promise.all(
        Array.from({ length: 20 }, async () => store.visit(arrivalOf(account, [], { now }))),
      );
      const uses = visits.map(({ use }) => use?.used ?? 0).toSorted((one, other) => one - other);
      expect(uses).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
    });

    test('finds several places in one go, whether something is there or not', async () => {
      const places = ['a/1?', 'b/2?', 'c/3?', 'd/4?'].map((key) => placeIn(account, key, [`tag-of-${key}`]));
      const [first, missing, touched, last] = places as [Place, Place, Place, Place];
      for (const place of [first, touched, last]) await keep(store.answers, place, entryOf(place.key));
      await store.answers.touch(account, touched.tags);
      const { known } = await store.visit(arrivalOf(account, places));
      const found = await Promise.all([last, missing, first, touched].map((place) => textIn(known, place)));
      expect(found).toEqual([last.key, undefined, first.key, undefined]);
    });

    test('finds the very entry that was saved, and versions to save another under', async () => {
      const place = placeIn(account);
      const entry = entryOf('{"é":1}', { links: [1], storedAt: 1_780_000_000_000.25, validators: { etag: '"v"' } });
      await keep(store.answers, place, entry);
      const { known } = await store.visit(arrivalOf(account, [place]));
      const found = await known.lookup(place);
      expect(found.entry).toEqual(entry);
      expect(await store.answers.save(place, entryOf('"newer"'), found.versions)).toBe(true);
    });

    test('gives versions that are worthless once something touched their tags', async () => {
      const place = placeIn(account);
      const { known } = await store.visit(arrivalOf(account, [place]));
      const { versions } = await known.lookup(place);
      await store.answers.touch(account, place.tags);
      expect(await store.answers.save(place, entryOf('"late"'), versions)).toBe(false);
    });

    test('looks up what it was not named when that is asked for', async () => {
      const [named, unnamed] = [placeIn(account, 'named?'), placeIn(account, 'unnamed?')];
      const { known } = await store.visit(arrivalOf(account, [named]));
      await keep(store.answers, unnamed, entryOf('"since"'));
      expect(await textIn(known, unnamed)).toBe('"since"');
    });
  });
}
