import * as z from 'zod/mini';
import { describe, expect, test } from 'vitest';
import {
  defineRows,
  from as sectionOf,
  fromPath,
  integer,
  model,
  type Operation,
  overview,
  pageOf,
  resource,
  type Row,
  text,
} from '../../../src/index.ts';
import { type OperationId, operations } from '../../support/account-api.ts';
import { parseConfig } from '../../../src/config.ts';
import { tableOf } from '../../../src/upstream/table.ts';
import { says } from '../../support/contract.ts';
import { type Env, type GatewayOptions, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { answer, Upstream } from '../../support/upstream.ts';
import { flawsIn } from '../10-docs/openapi.ts';
import { ILIAD, library, ODYSSEY, rows } from './library.ts';

const film = resource('Film', { title: text('what it is called', 'Troy') });
const reads: Row = { at: 'GET /v1/films/{id}', answer: film, group: 'films' };
const writes: Row = { at: 'POST /v1/films', answer: film };

/** Without the look of the compiler, which finds some of it too. */
const define = defineRows as (rows: Readonly<Record<string, Row>>) => Readonly<Record<string, Operation>>;
const tableWith = (more: Readonly<Record<string, Row>>) => tableOf({ ...rows, ...define(more) });

/** The gateway of the library, and its upstream. */
function openLibrary(env: Env = {}, options: GatewayOptions = {}) {
  const { table = library.table } = options;
  return openGateway(env, { ...library, upstream: new Upstream(table), ...options });
}

/** What the upstream calls its operations, where a test is typed for those of the account API. */
const idOf = (id: string): OperationId => id as OperationId;

const told = (policy: string) => parseConfig({ CACHE_POLICY: policy }, library.table);

const ODYSSEY_AT = `/v1/books/${ODYSSEY}`;

describe(says("another upstream's table needs none of ours"), () => {
  const gateway = openLibrary();
  const { call, upstream } = gateway;

  test('its calls go to the upstream as their rows have them, with the last slash or without', async () => {
    const sent = [];
    for (const [path, body] of [
      ['/v1/books', undefined],
      [`${ODYSSEY_AT}/loans/`, { weeks: 3 }],
      ['/v1/login', { reader: 'penelope', password: 'p' }],
    ] as const)
      for (const slash of ['', '/']) {
        expect((await call(path.replace(/\/$/, '') + slash, { token: secret(), body })).status).toBe(200);
        sent.push(`${body ? 'POST' : 'GET'} ${path}`);
      }
    expect(upstream.calls.map(({ method, target }) => `${method} ${target}`)).toEqual(sent);
  });

  test('a loan is seen in the list, at the book and in the overview, and sent once for a key', async () => {
    const token = secret();
    const versions = async () => {
      const [list, one, other, shelf] = ['/v1/books', ODYSSEY_AT, `/v1/books/${ILIAD}`, '/bff/v1/shelf'];
      const answers = [];
      for (const path of [list, one, other, shelf]) answers.push((await call(path, { token })).version);
      return answers;
    };
    expect([await versions(), await versions()]).toEqual([
      [1, 1, 1, 1],
      [1, 1, 1, 1],
    ]);
    const lend = () => call(`${ODYSSEY_AT}/loans`, { token, body: { weeks: 3 }, key: 'k' });
    expect((await lend()).status).toBe(200);
    expect((await lend()).headers.get('idempotency-replayed')).toBe('true');
    expect(await versions()).toEqual([2, 2, 1, 2]);
  });

  test('links, refusals and checks are as its rows say', async () => {
    upstream.next(idOf('listBooks'), answer(200, { count: 2, next: '?page=2', previous: null, results: [] }));
    expect((await call('/v1/books/?page=1', { token: secret() })).json.next).toBe('http://localhost/v1/books?page=2');
    expect((await call(`${ODYSSEY_AT}/loans`)).headers.get('allow')).toBe('POST');
    for (const path of ['/v1/', '/v1/book', '/v1/books/a.b', `/v1/books/${'a'.repeat(65)}`, '/api/v2/x/'])
      expect([path, (await call(path)).code]).toEqual([path, 'unknown_endpoint']);
    const query = await call('/v1/books?page=0&on_loan=perhaps&shelf=3');
    expect(query.json.errors).toMatchObject([{ field: 'page' }, { field: 'on_loan' }]);
    const lent = await call(`${ODYSSEY_AT}/loans`, { body: { weeks: 'many' } });
    expect(lent.json.errors).toMatchObject([{ field: 'weeks' }]);
    upstream.next(idOf('getBook'), answer(404, { code: 'lost' }));
    const [title, detail] = ['The book is lost', 'Nobody has seen it since the flood.'];
    for (const path of ['/v1/books/none', '/problems/lost'])
      expect((await call(path, { token: secret() })).json).toMatchObject({ status: 404, code: 'lost', title, detail });
    expect((await call('/problems/paid_plan_active')).json.detail).toMatch(/^A code of the upstream’s own/);
  });

  test('its login begins sessions, whose first overview finds what it reads', async () => {
    const own = openLibrary({ SESSIONS: 'true', SECRETS: secret('of-the-library-and-its-sessions') });
    const headers = { 'sec-fetch-site': 'same-origin' };
    const [token, body] = [secret(), { reader: 'penelope', password: secret('password') }];
    const enter = () => own.call('/bff/v1/session/enter', { token: null, headers, body });
    own.upstream.next(idOf('enter'), answer(200, { access_token: token }), answer(200, { token: 'of another name' }));
    const begun = await enter();
    await own.idle();
    expect([begun.status, begun.text.includes(token)]).toEqual([201, false]);
    const cookie = begun.headers.getSetCookie()[0]!.split(';')[0]!;
    const asked = { token: null, headers: { ...headers, cookie } };
    expect((await own.call('/bff/v1/shelf', asked)).json).toMatchObject({ meta: { complete: true } });
    expect(own.upstream.callsOf(token).map(({ target }) => target)).toEqual(['/v1/books', ODYSSEY_AT]);
    expect([(await enter()).code, (await own.call('/bff/v1/session/login', { body })).code]).toEqual([
      'upstream_bad_response',
      'unknown_endpoint',
    ]);
  });

  test('its log and metrics name its calls alone', async () => {
    const from = gateway.lines.length;
    for (const path of ['/v1/books', ODYSSEY_AT, '/bff/v1/shelf', '/v1/films']) await call(path, { token: secret() });
    const names = gateway.lines.slice(from).map(({ route, operation }) => [route, operation]);
    expect(names).toEqual([
      ['/v1/books', 'listBooks'],
      ['/v1/books/{id}', 'getBook'],
      ['/bff/v1/shelf', 'getShelf'],
      ['(none)', undefined],
    ]);
    const labels = new Set(Array.from((await gateway.scrape()).matchAll(/operation="(\w+)"/g), ([, name]) => name));
    expect(labels).toEqual(new Set(['batch', 'getOutcome', 'enter', 'getBook', 'getShelf', 'lendBook', 'listBooks']));
  });

  test('its document is valid, has its calls, chapters and codes, and not a word of another', async () => {
    const { text: found, json } = await call('/openapi.json');
    expect(await flawsIn(found)).toBeUndefined();
    for (const { id, path, method } of Object.values<Operation>(rows))
      expect(json.paths[path][method.toLowerCase()]).toMatchObject({ operationId: id });
    expect(json.paths['/v1/login'].post.security).toEqual([]);
    const chapters = ['Composed', 'Writes', 'Session', 'Books', 'Readers', 'About'];
    expect(json.tags).toMatchObject(chapters.map((name) => ({ name })));
    expect(json.components.schemas.ProblemCode.enum).toEqual(expect.arrayContaining(['lost', 'on_loan']));
    for (const { id, group = '' } of Object.values<Operation>(operations))
      expect([id, found.includes(id) || found.includes(group || id)]).toEqual([id, false]);
  });
});

describe(says('`defineRows` and `overview` add to the tables or replace them'), () => {
  test('rows by their names, overviews by their paths', async () => {
    const total = model('FilmTotal', { cents: integer('the price of all', 2500) });
    const more = defineRows({
      ...rows,
      listFilms: { at: 'GET /v1/films', ...pageOf(film), group: 'films' },
      getNewest: { at: 'GET /v1/books/newest', answer: film },
      getBook: { at: 'GET /v1/books/{id}', params: { id: 'slug' }, answer: film, group: 'book' },
      burn: { at: 'POST /v1/fire', answer: null, invalidates: ['films', 'books', 'everything'] },
    });
    expect(Object.keys(more)).toEqual([...Object.keys(rows), 'listFilms', 'getNewest', 'burn']);
    const mine = overview(
      '/bff/v1/book-overview/:book',
      {
        book: { read: more.getBook, params: { id: fromPath('book') }, required: true },
        again: { read: more.getBook, params: { id: sectionOf('book', 'title') } },
      },
      () => ({ cents: 5 }),
      { computed: total },
    );
    const { call, upstream } = openLibrary({}, { table: tableOf(more), overviews: [mine] });
    expect((await call('/v1/books/newest/')).headers.get('cache-control')).toBe('no-store');
    expect((await call('/bff/v1/shelf')).status).toBe(404);
    expect((await call('/bff/v1/book-overview/x')).json.data).toMatchObject({
      book: { title: 'Troy' },
      computed: { cents: 5 },
    });
    expect(upstream.calls.map(({ id }) => id)).toEqual(['getNewest', 'getBook', 'getBook']);
    const { paths, components } = (await call('/openapi.json')).json;
    expect(components.schemas).toMatchObject({ FilmTotal: { properties: { cents: { type: 'integer' } } } });
    expect(JSON.stringify(paths)).toContain('"enum":["book","again","computed"]');
  });

  const social: Row = { ...writes, credential: 'none', body: { schema: film } };
  test.each<readonly [string, Readonly<Record<string, Row>>]>([
    ['the row `a` has a body without a name', { a: { ...reads, answer: z.looseObject({}) } }],
    [
      'a schema of type string has to document',
      { a: { ...reads, answer: resource('Unshown', { title: z.string() }) } },
    ],
    ['the row `b` invalidates one item', { a: reads, b: { ...writes, invalidates: [{ item: 'films' }] } }],
    ['`a` invalidates `shelves`, to which no', { a: { ...writes, invalidates: ['shelves'] } }],
    ['the row `constructor` has a name that every object', { constructor: reads }],
    ['it is of no account', { a: { ...writes, credential: 'none', invalidates: ['everything'] } }],
    ['the row `a` is of a group whose name', { a: { ...reads, group: 'everything' } }],
    ['needs `fresh`, `stale` and `onError`', { a: { ...reads, cache: { fresh: 3, stale: Number.NaN, onError: 0 } } }],
    ['something that is no part of a path', { a: { ...social, signsIn: { as: ':any', token: 't' } } }],
    ['the row `a` signs in', { a: { ...writes, signsIn: { as: 'a', token: 't' } } }],
    ['`SOLD_OUT`, which is no code', { a: { ...reads, refusals: { SOLD_OUT: { status: 409, description: '' } } } }],
    ['two calls are called `batch`', { batch: { at: 'GET /b', answer: film } }],
    ['several calls are at the same method of', { a: { at: 'GET /openapi.json', answer: film } }],
  ])('what cannot be is said: %s', (words, more) => {
    expect(() => openLibrary({}, { table: tableWith(more) })).toThrow(TypeError);
    expect(() => openLibrary({}, { table: tableWith(more) })).toThrow(words);
  });

  test('joined tables are looked at as one', () => {
    const one = define({ read: reads, burn: { ...writes, invalidates: ['films'] } });
    const joined = { ...one, ...define({ read: { ...reads, group: 'reels' } }) };
    expect(() => tableOf(joined)).toThrow('the row `burn` invalidates `films`, to which no read belongs');
    expect(() => pageOf(z.looseObject({}))).toThrow(/^the items of a page need a name/);
  });

  test('`CACHE_POLICY` takes the names of rows that are cached', () => {
    expect(told('{"listBooks":{"fresh":1},"getBook":false}')).not.toHaveProperty('problems');
    for (const [id, expected] of [
      ['lendBook', 'no policy of lendBook, whose answers are never cached'],
      ['getSubscription', 'only ids of operations, not "getSubscription"'],
    ] as const)
      expect(told(`{"${id}":false}`)).toMatchObject({ problems: [{ variable: 'CACHE_POLICY', expected }] });
  });
});
