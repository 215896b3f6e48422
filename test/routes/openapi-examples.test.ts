import { describe, expect, test } from 'vitest';
import { GatewayError, problemOf } from '../../src/core/errors.ts';
import { exampleOf } from '../../src/upstream/fields.ts';
import type { Operation } from '../../src/upstream/operation.ts';
import { allOperations } from '../support/account-api.ts';
import { checkerOf, document, documented, type Media, type Schema } from './openapi-document.ts';

const contents = [
  ...documented.flatMap(({ name, item }) =>
    Object.entries(item.responses).map(([status, { content }]) => ({ name: `${name} ${status}`, content })),
  ),
  ...documented.map(({ name, item }) => ({ name: `${name} body`, content: item.requestBody?.content })),
  ...Object.entries(document.components.responses).map(([name, { content }]) => ({ name, content })),
];

const media = contents.flatMap(({ name, content = {} }) =>
  Object.entries(content).map(([type, one]) => ({ name: `${name} ${type}`, type, one })),
);

const valuesOf = ({ example, examples = {} }: Media): unknown[] =>
  example === undefined ? Object.values(examples).map(({ value }) => value) : [example];

test.each(media.filter(({ type }) => type !== 'text/html'))('$name has an example, and it fits', ({ one }) => {
  expect(valuesOf(one)).not.toEqual([]);
  const checker = checkerOf(one.schema ?? {});
  for (const value of valuesOf(one)) expect(checker.safeParse(value).error).toBeUndefined();
  expect(checker.safeParse(Symbol('anything else')).success).toBe(false);
});

const examplesIn = (node: unknown): [Schema, unknown][] => {
  if (typeof node !== 'object' || node === null) return [];
  const { examples, ...schema } = node as Schema;
  const own = Array.isArray(examples) ? examples.map((one: unknown): [Schema, unknown] => [schema, one]) : [];
  return [...own, ...Object.values(schema).flatMap(examplesIn)];
};

test('the examples of fields fit their fields', () => {
  const found = examplesIn(document.components.schemas);
  expect(found.length).toBeGreaterThan(200);
  for (const [schema, value] of found) {
    expect(checkerOf(schema).safeParse(value).error, JSON.stringify({ schema, value })).toBeUndefined();
  }
});

/** The object with each field null in turn, and without each in turn. */
const variantsOf = (whole: object): object[] =>
  Object.keys(whole).flatMap((name) => {
    const { [name]: _, ...others } = whole as Record<string, unknown>;
    return [others, { ...others, [name]: null }];
  });

/** Such variants of a value, of the first item of a list, or of a page and of its first item. */
const deepVariantsOf = (value: unknown): unknown[] => {
  if (Array.isArray(value)) return variantsOf(value[0] as object).map((item) => [item]);
  const { results } = value as { results?: unknown };
  const items = results === undefined ? [] : deepVariantsOf(results);
  return [...variantsOf(value as object), ...items.map((some) => ({ ...(value as object), results: some }))];
};

const schemas = allOperations.flatMap(({ id, body, answer }: Operation) => {
  const item = documented.find((one) => one.item.operationId === id)?.item;
  const good = item?.responses['200'] ?? item?.responses['2XX'];
  return [
    { name: `${id} body`, schema: body?.schema, content: item?.requestBody?.content },
    { name: `${id} answer`, schema: answer ?? undefined, content: good?.content },
  ].flatMap(({ name, schema, content }) => (schema ? [{ name, schema, content }] : []));
});

describe('what may be missing or null', () => {
  test.each(schemas)('$name: the same as in the table', ({ schema, content }) => {
    const checker = checkerOf(content?.['application/json']?.schema ?? {});
    for (const value of deepVariantsOf(exampleOf(schema))) {
      expect(checker.safeParse(value).success, JSON.stringify(value)).toBe(schema.safeParse(value).success);
    }
  });
});

test('a real problem, with all that it may hold, is as documented', () => {
  const errors = [{ code: 'invalid', message: 'expected an integer', field: null }];
  const error = GatewayError.of('upstream_timeout', { detail: 'text', errors, retryAfter: 3, outcome: 'unknown' });
  const problem = problemOf(error, { instance: '/', mount: '', requestId: 'r' });
  const schema = document.components.schemas['Problem'] ?? {};
  expect(checkerOf(schema).safeParse(problem).error).toBeUndefined();
  expect(Object.keys(schema['properties'] as object)).toEqual(expect.arrayContaining(Object.keys(problem)));
});
