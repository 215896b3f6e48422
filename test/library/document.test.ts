import { Validator } from '@seriousme/openapi-schema-validator';
import { beforeAll, describe, expect, test } from 'vitest';
import { parseConfig } from '../../src/config.ts';
import { openApiText } from '../../src/routes/document.ts';
import { accountTables } from '../support/account-api.ts';
import { library, rows } from './library.ts';
import { accountWordsIn } from './words.ts';

const METHODS = new Set(['get', 'post', 'patch', 'delete']);

interface Item {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly security?: readonly unknown[];
}

describe('the OpenAPI document', () => {
  let text: string;
  let document: {
    readonly tags: readonly { readonly name: string }[];
    readonly paths: Readonly<Record<string, Readonly<Record<string, Item>>>>;
    readonly components: { readonly schemas: Readonly<Record<string, { readonly enum?: readonly string[] }>> };
  };

  beforeAll(async () => {
    text = await openApiText(library);
    document = JSON.parse(text) as typeof document;
  });

  test('is valid', async () => {
    const { valid, errors } = await new Validator().validate(JSON.parse(text) as Record<string, unknown>);
    expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
  });

  test('has its calls, each as its row says', () => {
    const calls = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).flatMap(([method, { operationId, tags }]) =>
        METHODS.has(method) && path.startsWith('/v1/') ? [[operationId, method.toUpperCase(), path, ...tags]] : [],
      ),
    );
    expect(calls).toEqual(Object.values(rows).map(({ id, method, path, tag }) => [id, method, path, tag.name]));
    expect(document.paths['/bff/v1/shelf']?.['get']).toMatchObject({ operationId: 'getShelf', tags: ['Composed'] });
    expect(document.paths['/bff/v1/session/enter']?.['post']).toMatchObject({ operationId: 'enterSession' });
    expect(document.paths['/v1/login']?.['post']?.security).toEqual([]);
  });

  test('has its chapters, components and codes', () => {
    expect(document.tags.map(({ name }) => name)).toEqual([
      'Composed',
      'Writes',
      'Session',
      'Books',
      'Readers',
      'About',
    ]);
    const { schemas } = document.components;
    for (const name of ['Book', 'BookPage', 'NewLoan', 'Loan', 'Reader', 'Entrance', 'Shelf', 'OverviewLine'])
      expect(schemas).toHaveProperty(name);
    expect(schemas['ProblemCode']?.enum).toEqual(expect.arrayContaining(['lost', 'on_loan']));
  });

  test('has not a word of another upstream', () => {
    expect(accountWordsIn(text)).toEqual([]);
  });

  test('is the same when that of another table was made before', async () => {
    await openApiText(accountTables);
    expect(await openApiText(library)).toBe(text);
  });
});

describe('CACHE_POLICY', () => {
  test('takes the names of its rows', () => {
    const parsed = parseConfig({ CACHE_POLICY: '{"listBooks":{"fresh":1},"getBook":false}' }, library.table);
    if ('problems' in parsed) throw new Error(JSON.stringify(parsed.problems));
    const { policyOf } = parsed.config;
    expect([policyOf(rows.listBooks), policyOf(rows.getBook)]).toEqual([
      { fresh: 1, stale: 60, onError: 600 },
      undefined,
    ]);
  });

  test.each([
    ['lendBook', 'no policy of lendBook, whose answers are never cached'],
    ['enter', 'no policy of enter, whose answers are never cached'],
    ['listFilms', 'only ids of operations, not "listFilms"'],
    ['getSubscription', 'only ids of operations, not "getSubscription"'],
  ])('does not take %s', (id, expected) => {
    expect(parseConfig({ CACHE_POLICY: `{"${id}":false}` }, library.table)).toMatchObject({
      problems: [{ variable: 'CACHE_POLICY', expected }],
    });
  });
});
