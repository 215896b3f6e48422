import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { legsOf, ownMsOf, Phase, PHASES } from '../../src/core/timeline.ts';

const waits = PHASES.filter((name) => name !== 'own');

const phase = fc
  .record({
    name: fc.constantFrom(...waits),
    leg: fc.constantFrom(undefined, 'a', 'b', 'c'),
    start: fc.nat(1000),
    ms: fc.nat(1000),
    isOver: fc.boolean(),
  })
  .map(({ name, leg, start, ms, isOver }) => {
    const made = new Phase(name, start, leg);
    if (isOver) made.end = start + ms;
    return made;
  });

const timeline = fc.record({ phases: fc.array(phase, { maxLength: 12 }), endedAt: fc.integer({ min: 0, max: 2500 }) });

test('whatever overlaps or has not ended, the phases of each leg add up to its time, and of the last to that of all', () => {
  fc.assert(
    fc.property(timeline, ({ phases, endedAt }) => {
      const legs = legsOf(phases, { name: 'whole', startedAt: 0, endedAt });
      for (const { ms, phases: sums } of legs) {
        const all = [...sums.values()];
        expect(all.every((part) => part >= 0)).toBe(true);
        expect(all.reduce((sum, part) => sum + part, 0)).toBe(ms);
        expect(ms).toBeLessThanOrEqual(endedAt);
      }
      expect(Math.max(...legs.map(({ ms }) => ms))).toBe(endedAt);
      const waited = phases.filter(({ start, end = endedAt }) => end > start);
      const names = new Set(waited.flatMap(({ leg }) => leg ?? []));
      expect(legs.map(({ name }) => name)).toEqual(names.size > 0 ? [...names] : ['whole']);
    }),
  );
});

test('a leg that found at once what it asked for is none', () => {
  const [asked, found] = [new Phase('attempt', 0, 'a'), new Phase('joined', 0, 'b')];
  Object.assign(asked, { end: 100 });
  Object.assign(found, { end: 0.04 });
  const legs = legsOf([asked, found], { name: 'whole', startedAt: 0, endedAt: 100 });
  expect(legs.map(({ name }) => name)).toEqual(['a']);
});

const during = (start: number, end: number) => Object.assign(new Phase('attempt', start, undefined), { end });

test('what nothing is waited for in is own', () => {
  expect(ownMsOf([], 10, 25)).toBe(15);
  expect(ownMsOf([during(12, 15), during(14, 20)], 10, 25)).toBe(7);
});
