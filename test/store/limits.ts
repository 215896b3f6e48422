import { beforeEach, describe, expect, test } from 'vitest';
import type { Limits, Window } from '../../src/store/store.ts';
import { newAccount } from './contract.ts';
import { type Engine, type MakeEngine, travelling } from './engine.ts';

export const MINUTE_MS = 60_000;

/** Of now, since a store may count its own time as well. */
export const windowOf = (changes: Partial<Window> = {}): Window => ({
  account: newAccount(),
  name: 'requests',
  lengthMs: MINUTE_MS,
  now: Date.now(),
  ...changes,
});

export const take = async (store: Limits, window: Window): Promise<readonly [used: number, endsIn: number]> => {
  const { used, endsAt } = await store.take(window);
  return [used, endsAt - window.now];
};

/** A number that is so much, give or take. */
export const within = (ms: number, slackMs: number): unknown =>
  expect.toSatisfy((value: number) => Math.abs(value - ms) <= slackMs, `${ms}, give or take ${slackMs}`);

/** What any store has to keep, whatever it keeps it in. */
export function limitsContract(name: string, makeEngine: MakeEngine): void {
  describe(`${name}, as a keeper of limits`, () => {
    let engine: Engine;
    let store: Limits;
    let window: Window;
    let at: (ms: number) => Promise<void>;

    beforeEach(async () => {
      engine = await makeEngine();
      store = engine.store.limits;
      window = windowOf();
      at = travelling(engine);
    });

    /** What a take comes to, so much later. */
    const takeAt = async (ms: number) => {
      await at(ms);
      return take(store, { ...window, now: window.now + ms });
    };

    const about = (ms: number) => within(ms, engine.slackMs);

    describe('a window', () => {
      test('counts from the first one on, and ends its length after that', async () => {
        const last = MINUTE_MS - 1 - engine.slackMs;
        expect(await takeAt(0)).toEqual([1, about(MINUTE_MS)]);
        expect(await takeAt(20_000)).toEqual([2, about(40_000)]);
        expect(await takeAt(last)).toEqual([3, about(MINUTE_MS - last)]);
      });

      test('is followed by another, which begins with the next one', async () => {
        await store.take(window);
        await store.take(window);
        expect(await takeAt(MINUTE_MS)).toEqual([1, about(MINUTE_MS)]);
        expect(await takeAt(3 * MINUTE_MS)).toEqual([1, about(MINUTE_MS)]);
      });

      test('counts each of many at one moment once', async () => {
        const uses = await Promise.all(Array.from({ length: 20 }, async () => (await store.take(window)).used));
        expect(uses.toSorted((one, other) => one - other)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
      });

      test('that was told of stays as it was told', async () => {
        const first = await store.take(window);
        const told = { ...first };
        await store.take(window);
        expect(first).toEqual(told);
      });

      test.each<[string, Partial<Window>]>([
        ['of another account', { account: newAccount() }],
        ['of another name', { name: 'upstream calls' }],
        ['of a name that begins alike', { name: 'requests 2' }],
      ])('has nothing to do with one %s', async (_, changes) => {
        for (let time = 0; time < 5; time += 1) await store.take(window);
        expect(await take(store, { ...window, ...changes })).toEqual([1, about(MINUTE_MS)]);
        expect((await take(store, window))[0]).toBe(6);
      });

      test('may begin between two milliseconds', async () => {
        const fine = windowOf({ now: Date.now() + 0.4375 });
        const { used, endsAt } = await store.take(fine);
        expect(used).toBe(1);
        expect(Math.abs(endsAt - (fine.now + MINUTE_MS))).toBeLessThanOrEqual(1 + engine.slackMs);
        expect((await store.take({ ...fine, now: fine.now + 10.25 })).used).toBe(2);
      });
    });

    describe('a hold', () => {
      const { now } = windowOf();

      test('is over where there was none', async () => {
        expect(store.heldUntil(window.account)).toBeLessThanOrEqual(now);
      });

      test('lasts as long as was said', async () => {
        await store.hold(window.account, now + 30_000);
        expect(store.heldUntil(window.account)).toBe(now + 30_000);
      });

      test('is made longer by a later one, and never shorter', async () => {
        await store.hold(window.account, now + 30_000);
        await store.hold(window.account, now + 10_000);
        expect(store.heldUntil(window.account)).toBe(now + 30_000);
        await store.hold(window.account, now + 90_000);
        expect(store.heldUntil(window.account)).toBe(now + 90_000);
      });

      test('is the longest of many at one moment', async () => {
        const ends = [5, 60, 20, 40].map((seconds) => now + seconds * 1000);
        await Promise.all(ends.map(async (until) => store.hold(window.account, until)));
        expect(store.heldUntil(window.account)).toBe(now + 60_000);
      });

      test('is the account’s own', async () => {
        await store.hold(window.account, now + 30_000);
        expect(store.heldUntil(newAccount())).toBeLessThanOrEqual(now);
        expect(await take(store, window)).toEqual([1, about(MINUTE_MS)]);
      });

      test('of the past holds nothing', async () => {
        await store.hold(window.account, now - 1);
        expect(store.heldUntil(window.account)).toBeLessThanOrEqual(now);
      });

      test('may end between two milliseconds', async () => {
        await store.hold(window.account, now + 5000.4375);
        expect(Math.abs(store.heldUntil(window.account) - (now + 5000.4375))).toBeLessThanOrEqual(1);
      });
    });
  });
}
