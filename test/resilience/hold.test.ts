import { describe, expect, test } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { expectProblem } from '../http/problem.ts';
import { legsOf, overviewTable } from '../overviews/helpers.ts';
import { PLAIN, WRITE } from './helpers.ts';
import { call, type TextAnswer } from '../support/http.ts';
import { bodyOf, callOf, markOf } from '../support/marked.ts';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { isSocial, readIds, writeIds } from '../support/table.ts';
import { openWorld, type World } from '../support/world.ts';

const LIMITED = { status: 429, code: 'rate_limited' } as const;

const limitedFor = (answer: TextAnswer) => expectProblem(answer, LIMITED).retry_after;

/** The world's account has been told to wait for a minute; all else would be answered well. */
const heldWorld = async (id: OperationId = PLAIN, env: Readonly<Record<string, string>> = {}): Promise<World> => {
  const world = await openWorld(env);
  world.answerAll();
  world.upstream.once(callOf(id), json(429, '', { 'Retry-After': '60' }));
  expect(limitedFor(await world.ask(id))).toBe(60);
  world.upstream.calls.length = 0;
  return world;
};

/** The clock of the tests stands at noon. */
const at = (seconds: number) => new Date(Date.UTC(2026, 5, 9, 12) + seconds * 1000).toUTCString();

describe('after a 429 the account is held back', () => {
  test.each<[header: string | undefined, seconds: number]>([
    ['7', 7],
    ['1', 1],
    ['0', 1],
    ['2.5', 3],
    ['300', 300],
    ['301', 300],
    ['99999999999999999999', 300],
    ['-5', 10],
    ['soon', 10],
    ['', 10],
    [undefined, 10],
    [at(42), 42],
    [at(-42), 1],
    [at(86_400), 300],
    ['Sat, 99 Foo 2026', 10],
  ])('for as long as Retry-After: %s says: %d s', async (header, seconds) => {
    const world = await openWorld();
    world.upstream.on(callOf(PLAIN), json(429, '', header === undefined ? {} : { 'Retry-After': header }));
    expect(limitedFor(await world.ask(PLAIN))).toBe(seconds);
    world.answerAll();
    expect(limitedFor(await world.ask('getSubscription'))).toBe(seconds);
    world.advance(seconds - 0.5);
    expect(limitedFor(await world.ask('getSubscription'))).toBe(1);
    expect(world.upstream.calls).toHaveLength(1);
    world.advance(0.5);
    expect(await world.ask('getSubscription')).toMatchObject({ status: 200 });
  });

  test('and Retry-After counts down', async () => {
    const world = await heldWorld();
    const left = [];
    for (let passed = 0; passed < 60; passed += 10) {
      left.push(limitedFor(await world.ask(PLAIN)));
      world.advance(10);
    }
    expect(left).toEqual([60, 50, 40, 30, 20, 10]);
    expect(world.upstream.calls).toEqual([]);
    expect(await world.ask(PLAIN)).toMatchObject({ status: 200 });
  });

  test('until the later end of two', async () => {
    for (const [first, second] of [
      ['60', '5'],
      ['5', '60'],
    ] as const) {
      const world = await openWorld();
      const gate = barrier();
      world.upstream.on(callOf(PLAIN), reply(hold(gate), json(429, '', { 'Retry-After': second })));
      world.upstream.on(callOf('getSubscription'), json(429, '', { 'Retry-After': first }));
      const late = world.ask(PLAIN);
      await gate.reached;
      await world.ask('getSubscription');
      gate.release();
      expect(limitedFor(await late)).toBe(Number(second));
      expect(limitedFor(await world.ask(PLAIN))).toBe(60);
    }
  });

  test('by a refusal of a kind that carries Retry-After as well, not at all', async () => {
    const world = await openWorld();
    for (const status of [503, 403, 408]) {
      world.upstream.on(callOf(WRITE), json(status, '', { 'Retry-After': '60' }), json(200, bodyOf(WRITE, status)));
      await world.ask(WRITE);
      expect(markOf((await world.ask(WRITE)).text)).toBe(status);
    }
  });
});

describe.each(readIds)('%s', (id) => {
  test('holds the account back when it is refused with 429, and is held back', async () => {
    const world = await heldWorld(id);
    expect(limitedFor(await world.ask(id))).toBe(60);
    for (const other of readIds) expect(limitedFor(await world.ask(other))).toBe(60);
    expect(world.upstream.calls).toEqual([]);
    expect(await world.ask(id, { token: secret() })).toMatchObject({ status: 200 });
    world.advance(60);
    expect(await world.ask(id)).toMatchObject({ status: 200 });
    expect(world.upstream.calls).toHaveLength(2);
  });
});

describe.each(writeIds.filter((id) => !isSocial(id)))('%s', (id) => {
  test('holds the account back when it is refused with 429, and is held back with nothing sent', async () => {
    const world = await heldWorld(id);
    for (const headers of [{}, { 'Idempotency-Key': 'one' }]) {
      const problem = expectProblem(await world.ask(id, { headers }), LIMITED);
      expect([problem.retry_after, problem.outcome]).toEqual([60, undefined]);
    }
    expect(limitedFor(await world.ask(PLAIN))).toBe(60);
    expect(world.upstream.calls).toEqual([]);
    expect((await world.ask(id, { token: secret() })).status).toBeLessThan(300);
    world.advance(60);
    const freed = await world.ask(id, { headers: { 'Idempotency-Key': 'one' } });
    expect(freed.status).toBeLessThan(300);
    expect(world.upstream.calls).toHaveLength(2);
  });
});

describe.each(writeIds.filter(isSocial))('%s', (id) => {
  test('is of no account: a 429 holds nothing back', async () => {
    const world = await openWorld();
    world.upstream.on(callOf(id), json(429, '', { 'Retry-After': '60' }), json(200, bodyOf(id, 2)));
    expect(limitedFor(await world.ask(id))).toBe(60);
    expect(markOf((await world.ask(id)).text)).toBe(2);
  });
});

describe('composed answers', () => {
  test.each(overviewTable)('%s is refused while its account is held back', async (path) => {
    const { gateway, token, upstream } = await heldWorld();
    expect(limitedFor(await call(gateway.url, { path, token }))).toBe(60);
    expect(upstream.calls).toEqual([]);
    expect(await call(gateway.url, { path, token: secret() })).toMatchObject({ status: 200 });
  });

  test.each(overviewTable)('%s asks nothing more once a leg was refused with 429', async (path, overview) => {
    const world = await openWorld();
    world.answerAll();
    const legs = legsOf(overview);
    const required = legs.find((leg) => leg.required)!;
    const gate = barrier();
    world.upstream.on(`GET ${required.path}`, reply(hold(gate), json(429, '', { 'Retry-After': '60' })));
    const asked = call(world.gateway.url, { path, token: world.token });
    await world.upstream.waitForCalls(legs.length);
    gate.release();
    expect(limitedFor(await asked)).toBe(60);
    expect(limitedFor(await world.ask(PLAIN))).toBe(60);
    expect(world.upstream.calls).toHaveLength(legs.length);
  });

  test('items of a batch are refused one by one', async () => {
    const world = await heldWorld();
    const requests = ['/api/v2/subscription/', '/api/v2/notification/', '/nothing'].map((path, at_) => ({
      id: `r${at_}`,
      path,
    }));
    const { gateway, token } = world;
    const answer = await call(gateway.url, { method: 'POST', path: '/bff/v1/batch', token, body: { requests } });
    const refused = { status: 429, body: { code: 'rate_limited', retry_after: 60 } };
    expect(answer.json).toMatchObject({ responses: [refused, refused, { status: 404 }] });
    expect(world.upstream.calls).toEqual([]);
  });
});

test('what waits for a slot when the 429 comes is held back too', async () => {
  const world = await openWorld({ UPSTREAM_MAX_CONNECTIONS: '1' });
  const gate = barrier();
  world.upstream.on(() => true, reply(hold(gate), json(429, '', { 'Retry-After': '60' })));
  const lookups = world.store.lookups.next(3);
  const asked = [world.ask('getSubscription'), world.ask(PLAIN), world.ask('getReferralConfig')];
  await Promise.all([gate.reached, lookups]);
  gate.release();
  for (const one of asked) expect(limitedFor(await one)).toBe(60);
  expect(world.upstream.calls).toHaveLength(1);
});
