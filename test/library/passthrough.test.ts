import { Hono } from 'hono';
import { describe, expect, test } from 'vitest';
import { expectProblem } from '../http/problem.ts';
import { call } from '../support/http.ts';
import { ILIAD, ODYSSEY } from './library.ts';
import { openLibrary } from './world.ts';

const CALLS = [
  { at: 'GET /v1/books', status: 200 },
  { at: `GET /v1/books/${ILIAD}`, status: 200 },
  { at: `POST /v1/books/${ILIAD}/loans/`, status: 201, body: { weeks: 3 } },
  { at: 'POST /v1/login', status: 200, body: { reader: 'penelope', password: 'p' } },
] as const;

const slashes = ['', '/'] as const;

describe.each(slashes)('with "%s" at its end', (slash) => {
  test.each(CALLS)('$at goes to the upstream as its row has it', async ({ at, status, ...body }) => {
    const { ask, asked } = await openLibrary();
    const [method = '', path = ''] = at.split(' ');
    const answer = await ask(path.replace(/\/$/, '') + slash, { method, ...body });
    expect(answer.status).toBe(status);
    expect(asked()).toEqual([at]);
  });
});

test('what is read twice is asked for once, and 304 to whoever has it', async () => {
  const { ask, asked } = await openLibrary();
  const first = await ask(`/v1/books/${ODYSSEY}`);
  const second = await ask(`/v1/books/${ODYSSEY}/`);
  expect(second.headers).toMatchObject({
    'cache-status': 'portico; hit; ttl=60',
    'cache-control': 'private, no-cache',
    vary: 'Authorization',
    etag: first.headers['etag'],
  });
  expect(second.text).toBe(`{"isbn":"${ODYSSEY}","title":"The Odyssey","on_loan":false}`);
  const third = await ask(`/v1/books/${ODYSSEY}`, { headers: { 'If-None-Match': String(first.headers['etag']) } });
  expect({ status: third.status, text: third.text }).toEqual({ status: 304, text: '' });
  expect(asked()).toHaveLength(1);
});

test('the pages of a list link to the gateway', async () => {
  const { ask, gateway } = await openLibrary();
  expect((await ask('/v1/books/?page=1')).json).toMatchObject({
    next: `${gateway.url}/v1/books?page=2`,
    previous: null,
  });
});

const REFUSED = [
  ['PATCH', '/v1/books', 'GET, HEAD'],
  ['DELETE', `/v1/books/${ODYSSEY}/`, 'GET, HEAD'],
  ['GET', `/v1/books/${ODYSSEY}/loans`, 'POST'],
  ['GET', '/v1/login/', 'POST'],
] as const;

test.each(REFUSED)('%s %s is refused, and what is allowed is told', async (method, path, allowed) => {
  const { ask, asked } = await openLibrary();
  const answer = await ask(path, { method });
  expect(answer.headers['allow']).toBe(allowed);
  expectProblem({ ...answer, headers: answer.headers }, { status: 405, code: 'method_not_allowed', instance: path });
  expect(asked()).toEqual([]);
});

const NOWHERE = [
  '/v1/',
  '/v1/book',
  '/v1/books/a.b',
  `/v1/books/${'a'.repeat(65)}`,
  '/v1/books/a/loans/7',
  '/api/v2/x/',
];

test.each(NOWHERE)('nothing is at %s', async (path) => {
  const { ask, asked } = await openLibrary();
  expectProblem(await ask(path), { status: 404, code: 'unknown_endpoint' });
  expect(asked()).toEqual([]);
});

const hosted = () =>
  openLibrary({
    around: (app) =>
      new Hono()
        .route('/', app)
        .get('/v1/opening-hours', (c) => c.text('nine to five'))
        .notFound((c) => c.text('not here', 404)),
  });

describe('in a host app', () => {
  test('its paths answer, and refuse other methods', async () => {
    const { ask } = await hosted();
    for (const path of ['/v1/books', '/v1/books/', '/bff/v1/shelf']) expect((await ask(path)).status).toBe(200);
    const refused = await ask('/v1/books/', { method: 'DELETE' });
    expect(refused.headers['allow']).toBe('GET, HEAD');
    expectProblem(refused, { status: 405, code: 'method_not_allowed' });
  });

  test('all other paths are the host’s but those below /api and /bff', async () => {
    const { ask } = await hosted();
    expect((await ask('/v1/opening-hours')).text).toBe('nine to five');
    for (const path of ['/', '/v1/', '/v1/films', `/v1/books/${ODYSSEY}/covers`]) {
      const { status, text } = await ask(path);
      expect({ status, text }).toEqual({ status: 404, text: 'not here' });
    }
    for (const path of ['/api/v1/', '/bff/v1/'])
      expectProblem(await ask(path), { status: 404, code: 'unknown_endpoint' });
  });
});

describe('problems', () => {
  test('a query that is not as documented', async () => {
    const { ask, asked } = await openLibrary();
    const answer = await ask('/v1/books?page=0&on_loan=perhaps&shelf=3');
    const { errors } = expectProblem(answer, { status: 400, code: 'validation_failed' });
    expect(errors.map(({ field }) => field)).toEqual(['page', 'on_loan']);
    expect(asked()).toEqual([]);
  });

  test('a body that is not as documented', async () => {
    const { ask, asked } = await openLibrary();
    const answer = await ask(`/v1/books/${ODYSSEY}/loans/`, { body: { weeks: 'many' } });
    const { errors } = expectProblem(answer, { status: 400, code: 'validation_failed' });
    expect(errors).toMatchObject([{ field: 'weeks' }]);
    expect(asked()).toEqual([]);
  });

  test('no credential, and one that the upstream does not accept', async () => {
    const { ask, asked, gateway } = await openLibrary();
    expectProblem(await call(gateway.url, { path: '/v1/books' }), { status: 401, code: 'unauthenticated' });
    expect(asked()).toEqual([]);
    expectProblem(await ask('/v1/books', { token: 'a-stranger' }), { status: 401, code: 'unauthenticated' });
  });

  test('a code of its own, in the words of its row, which has a page', async () => {
    const { ask } = await openLibrary();
    const expected = { status: 404, code: 'lost', title: 'The book is lost' };
    const answer = await ask('/v1/books/none');
    expectProblem(answer, expected);
    const detail = 'Nobody has seen it since the flood.';
    expect(answer.json).toMatchObject({ ...expected, detail });
    expect((await ask('/problems/lost')).json).toEqual({
      type: '/problems/lost',
      ...expected,
      detail,
      retryable: false,
    });
    const { json } = await ask('/problems');
    expect(json).toMatchObject({ problems: expect.arrayContaining([expect.objectContaining(expected)]) });
    expect(json).toMatchObject({ problems: expect.arrayContaining([expect.objectContaining({ code: 'on_loan' })]) });
  });
});
