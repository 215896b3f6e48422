import { describe, expect, test } from 'vitest';
import type { Asked, Leg } from '../../src/console/event.d.ts';
import { barrier, hold, json, reply, reset } from '../support/scripted-upstream.ts';
import { expectProblem } from '../http/problem.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';
import type { World } from '../support/world.ts';
import { EVENTS, openWatched, watch } from './events.ts';

const OVERVIEW = '/bff/v1/account-overview';
const SLOW_MS = 500;

const open = (env = {}) => openWatched({ SLOW_MS: String(SLOW_MS), ...env });

const slowestOf = ({ legs }: Asked): Leg => legs.toSorted((a, b) => b.ms - a.ms)[0]!;

const sumOf = ({ sums }: Leg): number => Object.values(sums).reduce((all, ms) => all + ms, 0);

/** Has an operation answered late, by so many milliseconds. */
async function late(world: World, id: Parameters<typeof callOf>[0], ms: number, ask: () => Promise<unknown>) {
  const held = barrier();
  world.upstream.once(callOf(id), reply(hold(held), json(200, bodyOf(id, 1))));
  const asked = ask();
  await held.reached;
  const underWay = async () => (await world.admin({ path: '/metrics' })).text;
  await expect.poll(underWay).toMatch(/^portico_upstream_calls_under_way 1$/m); // all others have their answers
  world.advance(ms / 1000);
  held.release();
  await asked;
}

describe('a request that was slow', () => {
  test('is there with the leg that was late, whose phases add up to its duration', async () => {
    const world = await open();
    const { next, second } = await watch(world);
    expect(await next()).toMatchObject({ isFirst: true, ended: [], underWay: [], figures: null });
    const headers = { 'X-Request-Id': 'the-slow-one' };
    await late(world, 'listNotifications', 700, () => world.call({ path: OVERVIEW, token: world.token, headers }));
    const { ended, isFirst } = await second();
    expect([isFirst, ended.length]).toEqual([false, 1]);
    const [asked] = ended as [Asked];
    const account = world.gateway.lines.find(({ msg }) => msg === 'request')?.account;
    expect(asked).toMatchObject({
      id: 'the-slow-one',
      operation: 'getAccountOverview',
      status: 200,
      account,
      ms: 700,
      more: 0,
    });
    const slowest = slowestOf(asked);
    expect(slowest).toMatchObject({ leg: 'notifications', ms: 700, sums: { attempt: 700 } });
    expect(Math.abs(sumOf(slowest) - asked.ms)).toBeLessThanOrEqual(2);
    const phases = asked.phases.filter(({ leg }) => leg === 'notifications');
    expect(phases).toMatchObject([{ phase: 'attempt', at: 0, ms: 700, outcome: 'good' }]);
    expect((await second()).ended).toEqual([]);
  });

  test('says which sections fresh copies have answered', async () => {
    const world = await open();
    await world.ask('getSubscription');
    await late(world, 'listNotifications', 700, () => world.call({ path: OVERVIEW, token: world.token }));
    const { next } = await watch(world);
    const [asked] = (await next())!.ended;
    expect(asked).toMatchObject({ fresh: ['subscription'] });
    expect(asked!.legs.map(({ leg }) => leg)).not.toContain('subscription');
  });

  test('says which request it has joined, and what came of it', async () => {
    const world = await open();
    const { second, next } = await watch(world);
    await next();
    const held = barrier();
    world.upstream.once(callOf('getSubscription'), reply(hold(held), json(200, bodyOf('getSubscription', 1))));
    const first = world.ask('getSubscription', { headers: { 'X-Request-Id': 'the-first' } });
    await held.reached;
    const other = world.ask('getSubscription', { headers: { 'X-Request-Id': 'the-other' } });
    const isUnderWay = async () => (await second()).underWay.length;
    await expect.poll(isUnderWay).toBe(2);
    held.release();
    await Promise.all([first, other]);
    const { ended } = await (await watch(world)).next().then((event) => event!);
    const joined = ended.find(({ id }) => id === 'the-other');
    expect(joined?.phases).toMatchObject([{ phase: 'joined', joined: 'the-first', fact: 'gave' }]);
  });
});

describe('a request that failed', () => {
  test('is there with each attempt, why it failed, and the pauses between them', async () => {
    const world = await open();
    world.upstream.on(callOf('getSubscription'), json(503, ''));
    const { next, second } = await watch(world);
    await next();
    await world.ask('getSubscription');
    const [asked] = (await second()).ended;
    expect(asked).toMatchObject({ status: 503, code: 'upstream_unavailable', reason: 'status' });
    const told = asked!.phases.map(({ phase, outcome, reason }) => [phase, outcome, reason]);
    const attempt = ['attempt', 'failed', 'status'];
    const pause = ['back-off', undefined, undefined];
    expect(told).toEqual([attempt, pause, attempt, pause, attempt]);
  });

  test('is there where only a section has failed, and the answer is a 200', async () => {
    const world = await open();
    world.upstream.on(callOf('listNotifications'), reset());
    await world.call({ path: OVERVIEW, token: world.token });
    const [asked] = (await (await watch(world)).next())!.ended;
    expect(asked).toMatchObject({ status: 200, failed: ['notifications'], reason: 'reset' });
  });

  test('is not there where the client was wrong', async () => {
    const world = await open();
    await world.call({ path: '/api/v2/nowhere/', token: world.token });
    await world.call({ path: '/api/v2/subscription/' });
    expect((await (await watch(world)).next())!.ended).toEqual([]);
  });
});

test('a request under way is there with what it waits for, and no more when it is over', async () => {
  const world = await open();
  const { next, second } = await watch(world);
  await next();
  const held = barrier();
  world.upstream.once(callOf('getSubscription'), reply(hold(held), json(200, bodyOf('getSubscription', 1))));
  const asked = world.ask('getSubscription');
  await held.reached;
  const event = await second();
  expect(event).toMatchObject({ underWayCount: 1, ended: [] });
  const [one] = event.underWay;
  expect(one).toMatchObject({ operation: 'getSubscription', phases: [{ phase: 'attempt', open: true }] });
  expect(one).not.toHaveProperty('status');
  held.release();
  await asked;
  expect(await second()).toMatchObject({ underWayCount: 0, underWay: [] });
});

test('hits leave nothing but counts', async () => {
  const world = await open();
  await world.ask('getSubscription');
  const { next, second } = await watch(world);
  await next();
  await second();
  for (let hits = 0; hits < 5; hits++) await world.ask('getSubscription');
  const event = await second();
  expect(event).toMatchObject({ ended: [], underWay: [], underWayCount: 0, unknown: [] });
  expect(event.figures?.cache).toMatchObject({ miss: 0 });
  expect(event.figures?.cache['hit']).toBeGreaterThan(0);
  expect(event.figures?.calls).toEqual({});
});

test('what is plotted is what has happened since the second before', async () => {
  const world = await open();
  const { next, second } = await watch(world);
  await next();
  await second();
  world.upstream.once(callOf('getReferralConfig'), json(500, ''));
  await world.ask('getReferralConfig');
  await world.ask('getSubscription');
  const { figures, about } = await second();
  expect(about).toMatchObject({ slowMs: SLOW_MS, isStoreShared: false });
  expect(figures).toMatchObject({
    calls: { good: { rate: expect.any(Number) }, 'failed status': { rate: expect.any(Number) } },
    requestMs: { p50: expect.any(Number), p95: expect.any(Number), p99: expect.any(Number) },
    gauges: { slots: 0, slotsLimit: 256, waiting: 0 },
    memory: { rss: expect.any(Number) },
    loopMs: { p99: expect.any(Number) },
  });
  expect(figures?.status['2xx']).toBeGreaterThan(0);
  expect(figures?.status['5xx']).toBeGreaterThan(0);
  expect((await second()).figures).toMatchObject({ status: { '2xx': 0, '5xx': 0 }, calls: {}, requestMs: null });
});

test('accounts that ask most come first, and are counted only while somebody looks', async () => {
  const world = await open();
  const [most, least, before] = [secret(), secret(), secret()];
  await world.ask('getSubscription', { token: before });
  const { next, second } = await watch(world);
  expect((await next())!.accounts).toEqual([]);
  for (const token of [least, most, most, most]) await world.ask('getSubscription', { token });
  const { accounts } = await second();
  expect(accounts.map(({ requests, bad }) => [requests, bad])).toEqual([
    [3, 0],
    [1, 0],
  ]);
});

test('the circuit is closed at first, and says since when it is open', async () => {
  const world = await open();
  const { next, second } = await watch(world);
  expect((await next())!.circuit).toBeNull();
  world.upstream.on(callOf('getSubscription'), json(500, ''));
  for (let calls = 0; calls < 20; calls++) await world.ask('getSubscription');
  const { circuit, at } = await second();
  expect(circuit).toEqual({ since: at - 1000, probeAt: at + 4000 });
});

test('a write of unknown outcome is there with its request id', async () => {
  const world = await open();
  world.upstream.on(callOf('purchasePlan'), reset());
  const key = secret('key-of-a-write');
  await world.ask('purchasePlan', { key, headers: { 'X-Request-Id': 'the-purchase' } });
  const event = await (await watch(world)).next();
  const account = world.gateway.lines.find(({ msg }) => msg === 'request')?.account;
  expect(event?.unknown).toEqual([
    { requestId: 'the-purchase', operation: 'purchasePlan', account, hasKey: true, at: expect.any(Number) },
  ]);
});

describe('pages that watch', () => {
  test('are eight at most; where one leaves there is room for another', async () => {
    const world = await open();
    const watching = await Promise.all(Array.from({ length: 8 }, () => watch(world)));
    const refused = await world.admin({ path: EVENTS });
    expectProblem(refused, { status: 503, code: 'overloaded', instance: EVENTS });
    watching[0]!.leave();
    await expect
      .poll(() =>
        watch(world).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
  });

  test('hear that the gateway stops, and none begins then', async () => {
    const world = await open();
    const { next } = await watch(world);
    await next();
    const ended = next();
    await world.gateway.close();
    expect(await ended).toBeUndefined();
  });
});
