import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EVERYTHING } from '../../src/store/port.ts';
import type { Operation } from '../../src/upstream/operation.ts';
import { invalidatedBy, ReadRow } from '../../src/upstream/read.ts';
import { allOperations, operations } from '../support/account-api.ts';
import { seed, times } from '../support/times.ts';

const runs = (count: number) => ({ numRuns: times(count), seed: seed() });

const textOf = (unit: fc.Arbitrary<string>, maxLength: number, minLength = 1) =>
  fc.string({ unit, minLength, maxLength });

const visible = fc.integer({ min: 33, max: 126 }).map((code) => String.fromCharCode(code));
const TRICKY = fc.constantFrom('1', '01', '11', '0', '00');

/** Ids that paths can hold, queries that a URL can: whatever might be taken for a part of something else. */
const ids = {
  digits: fc.oneof(TRICKY, textOf(fc.constantFrom(...Array.from('0123456789')), 19)),
  slug: fc.oneof(TRICKY, textOf(fc.constantFrom(...Array.from('0123456789Aaz_-')), 64)),
};
const query = fc.oneof(
  fc.constantFrom('', '?', 'a', 'a=1', 'a=1&', 'a=%31', '/1?a=1', 'getSubuser/1?', '&', ' ', '*'),
  textOf(visible, 24, 0),
);

const reads: readonly Operation[] = allOperations.filter(({ method }) => method === 'GET');
const input = fc.oneof(
  ...reads.map((operation) => {
    const { id: form } = operation.params;
    const id = form === undefined ? fc.constant(undefined) : form.includes('a-z') ? ids.slug : ids.digits;
    return fc.record({ operation: fc.constant(operation), id, query });
  }),
);

interface Input {
  readonly operation: Operation;
  readonly id: string | undefined;
  readonly query: string;
}

const keyOf = ({ operation, id, query: text }: Input) => new ReadRow(operation, undefined).read(id, text);

test('keys of different operations, ids or queries are never equal, not even where they differ a little', () => {
  fc.assert(
    fc.property(input, input, ids.digits, query, (one, other, digits, text) => {
      const id = one.operation.params['id'] && digits;
      for (const near of [other, { ...one, id }, { ...one, query: text }, { ...one, id, query: text }]) {
        const isSame = one.operation.id === near.operation.id && one.id === near.id && one.query === near.query;
        expect(keyOf(one).key === keyOf(near).key).toBe(isSame);
      }
    }),
    runs(1_000),
  );
});

test('the tags of a key say its group, and its item where it is one', () => {
  fc.assert(
    fc.property(input, ({ operation, ...rest }) => {
      const key = keyOf({ operation, ...rest });
      const [group, item, ...more] = key.tags;
      expect([group, more]).toEqual([operation.group, []]);
      const isItem = operation.group !== undefined && rest.id !== undefined;
      expect(item?.startsWith(`${operation.group}/`) ?? false).toBe(isItem);
      expect(key.tags).not.toContain(EVERYTHING);
    }),
    runs(500),
  );
});

const tagOf = (operation: Operation, id: string) => keyOf({ operation, id, query: '' }).tags[1];

describe('tags of items', () => {
  const { getSubuser, refreshSubuser } = operations;

  test('are equal only where the upstream takes one id for the other, and are what a write of the item invalidates', () => {
    fc.assert(
      fc.property(ids.digits, ids.digits, (one, other) => {
        const isSame = BigInt(one) === BigInt(other);
        expect(tagOf(getSubuser, one) === tagOf(getSubuser, other)).toBe(isSame);
        expect(invalidatedBy(refreshSubuser, one).includes(tagOf(getSubuser, other)!)).toBe(isSame);
      }),
      runs(1_000),
    );
  });
});
