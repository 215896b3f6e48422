import { describe, expect, test, vi } from 'vitest';
import { GatewayError } from '../../src/core/errors.ts';
import { guardedCall } from '../../src/resilience/guarded-call.ts';
import type { Clock } from '../../src/core/runtime.ts';
import type { CallUpstream } from '../../src/upstream/call.ts';
import { expectProblem } from '../http/problem.ts';
import { isPause, noticed, openTimedWorld, PLAIN } from './helpers.ts';
import { callFor, metrics, round, settled } from './layer.ts';
import { clockOfDeadlines, watchedClock } from '../support/clock.ts';
import { bodyOf, callOf, markOf } from '../support/marked.ts';
import { hang, json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { readIds } from '../support/table.ts';
import { openWorld } from '../support/world.ts';

const ID = 'getSubscription';

const unavailable = () => {
  throw GatewayError.of('upstream_unavailable', { fault: 'unavailable' });
};

const retried = (clock: Clock, random: () => number) => (exchange: CallUpstream) =>
  guardedCall({ clock, metrics, random, exchange: ({ call }) => exchange(call), gates: [] });

const retriedAtOnce = (clock: Clock) => retried(clock, () => 0);

/** Lengths of the pauses of one call that never comes to anything. */
const pausesWith = async (random: () => number, endsInMs = 10_000) => {
  const clock = watchedClock();
  const { call, made } = round(retried(clock, random), unavailable);
  const done = settled(call(callFor(clock, { endsAt: clock.now() + endsInMs })));
  for (let ms = 0; ms < 400; ms++) {
    await new Promise(setImmediate);
    clock.advance(1);
  }
  await done;
  expect(clock.pending()).toBe(0);
  return { pauses: clock.lengths, calls: made() };
};

describe('the pause before another attempt', () => {
  test('is anything from nothing to 100 ms, and to twice that before the last', async () => {
    expect(await pausesWith(() => 0)).toEqual({ pauses: [0, 0], calls: 3 });
    expect(await pausesWith(() => 0.5)).toEqual({ pauses: [50, 100], calls: 3 });
    expect(await pausesWith(() => 0.999)).toEqual({ pauses: [99.9, 199.8], calls: 3 });
  });

  test('is drawn anew each time', async () => {
    const draws = [0.9, 0.1];
    expect(await pausesWith(() => draws.shift() ?? 0)).toEqual({ pauses: [90, 20], calls: 3 });
  });

  test('is not begun where it would not be over before the deadline', async () => {
    expect(await pausesWith(() => 0.5, 50)).toEqual({ pauses: [], calls: 1 });
    expect(await pausesWith(() => 0.5, 51)).toEqual({ pauses: [50], calls: 2 });
    expect(await pausesWith(() => 0.5, 150)).toEqual({ pauses: [50], calls: 2 });
    expect(await pausesWith(() => 0.5, 151)).toEqual({ pauses: [50, 100], calls: 3 });
  });

  test('is waited for, by nothing but the clock', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const world = await openTimedWorld().finally(() => vi.restoreAllMocks());
    world.upstream.on(callOf(ID), json(503, ''), json(503, ''), json(200, bodyOf(ID, 3)));
    const asked = world.ask(ID);
    await world.clock.waits((ms) => ms === 50);
    world.clock.advance(49);
    expect(world.upstream.calls).toHaveLength(1);
    world.clock.advance(1);
    await world.clock.waits((ms) => ms === 100);
    expect(world.upstream.calls).toHaveLength(2);
    world.clock.advance(100);
    expect(markOf((await asked).text)).toBe(3);
    expect(world.clock.pending()).toBe(0);
  });
});

describe.each(readIds)('%s', (id) => {
  test('is not asked for again once its client has left in the pause', async () => {
    const world = await openTimedWorld();
    world.upstream.on(callOf(id), json(503, ''));
    const leave = new AbortController();
    const asked = settled(world.ask(id, { signal: leave.signal }));
    await world.clock.waits(isPause);
    leave.abort();
    await asked;
    await noticed(world, 1);
    expect(world.clock.pending()).toBe(0);
    world.clock.advance(1000);
    expect(world.upstream.calls).toHaveLength(1);
  });
});

test('a client that leaves in the pause does not cancel the retry for the others', async () => {
  const world = await openTimedWorld();
  world.upstream.on(callOf(ID), json(503, ''), json(200, bodyOf(ID, 2)));
  const leave = new AbortController();
  const asked = [settled(world.ask(ID, { signal: leave.signal })), world.ask(ID)] as const;
  await world.clock.waits(isPause);
  await world.clock.waits((ms) => ms === 10_000, 2);
  leave.abort();
  await noticed(world, 1);
  world.clock.advance(100);
  expect(markOf((await asked[1]).text)).toBe(2);
});

test('a request whose time is up in the pause is answered then, and asks no more', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(0.999);
  const world = await openTimedWorld({ REQUEST_TIMEOUT_MS: '1000' }).finally(() => vi.restoreAllMocks());
  world.upstream.on(callOf(ID), hang());
  world.upstream.once(callOf(ID), json(503, ''));
  const asked = world.ask(ID);
  await world.clock.waits(isPause);
  world.clock.advance(100);
  await world.upstream.waitForCalls(2);
  world.clock.advance(900);
  expectProblem(await asked, { status: 504, code: 'upstream_timeout' });
  expect(world.upstream.calls).toHaveLength(2);
});

/** After so many good calls, how many attempts that many bad ones make. */
const attemptsAfter = async (good: number, bad: number) => {
  const clock = clockOfDeadlines();
  let isGood = true;
  const { call, made } = round(retriedAtOnce(clock), () => isGood || unavailable());
  for (let done = 0; done < good; done++) await call(callFor(clock));
  isGood = false;
  for (let done = 0; done < bad; done++) await settled(call(callFor(clock)));
  const attempts = made() - good;
  clock.advance(10_000);
  await settled(call(callFor(clock)));
  expect(made() - good - attempts).toBe(3); // three in hand again
  return attempts;
};

describe('the budget of retries', () => {
  test('has three in hand where there were few calls', async () => {
    expect(await attemptsAfter(0, 9)).toBe(9 + 3);
    expect(await attemptsAfter(30, 9)).toBe(9 + 3);
  });

  test('is a tenth of the calls of the last ten seconds', async () => {
    expect(await attemptsAfter(91, 9)).toBe(9 + 10);
    expect(await attemptsAfter(191, 9)).toBe(9 + 18);
    expect(await attemptsAfter(180, 19)).toBe(19 + 19);
  });

  test('does not count what is not retried at all', async () => {
    const clock = clockOfDeadlines();
    const { call, made } = round(retriedAtOnce(clock), () => {
      throw GatewayError.of('upstream_bad_response', { fault: 'failed' });
    });
    for (let done = 0; done < 5; done++) await settled(call(callFor(clock)));
    expect(made()).toBe(5);
  });

  test('is one for all accounts and operations', async () => {
    const world = await openWorld();
    world.upstream.on(() => true, json(503, ''));
    for (const id of [PLAIN, ID, 'getSubuser', 'listTransactions'] as const) await world.ask(id, { token: secret() });
    expect(world.upstream.calls).toHaveLength(4 + 3);
    world.advance(10);
    await world.ask(PLAIN);
    expect(world.upstream.calls).toHaveLength(7 + 3);
  });
});
