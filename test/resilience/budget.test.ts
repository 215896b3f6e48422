import { describe, expect, test } from 'vitest';
import { hit, seen } from '../cache/helpers.ts';
import { expectProblem } from '../http/problem.ts';
import { PLAIN } from './helpers.ts';
import { call, type TextAnswer } from '../support/http.ts';
import { callOf, markOf } from '../support/marked.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { isSocial, readIds, writeIds } from '../support/table.ts';
import { openWorld, type World } from '../support/world.ts';

const LIMITED = { status: 429, code: 'rate_limited' } as const;

const limitedFor = (answer: TextAnswer) => expectProblem(answer, LIMITED).retry_after;

const openBudget = async (perMinute: number): Promise<World> => {
  const world = await openWorld({ UPSTREAM_BUDGET_PER_MINUTE: String(perMinute) });
  world.answerAll();
  return world;
};

/** The world's account has had the one call of its minute. */
const spentWorld = async () => {
  const world = await openBudget(1);
  await world.ask(PLAIN);
  world.upstream.calls.length = 0;
  return world;
};

describe('UPSTREAM_BUDGET_PER_MINUTE', () => {
  test('lets so many calls through, then none until the minute is over', async () => {
    const world = await openBudget(3);
    for (let asked = 0; asked < 3; asked++) expect(await world.ask(PLAIN)).toMatchObject({ status: 200 });
    expect(limitedFor(await world.ask(PLAIN))).toBe(60);
    world.advance(59.5);
    expect(limitedFor(await world.ask('getSubscription'))).toBe(1);
    expect(world.upstream.calls).toHaveLength(3);
    world.advance(0.5);
    for (let asked = 0; asked < 3; asked++) expect(await world.ask(PLAIN)).toMatchObject({ status: 200 });
    expect(limitedFor(await world.ask(PLAIN))).toBe(60);
    expect(world.upstream.calls).toHaveLength(6);
  });

  test('counts the minute from the first call', async () => {
    const world = await openBudget(2);
    world.advance(45);
    await world.ask(PLAIN);
    world.advance(45);
    await world.ask(PLAIN);
    expect(limitedFor(await world.ask(PLAIN))).toBe(15);
  });

  test('is per account', async () => {
    const world = await spentWorld();
    expect(await world.ask(PLAIN, { token: secret() })).toMatchObject({ status: 200 });
    expect(limitedFor(await world.ask(PLAIN))).toBe(60);
  });

  test('is nothing to a hit, which is there when it is spent too', async () => {
    const world = await openBudget(2);
    for (let asked = 0; asked < 10; asked++) await world.ask('getSubscription');
    expect(await world.ask(PLAIN)).toMatchObject({ status: 200 });
    expect(limitedFor(await world.ask(PLAIN))).toBe(60);
    expect(seen(await world.ask('getSubscription'))).toEqual([200, hit(30), 1]);
  });

  test('gives stale copies first, and 429 where there is none', async () => {
    const world = await openBudget(2);
    await world.ask('getSubscription');
    world.advance(50);
    await world.ask(PLAIN);
    world.upstream.on(() => true, json(500, ''));
    expect(seen(await world.ask('getSubscription'))).toEqual([200, hit(-20), 1]);
    expect(seen(await world.ask('getSubscription'))).toEqual([200, hit(-20), 1]);
    expect(limitedFor(await world.ask('getReferralConfig'))).toBe(10);
    expect(world.upstream.calls).toHaveLength(2);
  });

  test('counts retries, and a call that it keeps from being retried says what it came back with', async () => {
    const world = await openBudget(2);
    world.upstream.on(callOf(PLAIN), json(503, '', { 'Retry-After': '17' }));
    const problem = expectProblem(await world.ask(PLAIN), { status: 503, code: 'upstream_unavailable' });
    expect(problem.retry_after).toBe(17);
    expect(world.upstream.calls).toHaveLength(2);
    expect(limitedFor(await world.ask(PLAIN))).toBe(60);
  });

  test('counts what was answered with a failure or a refusal', async () => {
    const world = await openBudget(3);
    world.upstream.on(callOf(PLAIN), json(500, ''), json(404, ''), json(200, '<html>'));
    for (const status of [502, 404, 502, 429]) expect(await world.ask(PLAIN)).toMatchObject({ status });
    expect(world.upstream.calls).toHaveLength(3);
  });

  test('counts equal reads once', async () => {
    const world = await openBudget(1);
    const asked = Array.from({ length: 10 }, () => world.ask('getSubscription'));
    for (const answer of await Promise.all(asked)) expect(answer).toMatchObject({ status: 200 });
  });

  test('counts every leg of an overview', async () => {
    const { gateway, token, upstream } = await openBudget(3);
    const overview = { path: '/bff/v1/referral-overview', token };
    const answer = await call(gateway.url, overview);
    expect(answer).toMatchObject({ status: 200, json: { data: { channels: null }, meta: { complete: false } } });
    const error = { section: 'channels', code: 'rate_limited', status: 429, retryable: true };
    expect(answer.json).toMatchObject({ errors: [error] });
    expect(upstream.calls).toHaveLength(3);
    // What was got is a hit from now on, and costs nothing.
    expect(await call(gateway.url, overview)).toMatchObject({ status: 200, json: { errors: [error] } });
    expect(upstream.calls).toHaveLength(3);
  });

  test('counts every item of a batch that is a call', async () => {
    const { gateway, token, upstream } = await openBudget(2);
    const paths = [
      '/api/v2/subscription/',
      '/api/v2/subscription/',
      '/api/v2/notification/',
      '/api/v2/referral/config/',
    ];
    const requests = paths.map((path, index) => ({ id: `r${index}`, path }));
    const answer = await call(gateway.url, { method: 'POST', path: '/bff/v1/batch', token, body: { requests } });
    expect(answer.json).toMatchObject({ responses: [200, 200, 200, 429].map((status) => ({ status })) });
    expect(upstream.calls).toHaveLength(2);
  });

  test('does not open the circuit, nor hold the account back for longer', async () => {
    const world = await spentWorld();
    world.advance(0.5); // 59.5 s are left, and Retry-After says 60
    for (let asked = 0; asked < 30; asked++) expect(await world.ask(PLAIN)).toMatchObject({ status: 429 });
    expect(await world.ask(PLAIN, { token: secret() })).toMatchObject({ status: 200 });
    world.advance(59.5);
    expect(await world.ask(PLAIN)).toMatchObject({ status: 200 });
  });

  test.each([{}, { UPSTREAM_BUDGET_PER_MINUTE: '0' }])('is off with %j', async (env) => {
    const world = await openWorld(env);
    world.answerAll();
    for (let asked = 0; asked < 100; asked++) expect(await world.ask(PLAIN)).toMatchObject({ status: 200 });
    expect(world.upstream.calls).toHaveLength(100);
  });
});

describe.each(readIds)('%s', (id) => {
  test('is refused when the budget is spent, and spends it', async () => {
    const world = await spentWorld();
    expect(limitedFor(await world.ask(id))).toBe(60);
    expect(world.upstream.calls).toEqual([]);
    world.advance(60);
    expect(await world.ask(id)).toMatchObject({ status: 200 });
    expect(limitedFor(await world.ask(PLAIN))).toBe(60);
    expect(world.upstream.calls).toHaveLength(1);
  });
});

describe.each(writeIds.filter((id) => !isSocial(id)))('%s', (id) => {
  test('is refused with nothing sent when the budget is spent, and spends it', async () => {
    const world = await spentWorld();
    const headers = { 'Idempotency-Key': 'one' };
    const problem = expectProblem(await world.ask(id, { headers }), LIMITED);
    expect([problem.retry_after, problem.outcome]).toEqual([60, undefined]);
    expect(world.upstream.calls).toEqual([]);
    world.advance(60);
    expect((await world.ask(id, { headers })).status).toBeLessThan(300);
    expect(limitedFor(await world.ask(PLAIN))).toBe(60);
    expect(world.upstream.calls).toHaveLength(1);
  });
});

test.each(writeIds.filter(isSocial))('%s has no budget', async (id) => {
  const world = await openBudget(1);
  for (let asked = 0; asked < 5; asked++) expect(markOf((await world.ask(id)).text)).toBe(1);
  expect(world.upstream.callsTo(callOf(id))).toHaveLength(5);
});
