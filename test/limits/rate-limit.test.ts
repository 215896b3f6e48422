import { describe, expect, test } from 'vitest';
import { allOperations } from '../support/account-api.ts';
import { limitedFor, limitOf, openLimited } from './helpers.ts';
import { overviewTable } from '../overviews/helpers.ts';
import { PLAIN } from '../resilience/helpers.ts';
import { clockOfDeadlines } from '../support/clock.ts';
import { call, type CallOptions } from '../support/http.ts';
import { callOf, markOf } from '../support/marked.ts';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { fullOfMarks } from '../support/stores.ts';
import { isSocial } from '../support/table.ts';
import { openWorld } from '../support/world.ts';

const ownIds = allOperations.map(({ id }) => id).filter((id) => !isSocial(id));

describe('RATE_LIMIT_PER_MINUTE', () => {
  test('takes so many requests of an account, then none until the minute is over', async () => {
    const world = await openLimited(3);
    for (let asked = 0; asked < 3; asked++) expect(await world.ask(PLAIN)).toMatchObject({ status: 200 });
    expect(limitedFor(await world.ask(PLAIN))).toBe(60);
    world.advance(59.5);
    expect(limitedFor(await world.ask(PLAIN))).toBe(1);
    expect(world.upstream.calls).toHaveLength(3);
    world.advance(0.5);
    for (let asked = 0; asked < 3; asked++) expect(await world.ask(PLAIN)).toMatchObject({ status: 200 });
    expect(limitedFor(await world.ask(PLAIN))).toBe(60);
    expect(world.upstream.calls).toHaveLength(6);
  });

  test('counts the minute from the first request', async () => {
    const world = await openLimited(2);
    world.advance(45);
    await world.ask(PLAIN);
    world.advance(45);
    expect(limitOf(await world.ask(PLAIN))).toEqual(['account', 2, 0, 15]);
    expect(limitedFor(await world.ask(PLAIN))).toBe(15);
  });

  test('is per account, whichever scheme its credential comes with', async () => {
    const world = await openLimited(1);
    await world.ask(PLAIN);
    const { gateway, token } = world;
    const bearer = { path: '/api/v2/subscription/', headers: { Authorization: `Bearer ${token}` } };
    expect(limitedFor(await call(gateway.url, bearer))).toBe(60);
    expect(await world.ask(PLAIN, { token: secret() })).toMatchObject({ status: 200 });
  });

  test.for(['/api/v2/apikey/', '/bff/v1/batch'])('counts a body that is too large: %s', async (path) => {
    const { gateway, token, upstream } = await openLimited(1);
    const tooLarge = { path, method: 'POST', token, body: 'x'.repeat(70_000) };
    expect((await call(gateway.url, tooLarge)).status).toBe(413);
    expect(limitedFor(await call(gateway.url, tooLarge))).toBe(60);
    expect(upstream.calls).toEqual([]);
  });

  test.each<[string, Partial<CallOptions>, status: number]>([
    ['its key', { headers: { 'Idempotency-Key': 'k1' } }, 400],
    ['its type', { headers: { 'Content-Type': 'text/plain' } }, 415],
    ['its JSON', { body: '{"requests":[' }, 400],
    ['its items', { body: { requests: [] } }, 400],
  ])('counts a batch that is refused for %s, and comes before that', async (_, options, status) => {
    const { gateway, token, upstream } = await openLimited(1);
    const body = { requests: [{ id: 'a', path: '/api/v2/subscription/' }] };
    const bad = { path: '/bff/v1/batch', method: 'POST', token, body, ...options };
    const answer = await call(gateway.url, bad);
    expect([answer.status, limitOf(answer)]).toEqual([status, ['account', 1, 0, 60]]);
    expect(limitedFor(await call(gateway.url, bad))).toBe(60);
    expect(upstream.calls).toEqual([]);
  });

  test('counts what no store has room for, and says so', async () => {
    const clock = clockOfDeadlines();
    const world = await openWorld({ RATE_LIMIT_PER_MINUTE: '2' }, { clock, store: fullOfMarks(clock) });
    for (const left of [1, 0]) {
      const refused = await world.ask('purchasePlan');
      expect(refused).toMatchObject({ status: 503, json: { code: 'store_unavailable' } });
      expect(limitOf(refused)).toEqual(['account', 2, left, 60]);
    }
    expect(limitedFor(await world.ask('purchasePlan'))).toBe(60);
  });

  test('lets no more through when all come at once', async () => {
    const world = await openLimited(5);
    const gate = barrier();
    world.upstream.on(callOf(PLAIN), reply(hold(gate), json(200, '{}')));
    const asked = Array.from({ length: 30 }, () => world.ask(PLAIN));
    await gate.reached;
    const refused: number[] = [];
    for (const one of asked) void one.then(({ status }) => status === 429 && refused.push(status));
    await expect.poll(() => refused.length).toBe(25);
    gate.release();
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(5);
  });

  test('counts hits and 304s', async () => {
    const world = await openLimited(3);
    const { headers } = await world.ask('getSubscription');
    expect(limitOf(await world.ask('getSubscription'))).toEqual(['account', 3, 1, 60]);
    const again = { headers: { 'If-None-Match': headers['etag'] ?? '' } };
    expect(await world.ask('getSubscription', again)).toMatchObject({ status: 304 });
    expect(limitedFor(await world.ask('getSubscription', again))).toBe(60);
    expect(world.upstream.calls).toHaveLength(1);
  });

  test('counts requests that are refused for what is in them', async () => {
    const world = await openLimited(2);
    expect(await world.ask('updateReferralConfig', { body: '{' })).toMatchObject({ status: 400 });
    expect(await world.ask('listTransactions', { path: '/api/v2/payment/transaction/?page=x' })).toMatchObject({
      status: 400,
    });
    expect(limitedFor(await world.ask(PLAIN))).toBe(60);
    expect(world.upstream.calls).toEqual([]);
  });

  test('counts a batch once', async () => {
    const { gateway, token, ...world } = await openLimited(2);
    const requests = ['subscription', 'notification', 'referral/config'].map((name) => ({
      id: name,
      path: `/api/v2/${name}/`,
    }));
    const batch = { method: 'POST', path: '/bff/v1/batch', token, body: { requests } };
    const answer = await call(gateway.url, batch);
    expect(answer.json).toMatchObject({ responses: [200, 200, 200].map((status) => ({ status })) });
    expect(limitOf(answer)).toEqual(['account', 2, 1, 60]);
    await call(gateway.url, batch);
    expect(limitedFor(await call(gateway.url, batch))).toBe(60);
    expect(limitedFor(await world.ask(PLAIN))).toBe(60);
    expect(world.upstream.calls).toHaveLength(3);
  });

  test.each(overviewTable)('counts %s once, and refuses it', async (path) => {
    const { gateway, token, upstream } = await openLimited(1);
    expect(await call(gateway.url, { path, token })).toMatchObject({ status: 200 });
    const calls = upstream.calls.length;
    for (const headers of [{}, { Accept: 'application/x-ndjson' }]) {
      expect(limitedFor(await call(gateway.url, { path, token, headers }))).toBe(60);
    }
    expect(upstream.calls).toHaveLength(calls);
  });

  test.each(ownIds)('counts %s, and refuses it with nothing sent', async (id) => {
    const world = await openLimited(1);
    expect((await world.ask(id)).status).toBeLessThan(300);
    expect(limitedFor(await world.ask(id))).toBe(60);
    expect(limitedFor(await world.ask(PLAIN))).toBe(60);
    expect(world.upstream.calls).toHaveLength(1);
    world.advance(60);
    expect((await world.ask(id)).status).toBeLessThan(300);
  });

  test('keeps no key of a request that it refuses', async () => {
    const world = await openLimited(1);
    await world.ask(PLAIN);
    const keyed = { headers: { 'Idempotency-Key': 'one' } };
    expect(limitedFor(await world.ask('createApiKey', keyed))).toBe(60);
    world.advance(60);
    expect(markOf((await world.ask('createApiKey', keyed)).text)).toBe(1);
  });

  test('is 600 unless said otherwise', async () => {
    const world = await openWorld({ RATE_LIMIT_PER_MINUTE: '' });
    world.answerAll();
    expect(limitOf(await world.ask(PLAIN))).toEqual(['account', 600, 599, 60]);
  });

  test('of 0 is off, for calls without a credential too', async () => {
    const world = await openLimited(0);
    for (let asked = 0; asked < 50; asked++) {
      const answers = [await world.ask('getSubscription'), await world.ask('loginSocial')];
      for (const { status, headers } of answers) {
        expect(status).toBe(200);
        expect(Object.keys(headers).filter((name) => name.startsWith('ratelimit'))).toEqual([]);
      }
    }
  });

  test('does not open the circuit', async () => {
    const world = await openLimited(1);
    for (let asked = 0; asked < 50; asked++) await world.ask(PLAIN);
    expect(await world.ask(PLAIN, { token: secret() })).toMatchObject({ status: 200 });
  });
});

test('the log line of a refused request says who, and why', async () => {
  const world = await openLimited(1);
  await world.ask(PLAIN);
  const { account } = world.gateway.lines.at(-1) ?? {};
  expect(account).toMatch(/^[\w-]{16,}$/);
  await world.ask('getSubscription');
  expect(world.gateway.lines.at(-1)).toMatchObject({
    status: 429,
    code: 'rate_limited',
    operation: 'getSubscription',
    account,
    upstream_calls: 0,
  });
});
