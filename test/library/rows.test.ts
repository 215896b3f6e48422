import * as z from 'zod/mini';
import { describe, expect, test } from 'vitest';
import { json } from '../support/scripted-upstream.ts';
import { pageOf, resource, text } from '../../src/upstream/fields.ts';
import { openApiText } from '../../src/routes/document.ts';
import { defineRows, type Operation, type Row } from '../../src/upstream/operation.ts';
import { tableOf } from '../../src/upstream/table.ts';
import { call } from '../support/http.ts';
import { library, rows } from './library.ts';
import { openLibrary } from './world.ts';

const film = resource('Film', { title: text('what it is called', 'Troy') });
const reads: Row = { at: 'GET /v1/films/{id}', answer: film, group: 'films' };
const writes: Row = { at: 'POST /v1/films', answer: film };

/** Without the look of the compiler, which finds some of it too. */
const define = defineRows as (rows: Readonly<Record<string, Row>>) => Readonly<Record<string, Operation>>;

const tableWith = (more: Readonly<Record<string, Row>>) => tableOf({ ...rows, ...define(more) });

test('rows are added to a table by their names, and may invalidate what stands there', () => {
  const more = defineRows({
    ...rows,
    listFilms: { at: 'GET /v1/films', ...pageOf(film), group: 'films' },
    burn: {
      at: 'POST /v1/books/{id}/fire',
      answer: null,
      idForm: 'slug',
      invalidates: ['films', 'books', 'everything'],
    },
  });
  expect(Object.keys(more)).toEqual([...Object.keys(rows), 'listFilms', 'burn']);
  expect(more.getBook).toEqual(rows.getBook);
  expect(tableOf(more).invalidatesCached(more.burn)).toBe(true);
});

describe('what a table cannot be is said when it is made', () => {
  const REFUSED: Readonly<Record<string, readonly [Readonly<Record<string, Row>>, RegExp]>> = {
    'a body without a name': [{ a: { ...reads, answer: z.looseObject({}) } }, /the row `a` has a body without a name/],
    'a body without an example': [
      { a: { ...reads, answer: resource('Unshown', { title: z.string() }) } },
      /the row `a` has a body that cannot be shown: a schema of type string has to document an example/,
    ],
    'an item that the path does not name': [
      { a: reads, b: { ...writes, invalidates: [{ item: 'films' }] } },
      /the row `b` invalidates one item/,
    ],
    'what no read belongs to': [
      { a: { ...writes, invalidates: ['shelves'] } },
      /`a` invalidates `shelves`, to which no/,
    ],
    'a name that every object has': [{ constructor: reads }, /the row `constructor` has a name that every object/],
    'a read without a credential': [{ a: { ...reads, credential: 'none' } }, /the row `a` is a read without a cred/],
    'what is written for nobody and invalidates something': [
      { a: { ...writes, credential: 'none', invalidates: ['everything'] } },
      /the row `a` takes no credential: it is of no account/,
    ],
    'a group without a name': [{ a: { ...reads, group: '' } }, /the row `a` is of a group whose name is none/],
    'a group of the name of all': [{ a: { ...reads, group: 'everything' } }, /the row `a` is of a group whose name/],
    'times that are none': [
      { a: { ...reads, cache: { fresh: 3, stale: Number.NaN, onError: 0 } } },
      /the row `a` needs `fresh`, `stale` and `onError`/,
    ],
    'a sign-in at a path that is none': [
      { a: { ...writes, credential: 'none', body: { schema: film }, signsIn: { as: ':any', token: 't' } } },
      /the row `a` signs in `as` something that is no part of a path/,
    ],
    'a sign-in with a credential': [{ a: { ...writes, signsIn: { as: 'a', token: 't' } } }, /the row `a` signs in/],
    'a code that is none': [
      { a: { ...reads, refusals: { SOLD_OUT: { status: 409, description: '' } } } },
      /the row `a` is refused with `SOLD_OUT`, which is no code/,
    ],
  };

  test.each(Object.entries(REFUSED))('%s', (_, [more, message]) => {
    expect(() => tableWith(more)).toThrow(TypeError);
    expect(() => tableWith(more)).toThrow(message);
  });

  test('a page of items without a name', () => {
    expect(() => pageOf(z.looseObject({}))).toThrow(/^the items of a page need a name/);
  });
});

test('tables that are joined are looked at as one: a write of one may invalidate what the other has replaced', () => {
  const one = define({ read: { ...reads, group: 'films' }, burn: { ...writes, invalidates: ['films'] } });
  const other = define({ read: { ...reads, group: 'reels' } });
  expect(() => tableOf({ ...one, ...other })).toThrow('the row `burn` invalidates `films`, to which no read belongs');
});

test.each(['/openapi.json', '/problems/', '/livez'])(
  'a row in the place of %s is refused when the gateway is made',
  async (path) => {
    const made = openLibrary({ table: tableWith({ a: { at: `GET ${path as '/'}`, answer: film } }) });
    await expect(made).rejects.toThrow(/^several calls are at the same method of /);
  },
);

test.each([
  ['a row called as a call of Portico', { batch: { at: 'GET /b', answer: film } }, /two calls are called `batch`/],
  [
    'two rows that sign in by one name',
    {
      one: { ...writes, credential: 'none', body: { schema: film }, signsIn: { as: 'in', token: 't' } },
      two: {
        ...writes,
        at: 'POST /v1/two',
        credential: 'none',
        body: { schema: film },
        signsIn: { as: 'in', token: 't' },
      },
    },
    /two calls are called `inSession`/,
  ],
] as const)('%s is refused when the gateway is made', async (_, more, message) => {
  const made = openLibrary({ table: tableWith(more) });
  await expect(made).rejects.toThrow(message);
});

test('links of a page below an id lead to the page of that id', async () => {
  const more = define({
    listPages: { at: 'GET /v1/books/{id}/pages', idForm: 'slug', ...pageOf(film), group: 'pages' },
  });
  const { ask, upstream, gateway } = await openLibrary({ table: tableOf({ ...rows, ...more }) });
  upstream.on('GET /v1/books/7/pages', json(200, '{"count":2,"next":"?page=2","previous":null,"results":[]}'));
  const { json: page } = await ask('/v1/books/7/pages');
  expect(page).toMatchObject({ next: `${gateway.url}/v1/books/7/pages?page=2` });
});

test('two schemas of one name are an error when the document is made', async () => {
  const more = tableWith({ a: { ...reads, answer: resource('Shop', { best: z.optional(resource('Book', {})) }) } });
  await expect(openApiText({ table: more, overviews: [] })).rejects.toThrow('Duplicate schema id "Book"');
});

test('a path without a parameter is not taken for one with it, wherever it stands in the table', async () => {
  const table = tableWith({ getNewest: { at: 'GET /v1/books/newest', answer: film } });
  const { ask, upstream, gateway } = await openLibrary({ table, overviews: library.overviews });
  upstream.on('GET /v1/books/newest', json(200, { title: 'Troy' }));
  const one = await ask('/v1/books/newest');
  expect(one.headers['cache-control']).toBe('no-store');
  const requests = [{ id: 'a', path: '/v1/books/newest/' }];
  expect((await ask('/bff/v1/batch', { body: { requests } })).status).toBe(200);
  expect((await call(gateway.url, { path: '/v1/books/newest', method: 'DELETE' })).headers['allow']).toBe('GET, HEAD');
  const operations = gateway.lines.map(({ operation }) => operation);
  expect(operations).toEqual(['getNewest', 'batch', undefined]);
  expect(table.at('/v1/books/newest')?.methods.get('GET')?.id).toBe('getNewest');
});
