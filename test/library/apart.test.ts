import { describe, expect, test } from 'vitest';
import { exposition } from '../metrics/exposition.ts';
import { openMeasured, REQUESTS } from '../metrics/helpers.ts';
import { json } from '../support/scripted-upstream.ts';
import { expectProblem } from '../http/problem.ts';
import { call, type TextAnswer } from '../support/http.ts';
import { LEAK_MARK } from '../support/secrets.ts';
import { ODYSSEY } from './library.ts';
import { openLibrary } from './world.ts';

const LOAN = `/v1/books/${ODYSSEY}/loans/`;

const pathsOf = ({ json: document }: TextAnswer) => Object.keys((document as { paths: object }).paths);

test('log lines name its calls, and nothing that a client sends', async () => {
  const { ask, gateway } = await openLibrary();
  await ask(`/v1/books/${ODYSSEY}?shelf=${LEAK_MARK}`);
  await ask(`/v1/books/${ODYSSEY}?shelf=${LEAK_MARK}`);
  await ask(LOAN, { body: { weeks: 3, note: LEAK_MARK } });
  await ask('/bff/v1/shelf');
  await ask(LOAN, { method: 'GET' });
  const lines = gateway.lines.filter(({ msg }) => msg === 'request');
  const account = lines[0]?.account;
  const book = { method: 'GET', route: '/v1/books/{id}', operation: 'getBook', status: 200, account };
  expect(lines).toMatchObject([
    { ...book, cache: 'miss', upstream_calls: 1 },
    { ...book, cache: 'hit', upstream_calls: 0 },
    { method: 'POST', route: '/v1/books/{id}/loans/', operation: 'lendBook', status: 201, account, upstream_calls: 1 },
    { method: 'GET', route: '/bff/v1/shelf', operation: 'getShelf', status: 200, account, upstream_calls: 2 },
    { method: 'GET', route: '(none)', status: 405, code: 'method_not_allowed' },
  ]);
  expect(JSON.stringify(lines)).not.toContain(LEAK_MARK);
  expect(JSON.stringify(lines)).not.toContain(ODYSSEY);
});

test('metrics have labels of its calls and of no others', async () => {
  const { ask, gateway } = await openLibrary({ admin: true });
  for (const path of ['/v1/books', '/v1/books/', `/v1/books/${ODYSSEY}`, '/bff/v1/shelf', '/v1/films']) await ask(path);
  const { text } = await call(gateway.adminUrl ?? '', { path: '/metrics' });
  const samples = exposition(text).samples.filter(({ name }) => name.startsWith('portico_'));
  const operations = new Set(samples.flatMap(({ labels }) => labels['operation'] ?? []));
  const calls = ['enter', 'getBook', 'getShelf', 'lendBook', 'listBooks'];
  expect([...operations].toSorted()).toEqual(['(none)', 'batch', 'getOutcome', ...calls].toSorted());
});

const both = async () => {
  const account = await openMeasured();
  return { books: await openLibrary({ admin: true }), account };
};

describe('beside a gateway of another upstream in the same process', () => {
  test('each has its own paths and refuses the other’s', async () => {
    const { books, account } = await both();
    const of = (path: string) => ({ path, token: account.token });
    expect((await account.call(of('/bff/v1/account-overview'))).status).toBe(200);
    expect((await books.ask('/bff/v1/shelf')).status).toBe(200);
    for (const path of ['/bff/v1/account-overview', '/api/v2/subscription/'])
      expectProblem(await books.ask(path), { status: 404, code: 'unknown_endpoint' });
    for (const path of ['/bff/v1/shelf', '/v1/books'])
      expectProblem(await account.call(of(path)), { status: 404, code: 'unknown_endpoint' });
  });

  test('each has its own document and problems', async () => {
    const { books, account } = await both();
    const [ofBooks, ofAccount] = await Promise.all([
      books.ask('/openapi.json'),
      account.call({ path: '/openapi.json' }),
    ]);
    const common = pathsOf(ofBooks).filter((path) => pathsOf(ofAccount).includes(path));
    expect(common.filter((path) => path.startsWith('/bff/'))).toEqual([
      '/bff/v1/batch',
      '/bff/v1/outcome',
      '/bff/v1/session',
    ]);
    expect(common.filter((path) => /^\/(v1|api)\//.test(path))).toEqual([]);
    const ownText = { detail: expect.stringMatching(/^A code of the upstream’s own/) };
    expect((await account.call({ path: '/problems/lost' })).json).toMatchObject(ownText);
    expect((await books.ask('/problems/paid_plan_active')).json).toMatchObject(ownText);
    expect((await account.call({ path: '/problems/paid_plan_active' })).json).not.toMatchObject(ownText);
  });

  test('a code of the one has no words of the other', async () => {
    const { books, account } = await both();
    account.upstream.on('GET /api/v2/subscription/', json(404, { code: 'lost' }));
    books.upstream.on('GET /v1/books', json(409, { code: 'paid_plan_active' }));
    const lost = await account.call({ path: '/api/v2/subscription/', token: account.token });
    expect(lost.json).toMatchObject({ code: 'lost', title: 'Lost', detail: 'Lost' });
    const active = await books.ask('/v1/books');
    expect(active.json).toMatchObject({ title: 'Paid plan active', detail: 'Paid plan active' });
  });

  test('each counts and keeps for itself', async () => {
    const { books, account } = await both();
    await books.ask('/v1/books');
    await account.call({ path: '/api/v2/subscription/', token: books.token });
    await books.ask('/v1/books');
    expect(books.asked()).toEqual(['GET /v1/books']);
    expect(account.upstream.calls).toHaveLength(1);
    expect(account.gateway.lines.map(({ route }) => route)).toEqual(['/api/v2/subscription/']);
    const ofAccount = await account.scrape();
    expect([ofAccount.value(REQUESTS), ofAccount.value(REQUESTS, { operation: 'listBooks' })]).toEqual([1, 0]);
    const { text } = await call(books.gateway.adminUrl ?? '', { path: '/metrics' });
    expect(exposition(text).value(REQUESTS)).toBe(2);
  });
});
