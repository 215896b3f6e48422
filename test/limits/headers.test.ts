import { describe, expect, test } from 'vitest';
import { limitOf, NO_LIMIT, openLimited } from './helpers.ts';
import { overviewTable } from '../overviews/helpers.ts';
import { openCircuit, PLAIN } from '../resilience/helpers.ts';
import { call } from '../support/http.ts';
import { callOf } from '../support/marked.ts';
import { hang, json, type Step } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { readIds } from '../support/table.ts';
import { openWorld } from '../support/world.ts';

/** Of an account's limit of 9, with 60 s left. A 304 does not say what the limit is. */
const expected = (statuses: readonly number[]) =>
  statuses.map((status, at) => ['account', status === 304 ? undefined : 9, 8 - at, 60]);

describe('RateLimit and RateLimit-Policy', () => {
  test('count down, with the seconds that are left', async () => {
    const world = await openLimited(3);
    const limits = [];
    for (let asked = 0; asked < 5; asked++) {
      limits.push(limitOf(await world.ask(PLAIN)));
      world.advance(7);
    }
    expect(limits).toEqual([
      ['account', 3, 2, 60],
      ['account', 3, 1, 53],
      ['account', 3, 0, 46],
      ['account', 3, 0, 39],
      ['account', 3, 0, 32],
    ]);
  });

  test.each(readIds)('are on what %s answers, fresh, from the cache and 304', async (id) => {
    const world = await openLimited(9);
    const first = await world.ask(id);
    const second = await world.ask(id);
    const third = await world.ask(id, { headers: { 'If-None-Match': first.headers['etag'] ?? '"none"' } });
    expect(third.status).toBe('etag' in first.headers ? 304 : 200);
    expect([first, second, third].map(limitOf)).toEqual(expected([200, 200, third.status]));
  });

  test.each<[string, number, Step]>([
    ['a refusal', 404, json(404, '')],
    ['a 401', 401, json(401, '')],
    ['a 429 of the upstream', 429, json(429, '')],
    ['a failure', 502, json(500, '')],
    ['an answer that is not JSON', 502, json(200, '<html>')],
  ])('are on the problem that comes of %s', async (_, status, step) => {
    const world = await openLimited(9);
    world.upstream.on(callOf(PLAIN), step);
    const answer = await world.ask(PLAIN);
    expect([answer.status, limitOf(answer)]).toEqual([status, ['account', 9, 8, 60]]);
  });

  test('are on what the layers round the upstream refuse', async () => {
    const world = await openLimited(9);
    await openCircuit(world);
    const answer = await world.ask(PLAIN);
    expect([answer.status, limitOf(answer)]).toEqual([503, ['account', 9, 8, 60]]);
  });

  test('are on a timeout', async () => {
    const world = await openLimited(9);
    world.upstream.on(callOf(PLAIN), hang());
    const asked = world.ask(PLAIN);
    await world.upstream.waitForCalls(1);
    world.advance(10);
    expect(limitOf(await asked)).toEqual(['account', 9, 8, 50]);
  });

  test.each([
    ['bad JSON', { body: '{' }, 400],
    ['another type', { headers: { 'Content-Type': 'text/plain' } }, 415],
    ['a bad key', { method: 'POST', headers: { 'Idempotency-Key': 'a b' } }, 400],
  ] as const)('are on the problem that comes of %s', async (name, options, status) => {
    const world = await openLimited(9);
    const answer = await world.ask(name === 'a bad key' ? 'createApiKey' : 'updateReferralConfig', options);
    expect([answer.status, limitOf(answer)]).toEqual([status, ['account', 9, 8, 60]]);
  });

  test.each(overviewTable)('are on %s, in each of its forms', async (path) => {
    const { gateway, token } = await openLimited(9);
    const first = await call(gateway.url, { path, token });
    const forms = [
      { 'If-None-Match': first.headers['etag'] ?? '' },
      { Accept: 'application/x-ndjson' },
      { Prefer: 'handling=strict' },
    ];
    const answers = [first];
    for (const headers of forms) answers.push(await call(gateway.url, { path, token, headers }));
    answers.push(await call(gateway.url, { path: `${path}?sections=nothing`, token }));
    expect(answers.map(({ status }) => status)).toEqual([200, 304, 200, 200, 400]);
    expect(answers.map(limitOf)).toEqual(expected([200, 304, 200, 200, 400]));
  });

  test('are on a batch, good or bad', async () => {
    const { gateway, token } = await openLimited(9);
    const batch = (body: unknown) => call(gateway.url, { method: 'POST', path: '/bff/v1/batch', token, body });
    const answers = [await batch({ requests: [{ id: 'a', path: '/api/v2/subscription/' }] }), await batch({})];
    expect(answers.map((answer) => [answer.status, ...limitOf(answer)])).toEqual([
      [200, 'account', 9, 8, 60],
      [400, 'account', 9, 7, 60],
    ]);
  });

  test('are on an answer to HEAD', async () => {
    const world = await openLimited(9);
    expect(limitOf(await world.ask('getSubscription', { method: 'HEAD' }))).toEqual(['account', 9, 8, 60]);
  });
});

describe('no limit applies to', () => {
  test.each([
    ['GET', '/nothing', 404],
    ['GET', '/api/v2/nothing/', 404],
    ['GET', '/api/v2/payment/transaction/x/', 404],
    ['PUT', '/api/v2/subscription/', 405],
    ['DELETE', '/api/v2/payment/method/7/', 405],
    ['GET', '/livez', 200],
    ['GET', '/readyz', 200],
    ['GET', '/docs', 200],
    ['GET', '/openapi.json', 200],
    ['GET', '/problems/rate_limited', 200],
  ])('%s %s', async (method, path, status) => {
    const world = await openLimited(1);
    for (let asked = 0; asked < 3; asked++) {
      const answer = await call(world.gateway.url, { method, path, token: world.token });
      expect([answer.status, limitOf(answer)]).toEqual([status, NO_LIMIT]);
    }
    expect(await world.ask(PLAIN)).toMatchObject({ status: 200 });
  });

  test('a request without a credential where one is needed', async () => {
    const world = await openWorld({ RATE_LIMIT_PER_MINUTE: '1' });
    world.answerAll();
    for (let asked = 0; asked < 3; asked++) {
      const answer = await call(world.gateway.url, { path: '/api/v2/subscription/' });
      expect([answer.status, limitOf(answer)]).toEqual([401, NO_LIMIT]);
    }
    expect(await world.ask(PLAIN, { token: secret() })).toMatchObject({ status: 200 });
  });
});
