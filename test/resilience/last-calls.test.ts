import { describe, expect, test } from 'vitest';
import { LastCalls } from '../../src/resilience/last-calls.ts';
import { SlidingWindow } from '../../src/resilience/sliding-window.ts';

const SPAN_MS = 10_000;
const STEP_MS = SPAN_MS / 20;

interface Call {
  readonly account: string;
  readonly at: number;
  readonly isBad: boolean;
}

/** What section 7 of the contract says, counted anew. */
const areHalfBad = (calls: readonly Call[]) => {
  const accounts = Map.groupBy(calls, ({ account }) => account);
  const each = Math.max(5, Math.ceil(20 / accounts.size));
  const last = [...accounts.values()].flatMap((own) => own.slice(-each));
  return last.length >= 20 && last.filter(({ isBad }) => isBad).length * 2 >= last.length;
};

/** The same numbers in each run. */
const numbers = (seed: number) => {
  let state = seed;
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};

describe('the last calls of each account', () => {
  test.each([1, 2, 3, 4, 5, 6])('are what counting them anew gives, with up to %i accounts', (accounts) => {
    const random = numbers(accounts);
    const calls = new LastCalls();
    let kept: Call[] = [];
    let now = 1_000_000;
    const seen = new Set<boolean>();
    for (let turn = 0; turn < 3_000; turn++) {
      now += STEP_MS * (random(50) === 0 ? random(30) : random(8) === 0 ? 1 : 0);
      const isBad = random(100) < (Math.floor(turn / 100) % 3) * 30 + 15;
      const call = { account: `account ${random(accounts)}`, at: now, isBad };
      calls.add(call.account, call);
      kept = [...kept, call].filter(({ at }) => at > now - SPAN_MS);
      expect(calls.areHalfBad(now)).toBe(areHalfBad(kept));
      seen.add(areHalfBad(kept));
    }
    expect(seen).toEqual(new Set([true, false]));
  });

  test('of more accounts than are told apart are those of one', () => {
    const calls = new LastCalls();
    for (let n = 0; n < 5_000; n++) calls.add(`account ${n}`, { at: 0, isBad: n % 2 === 0 });
    for (let n = 0; n < 5_000; n++) calls.add(`good ${n}`, { at: 0, isBad: false });
    expect(calls.areHalfBad(0)).toBe(false); // 2,500 of 5,005
    for (let n = 0; n < 5_000; n++) calls.add(`bad ${n}`, { at: 0, isBad: true });
    expect(calls.areHalfBad(0)).toBe(true); // 2,505 of 5,005
  });
});

test('a sliding window forgets what is older than its span, and takes back what is not', () => {
  const window = new SlidingWindow(SPAN_MS);
  window.add(1_000_000);
  window.add(1_000_000 + STEP_MS, 2);
  expect(window.sum(1_000_000 + SPAN_MS - 1)).toBe(3);
  expect(window.sum(1_000_000 + SPAN_MS)).toBe(2);
  window.add(1_000_000, -1);
  expect(window.sum(1_000_000 + SPAN_MS)).toBe(2);
  window.add(1_000_000 + STEP_MS, -1);
  expect(window.sum(1_000_000 + SPAN_MS)).toBe(1);
  expect(window.sum(9_000_000)).toBe(0);
});
