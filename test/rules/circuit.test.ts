import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { LastCalls } from '../../src/resilience/last-calls.ts';
import { seed, times } from '../support/times.ts';

const SPAN_MS = 10_000;
/** By which calls are forgotten together. */
const STEP_MS = SPAN_MS / 20;

interface Call {
  readonly account: string;
  readonly at: number;
  readonly isBad: boolean;
}

/** What section 7 of the contract says, counted anew. */
function areHalfBad(calls: readonly Call[]): boolean {
  const accounts = Map.groupBy(calls, ({ account }) => account);
  const each = Math.max(5, Math.ceil(20 / accounts.size));
  const last = [...accounts.values()].flatMap((own) => own.slice(-each));
  return last.length >= 20 && last.filter(({ isBad }) => isBad).length * 2 >= last.length;
}

const calling = fc.record({
  steps: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 1, 1, 9),
  account: fc.nat({ max: 5 }),
  isBad: fc.constantFrom(true, true, false),
});

test('the last calls of each account are half bad where counting them anew says so', () => {
  const seen = new Set<boolean>();
  const counted = fc.property(
    fc.array(calling, { minLength: 20, maxLength: 120, size: 'max' }),
    fc.integer({ min: 1, max: 6 }),
    (all, accounts) => {
      const calls = new LastCalls();
      let kept: Call[] = [];
      let now = 1_000_000;
      for (const { steps, account, isBad } of all) {
        now += steps * STEP_MS;
        const call = { account: `account ${account % accounts}`, at: now, isBad };
        calls.add(call.account, call);
        kept = [...kept, call].filter(({ at }) => at > now - SPAN_MS);
        expect(calls.areHalfBad(now)).toBe(areHalfBad(kept));
        seen.add(areHalfBad(kept));
      }
    },
  );
  fc.assert(counted, { numRuns: times(200), seed: seed() });
  expect(seen.size).toBe(2);
});

test('accounts beyond the 5,000 that are told apart count as one', () => {
  const calls = new LastCalls();
  for (let n = 0; n < 5_000; n++) calls.add(`account ${n}`, { at: 0, isBad: n % 2 === 0 });
  for (let n = 0; n < 5_000; n++) calls.add(`good ${n}`, { at: 0, isBad: false });
  expect(calls.areHalfBad(0)).toBe(false); // 2,500 of 5,005
  for (let n = 0; n < 10; n++) calls.add(`bad ${n}`, { at: 0, isBad: true });
  expect(calls.areHalfBad(0)).toBe(true); // 2,505 of 5,005
});
