import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { takesGzip } from '../../src/entry/node/compression.ts';

/** Of each of these at most one, with a weight in thousandths, as RFC 9110 has them, or without. */
const items = fc.uniqueArray(
  fc.record({
    coding: fc.constantFrom('gzip', 'identity', '*', 'br', 'deflate', 'x-gzip'),
    weight: fc.option(fc.oneof(fc.constantFrom(0, 1, 500, 1000), fc.integer({ min: 0, max: 1000 })), {
      nil: undefined,
    }),
    isShouted: fc.boolean(),
    gap: fc.constantFrom('', ' ', '\t', '  '),
  }),
  { selector: ({ coding }) => coding },
);

type Items = typeof items extends fc.Arbitrary<infer T> ? T : never;

const written = (thousandths: number) =>
  (thousandths / 1000).toFixed(3).replace(thousandths % 1000 === 0 ? /\.000$/ : /0+$/, '');

const headerOf = (all: Items) =>
  all
    .map(({ coding, weight, isShouted, gap }) => {
      const name = isShouted ? coding.toUpperCase() : coding;
      if (weight === undefined) return `${gap}${name}${gap}`;
      return `${name}${gap};${gap}${isShouted ? 'Q' : 'q'}=${written(weight)}`;
    })
    .join(',');

test('gzip is taken where its weight is not 0, and no less than that of the body as it is', () => {
  const seen = { taken: 0, refused: 0 };
  fc.assert(
    fc.property(items, (all) => {
      const said = new Map(all.map(({ coding, weight = 1000 }) => [coding, weight]));
      const weightOf = (coding: 'gzip' | 'identity') => said.get(coding) ?? said.get('*') ?? 0;
      const isTaken = weightOf('gzip') > 0 && weightOf('gzip') >= weightOf('identity');
      seen[isTaken ? 'taken' : 'refused']++;
      const header = headerOf(all);
      expect([header, takesGzip(header)]).toEqual([header, isTaken]);
    }),
    { numRuns: 2_000 },
  );
  expect(Math.min(seen.taken, seen.refused)).toBeGreaterThan(200);
});

test.each([
  ['', false],
  ['gzip, identity;q=0', true],
  ['gzip;q=1.0, *;q=0', true],
  ['gzip;q=0, *', false],
  ['*;q=0.5, identity;q=0.6', false],
  ['gzip;q=0.5, *;q=1', false],
  ['identity;q=0', false],
  ['gzipped', false],
  ['x;gzip', false],
  [',,', false],
  [' ', false],
  ['gzip;level=9;q=0', false],
])('%j: %s', (text, isTaken) => {
  expect(takesGzip(text)).toBe(isTaken);
});
