import { describe, expect, test } from 'vitest';
import { overview } from '../../src/gateway/overviews.ts';
import { from, fromPath } from '../../src/gateway/sections.ts';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';
import { openOwn, page, rows } from './own.ts';

const BOOK = '{"id":7,"author":"le-guin","price":25.0}';

describe('a parameter of the path', () => {
  const ofBook = overview('/bff/v1/book-overview/:book', {
    book: { read: rows.getBook, id: fromPath, required: true },
    similar: { read: rows.listBooks, query: { like: fromPath, page_size: 5, old: true } },
  });

  test('is the id and the part of a query that sections say', async () => {
    const world = await openOwn([ofBook]);
    world.on('/book/7/', BOOK);
    world.on('/book/?like=7&page_size=5&old=true', page());
    const { status, text, headers } = await world.get('/bff/v1/book-overview/7');
    expect([status, text]).toEqual([200, expect.stringContaining(`{"data":{"book":${BOOK},"similar":${page()}}`)]);
    const again = await world.get('/bff/v1/book-overview/7/', { headers: { 'If-None-Match': headers['etag']! } });
    expect([again.status, world.upstream.calls.length]).toEqual([304, 2]);
    const [line] = world.gateway.lines.filter(({ msg }) => msg === 'request');
    expect(line).toMatchObject({ route: '/bff/v1/book-overview/{book}', operation: 'getBookOverview' });
  });

  test('may be any integer that the upstream has', async () => {
    const world = await openOwn([ofBook]);
    const id = '9223372036854775807';
    world.on(`/book/${id}/`, `{"id":${id}}`);
    const { text } = await world.get(`/bff/v1/book-overview/${id}?sections=book`);
    expect(text).toContain(`"data":{"book":{"id":${id}}}`);
  });

  test.each(['x', '-1', '1.5', '12345678901234567890', '7%20', '%37', '7/8', '', 'batch', '..', '7;a=1'])(
    'that is %j is a path that is unknown, and no call of the upstream',
    async (text) => {
      const world = await openOwn([ofBook]);
      const { status, json: problem } = await world.get(`/bff/v1/book-overview/${text}`);
      expect([status, problem]).toMatchObject([404, { code: 'unknown_endpoint' }]);
      expect(world.upstream.calls).toEqual([]);
    },
  );

  test('takes no other method than GET', async () => {
    const world = await openOwn([ofBook]);
    const { status, headers } = await world.get('/bff/v1/book-overview/7', { method: 'POST', body: {} });
    expect([status, headers['allow']]).toEqual([405, 'GET, HEAD']);
  });

  test('is what tells one answer from another, whoever asks first', async () => {
    const world = await openOwn([ofBook]);
    const ids = ['1', '2', '10', '12'];
    const gate = barrier();
    for (const id of ids) {
      world.on(`/book/${id}/`, reply(hold(gate), json(200, `{"id":${id}}`)));
      world.on(`/book/?like=${id}&page_size=5&old=true`, page(`{"id":${id}}`));
    }
    const answers = ids.map((id) => world.get(`/bff/v1/book-overview/${id}`));
    await world.upstream.waitForCalls(2 * ids.length);
    gate.release();
    const warm = ids.map((id) => world.get(`/bff/v1/book-overview/${id}`));
    for (const [at, answer] of [...answers, ...warm].entries()) {
      const id = Number(ids[at % ids.length]);
      expect((await answer).body.data).toMatchObject({ book: { id }, similar: { results: [{ id }] } });
    }
  });

  test('may be a slug where all that it is the id of take one', async () => {
    const ofAuthor = overview('/bff/v1/author-overview/:slug', { author: { read: rows.getAuthor, id: fromPath } });
    const world = await openOwn([ofAuthor]);
    world.on('/author/le-guin/', '{"id":"le-guin"}');
    expect((await world.get('/bff/v1/author-overview/le-guin')).body.data).toEqual({ author: { id: 'le-guin' } });
    expect((await world.get('/bff/v1/author-overview/le.guin')).status).toBe(404);
  });

  test('is digits where one of those takes no other', async () => {
    const both = overview('/bff/v1/author-overview/:slug', {
      author: { read: rows.getAuthor, id: fromPath },
      book: { read: rows.getBook, id: fromPath },
    });
    const world = await openOwn([both]);
    expect((await world.get('/bff/v1/author-overview/le-guin')).status).toBe(404);
  });

  test('that the row refuses in a query fails that section alone', async () => {
    const sized = overview('/bff/v1/books/:size', {
      books: { read: rows.listBooks, query: { page_size: fromPath } },
      authors: { read: rows.listAuthors },
    });
    const world = await openOwn([sized]);
    world.on('/author/', page());
    const { status, body } = await world.get('/bff/v1/books/1234');
    expect(status).toBe(200);
    expect(body.errors).toMatchObject([{ section: 'books', code: 'validation_failed' }]);
  });
});

describe('an id that another section names', () => {
  const withAuthor = overview('/bff/v1/book-overview/:id', {
    book: { read: rows.getBook, id: fromPath },
    author: { read: rows.getAuthor, id: from('book', 'author', rows.listAuthors) },
  });
  const without = overview('/bff/v1/author-of/:id', {
    book: { read: rows.getBook, id: fromPath },
    author: { read: rows.getAuthor, id: from('book', 'author') },
  });
  const AUTHOR = '{"id":"le-guin","name":"Ursula"}';

  test('is looked for in the list, which is read at the same time', async () => {
    const world = await openOwn([withAuthor]);
    const gate = barrier();
    world.on('/book/7/', reply(hold(gate), json(200, BOOK)));
    world.on('/author/', reply(hold(gate), json(200, page('{"id":"le"}', AUTHOR))));
    const answer = world.get('/bff/v1/book-overview/7');
    await world.upstream.waitForCalls(2);
    gate.release();
    expect((await answer).text).toContain(`"author":${AUTHOR}}`);
  });

  test('is asked for when the other section is there, where no list is named', async () => {
    const world = await openOwn([without]);
    world.on('/book/7/', BOOK);
    world.on('/author/le-guin/', AUTHOR);
    const { text } = await world.get('/bff/v1/author-of/7');
    expect(text).toContain(`"author":${AUTHOR}}`);
    const again = await world.get('/bff/v1/author-of/7');
    expect(again.headers['cache-status']).toMatch(/^portico; hit/);
    expect(world.upstream.calls.map(({ path }) => path)).toEqual(['/book/7/', '/author/le-guin/']);
  });

  test.each([
    ['null', 'not_applicable', undefined],
    ['"null"', 'fresh', undefined],
    ['"le guin"', 'failed', 'upstream_bad_response'],
    ['"../key"', 'failed', 'upstream_bad_response'],
    ['{}', 'failed', 'upstream_bad_response'],
    ['""', 'failed', 'upstream_bad_response'],
  ])('that is %s makes it %s', async (author, state, code) => {
    const world = await openOwn([without]);
    world.on('/book/7/', `{"id":7,"author":${author}}`);
    world.on('/author/null/', AUTHOR);
    const { body } = await world.get('/bff/v1/author-of/7');
    expect(body.meta.sections['author']).toMatchObject({ state });
    expect(body.errors.map((error) => error['code'])).toEqual(code === undefined ? [] : [code]);
  });

  test('is skipped where the other section failed', async () => {
    const world = await openOwn([without]);
    world.on('/book/7/', json(404, '{"detail":"no"}'));
    const { body } = await world.get('/bff/v1/author-of/7');
    expect(body.meta.sections).toEqual({ book: { state: 'failed' }, author: { state: 'skipped' } });
  });

  test('is that of the book that is asked for', async () => {
    const world = await openOwn([without]);
    for (const id of [1, 2]) {
      world.on(`/book/${id}/`, `{"id":${id},"author":"author-${id}"}`);
      world.on(`/author/author-${id}/`, `{"id":"author-${id}"}`);
    }
    for (const id of [1, 2, 1, 2])
      expect((await world.get(`/bff/v1/author-of/${id}`)).body.data['author']).toEqual({ id: `author-${id}` });
  });
});

describe('a row in the place of another one', () => {
  const mine = overview('/bff/v1/mine', { books: { read: rows.listBooks } });

  test('is what is read, with its own path and policy', async () => {
    const cache = { fresh: 5, stale: 0, onError: 0 };
    const world = await openOwn([mine], { listBooks: { ...rows.listBooks, path: '/v2/book/', cache } });
    world.on('/v2/book/', page());
    await world.get('/bff/v1/mine');
    world.advance(4);
    await world.get('/bff/v1/mine');
    expect(world.upstream.calls).toHaveLength(1);
    world.advance(2);
    await world.get('/bff/v1/mine');
    expect(world.upstream.calls).toHaveLength(2);
  });
});

test('an answer of a row that is never cached is not to be kept, nor one with a part of it', async () => {
  const secret = overview('/bff/v1/mine', { books: { read: rows.listBooks }, key: { read: rows.getKey } });
  const world = await openOwn([secret]);
  world.on('/book/', page());
  world.on('/key/', '{"key":"abc"}');
  const { headers, body } = await world.get('/bff/v1/mine');
  expect(body.meta.complete).toBe(true);
  expect([headers['cache-control'], headers['etag']]).toEqual(['no-store', undefined]);
  const part = await world.get('/bff/v1/mine?sections=books');
  expect(part.headers['etag']).toBeDefined();
});
