import { describe, expect, test } from 'vitest';
import { noticed, PLAIN, type TimedWorld, WRITE } from './helpers.ts';
import { settled } from './layer.ts';
import { acceptedIn, askMany, burst, busyWorld, GOOD, open, statuses } from './slots.ts';
import { call } from '../support/http.ts';
import { callOf, pathOf, tokenOf } from '../support/marked.ts';
import {
  barrier,
  type Call,
  hang,
  hold,
  json,
  perCall,
  reply,
  reset,
  type Step,
} from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

/** Counts calls under way at the upstream; the first wait for so many. */
const counting = (first: number) => {
  const full = barrier();
  void full.count(first).then(() => full.release());
  const calls = { now: 0, most: 0 };
  const step: Step = async (exchange) => {
    calls.now++;
    calls.most = Math.max(calls.most, calls.now);
    await hold(full)(exchange);
    calls.now--;
    await GOOD(exchange);
  };
  return { step, calls };
};

/** Of these accounts, or of strangers, just so many calls are let through. */
const takeAll = async ({
  world,
  tokens,
  share,
}: {
  world: TimedWorld;
  tokens: string[] | undefined;
  share: number;
}) => {
  const gate = barrier();
  world.upstream.on(callOf(PLAIN), reply(hold(gate), GOOD));
  const waits = world.clock.lengths.filter(burst).length;
  const asked = askMany(world, share + 10, tokens);
  await gate.count(share);
  await world.clock.waits(burst, waits + 10);
  expect(world.upstream.calls).toHaveLength(share);
  gate.release();
  expect(await statuses(asked)).toEqual(asked.map(() => 200));
  world.upstream.calls.length = 0;
};

describe('UPSTREAM_MAX_CONNECTIONS', () => {
  test.each([1, 2, 5])('bounds the calls under way: %d', async (slots) => {
    const { world, gate, busy } = await busyWorld(slots);
    const waiting = [...askMany(world, 20), ...askMany(world, 20, [world.token])];
    await world.clock.waits(burst, 40);
    expect(world.upstream.calls).toHaveLength(slots);
    gate.release();
    expect(await statuses([...busy, ...waiting])).toEqual(Array.from({ length: slots + 40 }, () => 200));
    expect(world.clock.pending()).toBe(0);
  });

  test('bounds them while they come and go', async () => {
    const world = await open(3);
    const accounts = await acceptedIn(world, 10);
    const { step, calls } = counting(3);
    world.upstream.on(callOf(PLAIN), step);
    expect(await statuses(askMany(world, 150, accounts))).toEqual(Array.from({ length: 150 }, () => 200));
    expect(calls.most).toBe(3);
  });

  test.each([
    [1, 1],
    [7, 1],
    [8, 2],
    [33, 8],
    [48, 12],
  ])('of %d leaves an account %d, and the strangers of an address as many', async (slots, share) => {
    const world = await open(slots);
    for (const tokens of [await acceptedIn(world, 1), undefined]) await takeAll({ world, tokens, share });
  });
});

/** An account has two hundred calls, of which all that may be under way are held. */
const noisyWorld = async (slots: number) => {
  const world = await open(slots);
  const [token] = await acceptedIn(world, 1);
  const gate = barrier();
  const isQuiet = (to: Call) => tokenOf(to) !== token;
  world.upstream.on(
    () => true,
    perCall((to) => (isQuiet(to) ? GOOD : reply(hold(gate), GOOD))),
  );
  const noisy = askMany(world, 200, [token!]);
  await gate.count(3);
  await world.clock.waits(burst, 197);
  return { world, gate, noisy };
};

describe('an account with hundreds of held calls', () => {
  test('does not keep a quiet one from its answers', async () => {
    const { world, gate, noisy } = await noisyWorld(12);
    for (let asked = 0; asked < 20; asked++) {
      expect(await world.ask(PLAIN, { token: secret() })).toMatchObject({ status: 200 });
    }
    expect(await statuses(askMany(world, 4))).toEqual([200, 200, 200, 200]);
    expect(world.upstream.calls).toHaveLength(3 + 20 + 4);
    gate.release();
    expect(await statuses(noisy)).toEqual(noisy.map(() => 200));
  });

  test('does not keep it from its overviews either', async () => {
    const { world, gate, noisy } = await noisyWorld(12);
    world.upstream.calls.length = 0;
    world.answerAll();
    const answer = await call(world.gateway.url, { path: '/bff/v1/account-overview', token: secret() });
    expect(answer).toMatchObject({ status: 200, json: { meta: { complete: true } } });
    gate.release();
    await Promise.all(noisy);
  });

  test('takes turns with one that has to wait as well', async () => {
    const { world, gate, busy, others } = await busyWorld(8);
    const [loud, quiet] = [others[0]!, others[1]!];
    const noisy = askMany(world, 100, [loud]);
    await world.clock.waits(burst, 100);
    const late = world.ask(PLAIN, { token: quiet });
    await world.clock.waits(burst, 101);
    gate.release();
    expect(await late).toMatchObject({ status: 200 });
    const turn = world.upstream.calls.slice(8).findIndex((to) => tokenOf(to) === quiet);
    expect(turn).toBeLessThanOrEqual(2); // the second to be let in; sockets may swap neighbours
    expect(await statuses([...busy, ...noisy])).toEqual(Array.from({ length: 108 }, () => 200));
  });
});

describe('a slot comes back', () => {
  const ENDS: readonly (readonly [string, Step])[] = [
    ['a good answer', GOOD],
    ['a refusal', json(404, '')],
    ['a 429', json(429, '')],
    ['a failure', json(500, '')],
    ['a reset', reset()],
    ['what is not JSON', json(200, '<html>')],
  ];

  test.each(ENDS)('after %s', async (_, step) => {
    const world = await open(1);
    world.upstream.on(callOf(WRITE), step);
    for (let sent = 0; sent < 10; sent++) await world.ask(WRITE, { token: secret() });
    expect(world.upstream.calls).toHaveLength(10);
  });

  test('after no answer in time, and after the client has left', async () => {
    const world = await open(1);
    world.upstream.on(callOf(PLAIN), hang(), hang(), GOOD);
    const slow = world.ask(PLAIN);
    await world.upstream.waitForCalls(1);
    world.clock.advance(5000);
    expect(await slow).toMatchObject({ status: 504 });
    const leave = new AbortController();
    const left = settled(world.ask(PLAIN, { signal: leave.signal }));
    await world.upstream.waitForCalls(2);
    leave.abort();
    await left;
    await noticed(world, 1);
    expect(await call(world.gateway.url, { path: pathOf(PLAIN), token: world.token })).toMatchObject({ status: 200 });
  });
});
