import { describe, expect, test } from 'vitest';
import { overview } from '../../src/gateway/overviews.ts';
import { from } from '../../src/gateway/sections.ts';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';
import { stream } from '../support/http.ts';
import { openOwn, page, rows } from './own.ts';

type Inputs = Readonly<Record<'books' | 'authors', { readonly count: number; readonly results: readonly unknown[] }>>;

const PATH = '/bff/v1/mine';
const [ONE, TWO] = ['{"id":9007199254740993,"price":25.0, "tags":[1.50]}', '{"id":2,"price":1e2}'];
const BOOKS = page(ONE, TWO);
const AUTHORS = page('{"id":"le-guin"}');

/** Two lists, the first required, and what is computed of them. */
const computing = (compute: (inputs: Inputs) => unknown) =>
  overview(
    PATH,
    { books: { read: rows.listBooks, required: true }, authors: { read: rows.listAuthors } },
    compute as (inputs: object) => object,
  );

async function open(compute: (inputs: Inputs) => unknown) {
  const world = await openOwn([computing(compute)]);
  world.on('/book/', BOOKS);
  world.on('/author/', AUTHORS);
  const faults = () => world.gateway.lines.filter(({ msg }) => msg === 'the section `computed` has failed');
  return { ...world, faults };
}

const counts = ({ books, authors }: Inputs) => ({ books: books.count, authors: authors?.count ?? null });

const dataIn = (text: string) => /"computed":(.*)\},"errors"/.exec(text)?.[1];

describe('what a function computes', () => {
  test('is the last section, of the same age', async () => {
    const world = await open(counts);
    const { status, text, body } = await world.get(PATH);
    expect([status, text]).toEqual([
      200,
      expect.stringContaining(`{"data":{"books":${BOOKS},"authors":${AUTHORS},"computed":{"books":2,"authors":1}},`),
    ]);
    expect(body.meta).toEqual({
      complete: true,
      sections: {
        books: { state: 'fresh', age: 0 },
        authors: { state: 'fresh', age: 0 },
        computed: { state: 'fresh', age: 0 },
      },
    });
    world.advance(3);
    const again = await world.get(PATH);
    expect(again.headers).toMatchObject({ age: '3', 'cache-status': 'portico; hit; ttl=27' });
    expect(again.headers['server-timing']).toContain('computed;dur=0.0;desc="fresh"');
    expect(again.body.meta.sections['computed']).toEqual({ state: 'fresh', age: 3 });
  });

  test.each<readonly [what: string, compute: (inputs: Inputs) => unknown, text: string]>([
    ['an input, with the numbers of JavaScript', ({ books }) => books.results[1], '{"id":2,"price":100}'],
    ['a long id, rounded', ({ books }) => (books.results[0] as { id: unknown }).id, '9007199254740992'],
    ['items in another order', ({ authors }) => authors.results.toReversed(), '[{"id":"le-guin"}]'],
    ['null', () => null, 'null'],
    ['a date', () => new Date(0), '"1970-01-01T00:00:00.000Z"'],
    ['members that are undefined', () => ({ a: undefined, b: 1 }), '{"b":1}'],
  ])('may be %s', async (_, compute, text) => {
    const world = await open(compute);
    const answer = await world.get(PATH);
    expect(answer.body.errors).toEqual([]);
    expect(dataIn(answer.text)).toBe(text);
    expect(dataIn((await world.get(PATH)).text)).toBe(text);
  });

  test('of a page has the links that the page has here', async () => {
    const world = await open(({ books }) => ({ books, next: (books as { next?: unknown }).next }));
    world.on('/book/', `{"count":9,"next":"${world.upstream.url}/book/?page=2","previous":null,"results":[]}`);
    const { body } = await world.get(PATH);
    const next = `${world.gateway.url}/book/?page=2`;
    expect(body.data['computed']).toEqual({ books: body.data['books'], next });
    expect(body.data['books']).toMatchObject({ next });
  });

  test('is of inputs of its own, which it may change', async () => {
    const world = await open(({ books }) => (books.results as unknown[]).splice(0).length);
    for (let asked = 0; asked < 2; asked++) expect((await world.get(PATH)).body.data).toMatchObject({ computed: 2 });
    expect((await world.get(PATH)).text).toContain(`"books":${BOOKS}`);
  });

  test('gets the whole of a section of which the client wants some fields only', async () => {
    const world = await open(({ books }) => books.results.at(1));
    const { text } = await world.get(`${PATH}?fields[books]=id`);
    expect(dataIn(text)).toBe('{"id":2,"price":100}');
    expect((await world.get(`${PATH}?fields[computed]=id`)).status).toBe(400);
  });

  test('changes the ETag when it changes, and only then', async () => {
    const world = await open(({ authors }) => authors.results[0]);
    const { headers } = await world.get(PATH);
    const etag = headers['etag'] ?? '';
    const again = await world.get(PATH, { headers: { 'If-None-Match': etag } });
    expect([etag, again.status]).toEqual([expect.stringMatching(/^"[^"]+"$/), 304]);
    world.on('/author/', page('{"id":"other"}'));
    const changed = await world.get(PATH, { headers: { 'Cache-Control': 'no-cache', 'If-None-Match': etag } });
    expect([changed.status, changed.body.data['computed']]).toEqual([200, { id: 'other' }]);
    expect(changed.headers['etag']).not.toBe(etag);
  });

  test('is computed anew where it has failed', async () => {
    let times = 0;
    const world = await open(() => {
      if (times++ === 0) throw new Error('once');
      return times;
    });
    expect((await world.get(PATH)).body.data['computed']).toBeNull();
    expect((await world.get(PATH)).body.data['computed']).toBe(2);
  });
});

describe('an input', () => {
  test('is null where it failed', async () => {
    const world = await open(counts);
    world.on('/author/', json(404, '{}'));
    expect((await world.get(PATH)).body.data['computed']).toEqual({ books: 2, authors: null });
  });

  test('is null where nobody asked for it, unless it is required: then it is read and not shown', async () => {
    const world = await open(counts);
    const { body } = await world.get(`${PATH}?sections=computed`);
    expect(body.data).toEqual({ computed: { books: 2, authors: null } });
    expect(Object.keys(body.meta.sections)).toEqual(['computed']);
    expect(world.upstream.calls.map(({ path }) => path)).toEqual(['/book/']);
  });

  test('is not needed where what is computed is not asked for', async () => {
    const world = await open(() => {
      throw new Error('not called');
    });
    const { body } = await world.get(`${PATH}?sections=authors`);
    expect(body.data).toEqual({ authors: JSON.parse(AUTHORS) as unknown });
    expect(world.upstream.calls).toHaveLength(1);
  });

  test.each([
    ['there is none', '{"id":7,"author":null}', 'not_applicable'],
    ['it is skipped', '', 'skipped'],
  ])('is null where %s', async (_, book, state) => {
    const mine = overview(
      PATH,
      { book: { read: rows.getBook, id: '7' }, author: { read: rows.getAuthor, id: from('book', 'author') } },
      ({ author }) => ({ author }),
    );
    const world = await openOwn([mine]);
    world.on('/book/7/', book === '' ? json(404, '{}') : book);
    const { body } = await world.get(PATH);
    expect(body.meta.sections['author']).toMatchObject({ state });
    expect(body.data['computed']).toEqual({ author: null });
  });

  test('that only another one depends on is null too', async () => {
    const mine = overview(
      PATH,
      { book: { read: rows.getBook, id: '7' }, author: { read: rows.getAuthor, id: from('book', 'author') } },
      (inputs) => inputs,
    );
    const world = await openOwn([mine]);
    world.on('/book/7/', '{"id":7,"author":"le-guin"}');
    world.on('/author/le-guin/', '{"id":"le-guin"}');
    const { body } = await world.get(`${PATH}?sections=author,computed`);
    expect(body.data['computed']).toEqual({ book: null, author: { id: 'le-guin' } });
  });

  test('that is stale makes what is computed stale', async () => {
    const world = await open(counts);
    await world.get('/author/');
    world.advance(31);
    world.on('/author/', json(503, ''));
    const { body } = await world.get(PATH);
    expect(body.meta.sections).toMatchObject({
      books: { state: 'fresh', age: 0 },
      authors: { state: 'stale', age: 31 },
      computed: { state: 'stale', age: 31 },
    });
  });

  test('that is required and failed has what is computed skipped, where only that is shown', async () => {
    const world = await open(counts);
    world.on('/book/', json(404, '{"detail":"no"}'));
    const { status, body } = await world.get(`${PATH}?sections=computed`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      data: { computed: null },
      errors: [{ section: 'computed', status: 404 }],
      meta: { sections: { computed: { state: 'skipped' } } },
    });
    expect((await world.get(PATH)).status).toBe(404);
  });
});

const throwing = (thrown: unknown) => () => {
  throw thrown as Error;
};

describe('a function that', () => {
  const cycle: unknown[] = [];
  cycle.push({ cycle });
  const broken = {
    get secret(): never {
      throw new Error('hunter2');
    },
  };

  test.each<readonly [what: string, compute: (inputs: Inputs) => unknown]>([
    [
      'throws',
      () => {
        throw new TypeError('hunter2\n    at hunter2');
      },
    ],
    ['throws what is no error', throwing('hunter2')],
    ['throws undefined', throwing(undefined)],
    ['gives nothing', () => undefined],
    ['gives a promise that fails', () => Promise.reject(new Error('hunter2'))],
    ['gives a function', () => () => 1],
    ['gives a BigInt', () => ({ a: 1n })],
    ['gives a cycle', () => cycle],
    ['gives what throws when it is looked at', () => broken],
  ])('%s fails that section alone, and stands in the log once, without a message', async (_, compute) => {
    const world = await open(compute);
    const { status, headers, body, text } = await world.get(PATH);
    expect([status, headers['cache-control'], headers['etag']]).toEqual([200, 'no-store', undefined]);
    const [{ detail, ...error } = {}] = body.errors;
    expect({ ...error, detail: typeof detail }).toEqual({
      section: 'computed',
      code: 'internal_error',
      status: 500,
      detail: 'string',
      retryable: false,
    });
    expect(body.meta).toMatchObject({ complete: false, sections: { computed: { state: 'failed' } } });
    expect(body.data).toMatchObject({ books: { count: 2 }, computed: null });
    expect(world.faults()).toHaveLength(1);
    expect(JSON.stringify([text, world.gateway.lines])).not.toContain('hunter2');
  });

  test('throws says where, in the log', async () => {
    const world = await open(function broke() {
      throw new RangeError('hunter2');
    });
    await world.get(PATH);
    expect(world.faults()[0]?.['fault']).toMatch(/^RangeError +at broke .*computed\.test\.ts/);
  });

  test.each([0, 1])('throws fails the whole with handling=strict, from %i copies', async (copies) => {
    const world = await open(() => {
      throw new Error('hunter2');
    });
    if (copies > 0) await world.get(PATH);
    const before = world.faults().length;
    const answer = await world.get(PATH, { headers: { Prefer: 'handling=strict' } });
    expect([answer.status, answer.json]).toMatchObject([500, { code: 'internal_error', section: 'computed' }]);
    expect(world.faults()).toHaveLength(before + 1);
    const lines = await world.get(PATH, { headers: { Prefer: 'handling=strict', Accept: 'application/x-ndjson' } });
    expect(lines.status).toBe(500);
  });
});

describe('as lines', () => {
  const headers = { Accept: 'application/x-ndjson' };

  test('what is computed is one, as soon as all its inputs are there', async () => {
    const slow = overview(
      PATH,
      { books: { read: rows.listBooks, required: true }, authors: { read: rows.listAuthors } },
      ({ books, authors }) => ({ first: books.results[0], authors: authors?.count }),
    );
    const world = await openOwn([slow]);
    const gate = barrier();
    world.on('/book/', page(`{"id":7,\n "price":25.0}`));
    world.on('/author/', reply(hold(gate), json(200, AUTHORS)));
    const { lines } = await stream(world.gateway.url, { path: PATH, token: world.token, headers });
    const iterator = lines[Symbol.asyncIterator]();
    const next = async () => ((await iterator.next()) as { value?: string }).value;
    expect(await next()).toContain('"section":"books"');
    gate.release();
    const others = [await next(), await next(), await next()];
    expect(others).toEqual([
      `{"section":"authors","state":"fresh","data":${AUTHORS}}`,
      '{"section":"computed","state":"fresh","data":{"first":{"id":7,"price":25},"authors":1}}',
      expect.stringMatching(/^\{"complete":true,"etag":/) as string,
    ]);
  });

  test('what failed is one with its error, and in the log once', async () => {
    const world = await open(() => {
      throw new Error('hunter2');
    });
    const { text } = await world.get(PATH, { headers });
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(lines).toMatchObject([
      { section: 'books' },
      { section: 'authors' },
      { section: 'computed', state: 'failed', error: { code: 'internal_error' } },
      { complete: true },
    ]);
    expect(world.faults()).toHaveLength(1);
  });
});
