import { describe, expect, test } from 'vitest';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';
import { expectProblem } from '../http/problem.ts';
import { manualClock } from '../support/clock.ts';
import { call } from '../support/http.ts';
import { secret } from '../support/secrets.ts';
import { sharedStores } from '../support/stores.ts';
import { watchedStore } from '../support/watched-store.ts';
import { ILIAD, ODYSSEY } from './library.ts';
import { type Library, openLibrary, startLibrary } from './world.ts';

type Ask = Library['ask'];

/** Whether somebody has the Odyssey, by the list and by the book. */
const isLent = async (ask: Ask) => {
  const [list, one] = await Promise.all([ask('/v1/books'), ask(`/v1/books/${ODYSSEY}`)]);
  const { results } = list.json as { results: readonly { isbn: string; on_loan: boolean }[] };
  return [results.find(({ isbn }) => isbn === ODYSSEY)?.on_loan, (one.json as { on_loan: boolean }).on_loan];
};

const lend = (ask: Ask, key?: string) =>
  ask(`/v1/books/${ODYSSEY}/loans`, { body: { weeks: 3 }, ...(key && { headers: { 'Idempotency-Key': key } }) });

const twoInstances = async () => {
  const clock = manualClock();
  const { store, other } = sharedStores(clock);
  const env = { SECRETS: secret('of-both-instances-of-the-library') };
  const world = await openLibrary({ store, clock, env });
  const gateway = await startLibrary(world.upstream, { store: other, clock, env });
  const askOther: Ask = (path, options) => call(gateway.url, { path, token: world.token, ...options });
  return { ...world, askOther };
};

describe('who has lent a book sees it', () => {
  test('in the list and at the book, and other books are still held', async () => {
    const { ask, asked } = await openLibrary();
    await ask(`/v1/books/${ILIAD}`);
    expect(await isLent(ask)).toEqual([false, false]);
    expect(await isLent(ask)).toEqual([false, false]);
    expect((await lend(ask)).status).toBe(201);
    expect(await isLent(ask)).toEqual([true, true]);
    await ask(`/v1/books/${ILIAD}`);
    expect(asked()).toHaveLength(6);
  });

  test('at another instance too', async () => {
    const { ask, askOther, asked } = await twoInstances();
    expect(await isLent(ask)).toEqual([false, false]);
    expect(await isLent(askOther)).toEqual([false, false]);
    expect(asked()).toHaveLength(2);
    expect((await lend(ask)).status).toBe(201);
    expect(await isLent(askOther)).toEqual([true, true]);
    expect(await isLent(ask)).toEqual([true, true]);
    expect(asked()).toHaveLength(5);
  });

  test('in the overview', async () => {
    const { ask } = await openLibrary();
    const stateOf = async () => ((await ask('/bff/v1/shelf')).json as { data: unknown }).data;
    expect(await stateOf()).toMatchObject({ of_the_month: { on_loan: false } });
    expect(await stateOf()).toMatchObject({ computed: { lent: 0, is_there: true } });
    await lend(ask);
    expect(await stateOf()).toMatchObject({
      computed: { lent: 1, is_there: false },
      books: { results: [{ on_loan: true }, {}] },
      of_the_month: { on_loan: true },
    });
  });
});

test('a loan with a key is sent once', async () => {
  const { ask, asked } = await openLibrary();
  const first = await lend(ask, 'a-key');
  const second = await lend(ask, 'a-key');
  expect(second).toMatchObject({ status: 201, text: first.text, headers: { 'idempotency-replayed': 'true' } });
  expect(asked()).toHaveLength(1);
  expectProblem(await lend(ask), { status: 409, code: 'on_loan' });
});

test('equal reads at once share a call, whether with the last slash or without it, in a batch or in the overview', async () => {
  const clock = manualClock();
  const store = watchedStore(sharedStores(clock).store);
  const { ask, upstream, asked } = await openLibrary({ store, clock });
  const gate = barrier();
  const answer = { count: 0, next: null, previous: null, results: [] };
  upstream.on('GET /v1/books', reply(hold(gate), json(200, answer)));
  const waiting = store.lookups.next(4);
  const requests = [
    { id: 'a', path: '/v1/books' },
    { id: 'b', path: `/v1/books/${ILIAD}` },
  ];
  const answers = Promise.all([
    ask('/v1/books'),
    ask('/v1/books/'),
    ask('/bff/v1/shelf'),
    ask('/bff/v1/batch', { body: { requests } }),
  ]);
  await waiting;
  await gate.reached;
  gate.release();
  const [one, two, overview, batch] = await answers;
  expect([one.json, two.json]).toEqual([answer, answer]);
  expect(overview.json).toMatchObject({ data: { books: answer }, meta: { complete: true } });
  const [a, b] = (batch.json as { responses: readonly unknown[] }).responses;
  expect(a).toEqual({ id: 'a', status: 200, body: answer });
  expect(b).toMatchObject({ id: 'b', status: 200, body: { title: 'The Iliad' } });
  expect(asked().filter((at) => at === 'GET /v1/books')).toHaveLength(1);
});

test('an overview is 304 to whoever has it, and without its book still tells of the list', async () => {
  const { ask, upstream } = await openLibrary();
  const { headers } = await ask('/bff/v1/shelf');
  expect((await ask('/bff/v1/shelf', { headers: { 'If-None-Match': String(headers['etag']) } })).status).toBe(304);
  upstream.on(`GET /v1/books/${ODYSSEY}`, json(404, { code: 'lost' }));
  const { status, json: body } = await ask('/bff/v1/shelf', { headers: { 'Cache-Control': 'no-cache' } });
  expect({ status, body }).toMatchObject({
    status: 200,
    body: {
      data: { books: { count: 2 }, of_the_month: null },
      errors: [{ section: 'of_the_month', code: 'lost', detail: 'Nobody has seen it since the flood.' }],
    },
  });
});

test('a batch of a book and a list', async () => {
  const { ask } = await openLibrary();
  const requests = [
    { id: 'a', path: `/v1/books/${ILIAD}/` },
    { id: 'b', path: '/v1/books?page=2' },
    { id: 'c', path: '/v1/films' },
  ];
  const { status, json: body } = await ask('/bff/v1/batch', { body: { requests } });
  expect({ status, body }).toMatchObject({
    status: 200,
    body: {
      responses: [
        { id: 'a', status: 200, body: { isbn: ILIAD } },
        { id: 'b', status: 200, body: { count: 2 } },
        { id: 'c', status: 404, body: { code: 'unknown_endpoint' } },
      ],
    },
  });
});
