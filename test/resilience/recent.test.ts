import { describe, expect, test } from 'vitest';
import { Recent } from '../../src/resilience/recent.ts';

const SPAN_MS = 10_000;
const STEP_MS = SPAN_MS / 20;

interface Event {
  readonly what: 'calls' | 'marked';
  readonly at: number;
  readonly caller: string;
}

const stepOf = (at: number) => Math.floor(at / STEP_MS);

/** What there is to know of these events, counted anew. */
const countedAnew = (events: readonly Event[], now: number) => {
  const live = events.filter(({ at }) => stepOf(at) > stepOf(now) - 20);
  const countOf = (some: readonly Event[]) => ({
    calls: some.filter(({ what }) => what === 'calls').length,
    marked: some.filter(({ what }) => what === 'marked').length,
  });
  const counts = [...Map.groupBy(live, ({ caller }) => caller).values()].map(countOf);
  return {
    totals: countOf(live),
    names: { all: counts.length, bad: counts.filter(({ calls, marked }) => marked * 2 > calls).length },
    worst: Math.max(0, ...counts.map(({ marked }) => marked)),
  };
};

/** The same numbers in each run. */
const numbers = (seed: number) => {
  let state = seed;
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};

describe('the calls of the last ten seconds', () => {
  test.each([1, 2, 3, 4, 5])('are what counting them anew gives, schedule %i', (seed) => {
    const random = numbers(seed);
    const recent = new Recent(SPAN_MS);
    const events: Event[] = [];
    let now = 1_000_000;
    for (let turn = 0; turn < 1_000; turn++) {
      now += random(10) === 0 ? random(4_000) : random(200);
      const caller = `caller-${random(7)}`;
      const isMarked = random(3) === 0;
      for (const what of isMarked ? (['calls', 'marked'] as const) : (['calls'] as const)) {
        recent.count(what, now, caller);
        events.push({ what, at: now, caller });
      }
      if (random(5) > 0) continue;
      const seen = { totals: { ...recent.totals(now) }, names: recent.names(now), worst: recent.worst(now).marked };
      expect(seen).toEqual(countedAnew(events, now));
    }
  });

  test('of more callers than are told apart count all the same, and what is kept of them is bounded', () => {
    const recent = new Recent(SPAN_MS);
    for (let n = 0; n < 100_000; n++) recent.count('calls', 0, `caller-${n}`);
    expect(recent.totals(0).calls).toBe(100_000);
    expect(recent.names(0).all).toBeLessThanOrEqual(5_000);
    recent.count('calls', SPAN_MS, 'another');
    expect(recent.names(SPAN_MS)).toEqual({ all: 1, bad: 0 });
    expect(recent.of('another', SPAN_MS).calls).toBe(1);
  });
});
