import { describe, expect, test } from 'vitest';
import { allOperations, type OperationId } from '../support/account-api.ts';
import { CONFIG, PENDING, responsesOf, openBatch, SUBSCRIPTION, transaction } from './helpers.ts';
import { manualClock } from '../support/clock.ts';
import { exampleBody, exampleInput } from '../support/examples.ts';
import { barrier, hang, hold, json, reply, reset, type Step } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

const reads = allOperations.filter(({ method }) => method === 'GET').map(({ id }) => id);

describe('a batch of reads', () => {
  test('has every pass-through GET, value for value and in order', async () => {
    const world = await openBatch();
    const all = reads.map((id) => ({ ...exampleInput(id), text: exampleBody(id) }));
    for (const { path, text } of all) world.on(path, json(200, text));
    for (let from = 0; from < all.length; from += 20) {
      const rows = all.slice(from, from + 20);
      const answer = await world.batch(rows.map(({ path }) => path));
      expect(answer.status).toBe(200);
      expect(answer.headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-store' });
      const parts = rows.map(({ text }, index) => `{"id":"r${index}","status":200,"body":${text}}`);
      expect(answer.text).toBe(`{"responses":[${parts.join(',')}]}`);
    }
    expect(world.upstream.calls).toHaveLength(all.length);
  });

  test('is in the order asked for, whichever is there first', async () => {
    const world = await openBatch();
    const gate = barrier();
    world.on(SUBSCRIPTION, reply(hold(gate), json(200, exampleBody('getSubscription'))));
    world.on(CONFIG, json(200, exampleBody('getReferralConfig')));
    world.on(PENDING, json(200, exampleBody('getPendingPayment')));
    const pending = world.post({
      requests: [
        { id: 'm', path: PENDING },
        { id: 'z', path: SUBSCRIPTION },
        { id: 'a', path: CONFIG },
      ],
    });
    await world.upstream.waitForCalls(3);
    await world.get(CONFIG); // there by now
    gate.release();
    expect(responsesOf(await pending).map(({ id }) => id)).toEqual(['m', 'z', 'a']);
  });

  test.each([
    ['that are cached', SUBSCRIPTION, 'getSubscription'],
    ['that are never cached', PENDING, 'getPendingPayment'],
    ['with secrets in them', '/api/v2/apikey/12345/', 'getApiKey'],
  ] as const)('makes one call of equal ones %s', async (_, path, id) => {
    const world = await openBatch();
    world.on(path, json(200, exampleBody(id)));
    const answer = await world.batch([path, path, path.slice(0, -1), `${path}?`]);
    expect(responsesOf(answer).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(answer.text.split(exampleBody(id))).toHaveLength(5);
    expect(world.upstream.calls).toHaveLength(1);
  });

  test.each(['no-cache', 'no-store'])('makes one call of equal ones for Cache-Control: %s too', async (control) => {
    const world = await openBatch();
    world.on(SUBSCRIPTION, json(200, exampleBody('getSubscription')));
    await world.get(SUBSCRIPTION);
    await world.batch([SUBSCRIPTION, SUBSCRIPTION], { headers: { 'Cache-Control': control } });
    expect(world.upstream.calls).toHaveLength(2);
  });

  test('tells queries apart and sends them as they are', async () => {
    const world = await openBatch();
    const queries = ['', '?page=2', '?page=2&x=a%20b', "?odd=a?b=c/..//'()*!~%2F%00&empty=&&[]={}|"];
    for (const query of queries) world.on(`/api/v2/payment/transaction/${query}`, json(200, { query }));
    const answer = await world.batch(queries.map((query) => `/api/v2/payment/transaction${query}`));
    expect(responsesOf(answer).map(({ body }) => body['query'])).toEqual(queries);
    expect(world.upstream.calls.map(({ target }) => target)).toEqual(
      queries.map((query) => `/api/v2/payment/transaction/${query}`),
    );
  });

  test('is served by what pass-through reads and overviews left in the cache, and the other way round', async () => {
    const world = await openBatch();
    world.on(SUBSCRIPTION, json(200, exampleBody('getSubscription')));
    world.on(CONFIG, json(200, exampleBody('getReferralConfig')));
    await world.get(SUBSCRIPTION);
    await world.batch([SUBSCRIPTION, CONFIG]);
    expect(world.upstream.calls).toHaveLength(2);
    expect((await world.get(CONFIG)).headers['cache-status']).toMatch(/^portico; hit; /);
    expect((await world.get('/bff/v1/referral-overview?sections=referral_config')).status).toBe(200);
    expect(world.upstream.calls).toHaveLength(2);
  });

  test.each([
    ['the origin of the request', {}],
    ['PUBLIC_URL', { PUBLIC_URL: 'https://portico.example' }],
  ])('points the links of pages at %s', async (_, env: Readonly<Record<string, string>>) => {
    const world = await openBatch(env);
    const path = '/api/v2/payment/transaction/';
    const next = `${world.upstream.url}${path}?page=2`;
    world.on(path, json(200, exampleBody('listTransactions', { next, previous: null })));
    const answer = await world.batch([path]);
    const origin = env['PUBLIC_URL'] ?? world.gateway.url;
    expect(responsesOf(answer)[0]?.body).toMatchObject({ next: `${origin}${path}?page=2`, previous: null });
    expect(answer.text).not.toContain(world.upstream.url);
  });

  test('takes ids of any characters, and up to 64 of them', async () => {
    const world = await openBatch();
    world.on(SUBSCRIPTION, json(200, '{}'));
    const ids = ['a', '"', '\\', 'é\n', '__proto__', '0', ' ', '😀', 'x'.repeat(64)];
    const answer = await world.post({ requests: ids.map((id) => ({ id, path: SUBSCRIPTION })) });
    expect(responsesOf(answer).map(({ id }) => id)).toEqual(ids);
  });
});

describe('errors inside', () => {
  const cases: readonly (readonly [name: string, step: Step, problem: Record<string, unknown>])[] = [
    ['400', json(400, { detail: 'No.', code: 'paid_plan_active' }), { status: 400, code: 'paid_plan_active' }],
    ['401', json(401, { detail: 'Invalid token.' }), { status: 401, code: 'unauthenticated' }],
    ['403', json(403, { detail: 'Two factors.', code: '2fa_needed' }), { status: 403, code: '2fa_needed' }],
    ['404', json(404, { detail: 'Not found.' }), { status: 404, code: 'not_found' }],
    [
      '429',
      json(429, '', { 'Retry-After': '7' }),
      { status: 429, code: 'rate_limited', retry_after: 7, retryable: true },
    ],
    ['500', json(500, 'oops'), { status: 502, code: 'upstream_bad_response' }],
    ['503', json(503, '', { 'Retry-After': '9' }), { status: 503, code: 'upstream_unavailable', retry_after: 9 }],
    ['504', json(504, ''), { status: 504, code: 'upstream_timeout' }],
    ['HTML', json(200, '<html>'), { status: 502, code: 'upstream_bad_response' }],
    ['a reset', reset(), { status: 502, code: 'upstream_unreachable' }],
  ];

  test.each(cases)('are problems of their own: %s', async (_, step, problem) => {
    const world = await openBatch();
    world.on(transaction(31), step);
    world.on(SUBSCRIPTION, json(200, '{}'));
    const answer = await world.batch([SUBSCRIPTION, transaction('31')], { headers: { 'X-Request-Id': 'batch-1' } });
    expect(answer.status).toBe(200);
    const [fine, failed] = responsesOf(answer);
    expect(failed).toMatchObject({ id: 'r1', status: problem['status'] });
    expect(failed?.body).toMatchObject({
      ...problem,
      type: `/problems/${String(problem['code'])}`,
      title: expect.any(String) as string,
      detail: expect.any(String) as string,
      instance: transaction(31),
      request_id: 'batch-1',
      errors: expect.any(Array) as unknown[],
    });
    expect(fine).toMatchObject({ id: 'r0', status: 200 });
  });

  test('name the path without its query, and every bad parameter', async () => {
    const world = await openBatch();
    const path = '/api/v2/payment/transaction/';
    const [failed] = responsesOf(await world.batch([`${path}?page=x&page_size=0&secret=abc`]));
    expect(failed).toMatchObject({ status: 400, body: { code: 'validation_failed', instance: path } });
    expect(failed?.body['errors']).toMatchObject([{ field: 'page' }, { field: 'page_size' }]);
    expect(world.upstream.calls).toHaveLength(0);
  });

  const getPaths = new Set(allOperations.filter(({ method }) => method === 'GET').map(({ path }) => path));
  const writeOnly = allOperations.filter(({ path }) => !getPaths.has(path)).map(({ id }) => [id] as const);

  test.each(writeOnly)('say 405 where there is no GET: %s', async (id: OperationId) => {
    const world = await openBatch();
    const { path } = exampleInput(id);
    expect(responsesOf(await world.batch([path]))).toMatchObject([
      { id: 'r0', status: 405, body: { code: 'method_not_allowed', status: 405, instance: path } },
    ]);
    expect(world.upstream.calls).toHaveLength(0);
  });

  test.each([
    '/',
    '/api/v2/',
    '/api/v2/nothing/',
    '/api/v2/subscription//',
    '/API/v2/subscription/',
    '/livez',
    '/bff/v1/account-overview',
    '/bff/v1/batch',
    '/openapi.json',
    '/api/v2/payment/method/abc/',
    `/api/v2/payment/method/${'1'.repeat(20)}/`,
    '/api/v2/payment/method/-1/',
    // made to get elsewhere
    '//evil.example/api/v2/subscription/',
    '///api/v2/subscription/',
    '/http://evil.example/api/v2/subscription/',
    '/@evil.example/api/v2/subscription/',
    '/\\evil.example/api/v2/subscription/',
    '/api/v2/../v2/subscription/',
    '/./api/v2/subscription/',
    '/api/v2/payment/method/7/../8/',
    '/api/v2/payment/method/7%2f/',
    '/api/v2/payment/method/%37/',
    '/api/v2/payment/method/7%00/',
    '/api/v2/payment/method/7;x=1/',
    '/%61pi/v2/subscription/',
    '/api%2fv2%2fsubscription/',
    '/api/v2/subscription/%3Fx=1',
  ])('say 404 where there is nothing: %s', async (path) => {
    const world = await openBatch();
    const [response] = responsesOf(await world.batch([path]));
    expect(response).toMatchObject({ status: 404, body: { code: 'unknown_endpoint', instance: path } });
    expect(world.upstream.calls).toHaveLength(0);
  });

  test('come in time when an item hangs', async () => {
    const clock = manualClock();
    const world = await openBatch({ REQUEST_TIMEOUT_MS: '1000' }, { clock });
    world.on(SUBSCRIPTION, hang());
    world.on(CONFIG, json(200, '{}'));
    const pending = world.batch([CONFIG, SUBSCRIPTION]);
    await world.upstream.waitForCalls(2);
    clock.advance(1000);
    expect(responsesOf(await pending)).toMatchObject([
      { status: 200, body: {} },
      { status: 504, body: { code: 'upstream_timeout', instance: SUBSCRIPTION } },
    ]);
    await world.upstream.disconnected(world.upstream.callsTo(`GET ${SUBSCRIPTION}`)[0]!);
  });
});

test('a client that leaves cancels what only it was waiting for', async () => {
  const world = await openBatch();
  const gate = barrier();
  for (const path of [SUBSCRIPTION, CONFIG]) world.on(path, reply(hold(gate), json(200, '{}')));
  world.on(PENDING, json(200, '{}'));
  const read = world.get(SUBSCRIPTION);
  await world.upstream.waitForCalls(1);
  const leaving = new AbortController();
  const pending = world.batch([PENDING, SUBSCRIPTION, CONFIG], { signal: leaving.signal });
  await world.upstream.waitForCalls(3);
  leaving.abort();
  await expect(pending).rejects.toThrow('aborted');
  await world.upstream.disconnected(world.upstream.callsTo(`GET ${CONFIG}`)[0]!);
  gate.release();
  expect((await read).status).toBe(200);
});

test('accounts are kept apart, and only what is allowed gets upstream', async () => {
  const world = await openBatch();
  world.on(SUBSCRIPTION, json(200, '{}'));
  const other = secret();
  const headers = { 'X-Subuser': 'x', Cookie: 'a=b' };
  await world.batch([SUBSCRIPTION], { headers });
  await world.batch([SUBSCRIPTION], { token: other });
  const sent = world.upstream.calls.map((each) => each.headers);
  expect(sent.map(({ authorization }) => authorization)).toEqual([`Token ${world.token}`, `Token ${other}`]);
  for (const name of ['x-subuser', 'idempotency-key', 'cookie', 'content-type'])
    expect(sent[0]).not.toHaveProperty(name);
});
