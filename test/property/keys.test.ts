import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cacheKeyOf, invalidatedBy } from '../../src/cache/keys.ts';
import { EVERYTHING } from '../../src/store/port.ts';
import type { Operation } from '../../src/upstream/operation.ts';
import { allOperations, operations } from '../support/account-api.ts';
import { times } from '../support/times.ts';

const reads: readonly Operation[] = allOperations.filter(({ method }) => method === 'GET');

const textOf = (characters: string, size: { minLength: number; maxLength: number }) =>
  fc.string({ unit: fc.constantFrom(...Array.from(characters)), ...size });

const DIGITS = '0123456789';
const NAME = `${DIGITS}ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-`;
const VISIBLE = Array.from({ length: 94 }, (_, index) => String.fromCharCode(index + 33)).join('');

/** Ids that paths can hold (`ID_FORMS`), queries that a URL can: whatever might be taken for a part of something else. */
const TRICKY = fc.constantFrom('1', '01', '11', '0', '00');
const ids = {
  digits: fc.oneof(TRICKY, textOf(DIGITS, { minLength: 1, maxLength: 19 })),
  slug: fc.oneof(TRICKY, textOf(NAME, { minLength: 1, maxLength: 64 })),
};
const none = fc.constant(undefined);

const query = fc.oneof(
  fc.constantFrom('', '?', 'a', 'a=1', 'a=1&', 'a=%31', '/1?a=1', 'getSubuser/1?', '&', ' ', '*'),
  textOf(VISIBLE, { minLength: 0, maxLength: 24 }),
);

const input = fc.oneof(
  ...reads.map((operation) =>
    fc.record({ operation: fc.constant(operation), id: operation.idForm ? ids[operation.idForm] : none, query }),
  ),
);

type Input = typeof input extends fc.Arbitrary<infer T> ? T : never;

const keyOf = ({ operation, id, query: text }: Input) =>
  cacheKeyOf('account', { operation, input: { id, query: text } }, undefined).key;

const same = (a: Input, b: Input) => a.operation.id === b.operation.id && a.id === b.id && a.query === b.query;

const isApart = (a: Input, b: Input) => (keyOf(a) === keyOf(b)) === same(a, b);

const canBeReadBack = (one: Input) => {
  const [, operation, id, text] = /^([A-Za-z]+)\/([A-Za-z0-9_-]*)\?(.*)$/s.exec(keyOf(one)) ?? [];
  return operation === one.operation.id && id === (one.id ?? '') && text === one.query;
};

const isTagged = ({ operation, ...rest }: Input) => {
  const { tags } = cacheKeyOf('account', { operation, input: rest }, undefined);
  if (operation.group === undefined) return tags.length === 0;
  const [group, item] = tags;
  const isItem = rest.id === undefined ? item === undefined : item?.startsWith(`${operation.group}/`);
  return group === operation.group && isItem === true && tags.length <= 2 && !tags.includes(EVERYTHING);
};

const runs = (full: number) => ({ numRuns: times(full) });

describe('keys', () => {
  test('of different operations, ids or queries are never equal', () => {
    fc.assert(fc.property(input, input, isApart), runs(10_000));
  });

  test('of one operation are never equal for what differs a little', () => {
    const areApart = fc.property(input, ids.digits, query, (one, digitsOnly, text) => {
      const id = one.operation.idForm && digitsOnly;
      const others = [
        { ...one, id },
        { ...one, query: text },
        { ...one, id, query: text },
      ];
      return others.every((other) => isApart(one, other));
    });
    fc.assert(areApart, runs(10_000));
  });

  test('can be read back, so that nothing is lost in them', () => {
    fc.assert(fc.property(input, canBeReadBack), runs(10_000));
  });

  test('belong to the account they were made for', () => {
    const owned = fc.property(
      fc.base64String(),
      input,
      (account, { operation, ...rest }) =>
        cacheKeyOf(account, { operation, input: rest }, undefined).account === account,
    );
    fc.assert(owned);
  });
});

const tagOf = (operation: Operation, id: string) =>
  cacheKeyOf('account', { operation, input: { id, query: '' } }, undefined).tags[1];

const { digits } = ids;

const writes: readonly Operation[] = allOperations.filter(({ method }) => method !== 'GET');

/** Writes of one item, each with a read of it. */
const itemWrites = writes.flatMap((write) => {
  const items = (write.invalidates ?? []).flatMap((one) => (typeof one === 'object' ? [one.item] : []));
  return reads
    .filter(({ group, idForm }) => idForm && items.some((item) => item === group))
    .map((read) => [write, read] as const);
});

describe('tags', () => {
  test('of an answer say its group, and its item where it is one', () => {
    fc.assert(fc.property(input, isTagged), runs(2_000));
  });

  test('of two items are equal only where the upstream takes one id for the other', () => {
    const { getSubuser } = operations;
    const equal = (a: string, b: string) =>
      (tagOf(getSubuser, a) === tagOf(getSubuser, b)) === (BigInt(a) === BigInt(b));
    fc.assert(fc.property(digits, digits, equal), runs(10_000));
  });

  test('of a name are not those of another name', () => {
    const { getIpAuthorization } = operations;
    const name = textOf(NAME.slice(10), { minLength: 1, maxLength: 3 });
    const equal = (a: string, b: string) =>
      (tagOf(getIpAuthorization, a) === tagOf(getIpAuthorization, b)) === (a === b);
    fc.assert(fc.property(name, name, equal), runs(10_000));
  });

  test.each(itemWrites)('of $id are among those of every read of that item, and of no other', (write, read) => {
    const invalidates = fc.property(digits, digits, query, (one, other, text) => {
      const tags = invalidatedBy(write, { id: one, query: '' });
      const isInvalidated = (id: string) =>
        cacheKeyOf('account', { operation: read, input: { id, query: text } }, undefined).tags.some((tag) =>
          tags.includes(tag),
        );
      return isInvalidated(one) && isInvalidated(`0${one}`) && isInvalidated(other) === (BigInt(one) === BigInt(other));
    });
    fc.assert(invalidates, runs(5_000));
  });

  test('of an item are what the documented writes of one invalidate', () => {
    const { refreshSubuser, getSubuser, deleteIpAuthorization, getIpAuthorization } = operations;
    expect(itemWrites).toEqual(
      expect.arrayContaining([
        [refreshSubuser, getSubuser],
        [deleteIpAuthorization, getIpAuthorization],
      ]),
    );
  });

  test('are said by every write, if only that there are none', () => {
    for (const { id, invalidates } of writes) expect([id, invalidates]).toEqual([id, expect.any(Array)]);
  });

  test('of a group are never those of an item or of everything', () => {
    for (const { group } of reads) expect(group ?? '').not.toMatch(/[/*]/);
  });
});
