import { describe, expect, test, vi } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { expectProblem } from '../http/problem.ts';
import { brokenWorld, openCircuit, PLAIN, WRITE } from './helpers.ts';
import { bodyOf, callOf, tokenOf } from '../support/marked.ts';
import {
  barrier,
  bytes,
  close,
  hang,
  hold,
  httpResponse,
  json,
  reply,
  reset,
  type Step,
} from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { readIds, writeIds } from '../support/table.ts';
import { openWorld, type World } from '../support/world.ts';

const GOOD = json(200, bodyOf(WRITE, 1));
const BAD = json(500, '');

/** Writes one after the other, each of an account of its own: one call each, whatever becomes of it. */
const send = async ({ upstream, ask }: World, ...steps: readonly Step[]) => {
  for (const step of steps) {
    upstream.once(callOf(WRITE), step);
    await ask(WRITE, { token: secret() });
  }
};

const times = (count: number, step: Step) => Array.from({ length: count }, () => step);

const keyed = (id: OperationId) => ({ headers: { 'Idempotency-Key': `key-of-${id}` } });

const isOpen = async (world: World) => {
  const before = world.upstream.calls.length;
  world.upstream.on(callOf(PLAIN), json(200, bodyOf(PLAIN, 1)));
  const { status } = await world.ask(PLAIN, { token: secret() });
  expect([status, world.upstream.calls.length - before]).toEqual(status === 503 ? [503, 0] : [200, 1]);
  return status === 503;
};

describe('the circuit', () => {
  test.each<[string, boolean, number, number]>([
    ['opens when 10 of 20 failed', true, 10, 10],
    ['opens when all of 20 failed', true, 0, 20],
    ['opens when 50 of 100 failed', true, 50, 50],
    ['stays closed when 9 of 20 failed', false, 11, 9],
    ['stays closed when 19 of 19 failed', false, 0, 19],
    ['stays closed when 49 of 100 failed', false, 51, 49],
    ['stays closed when none failed', false, 40, 0],
  ])('%s', async (_, open, good, bad) => {
    const world = await openWorld();
    await send(world, ...times(good, GOOD), ...times(bad, BAD));
    expect(await isOpen(world)).toBe(open);
  });

  test('opens when nobody answers those who connect', async () => {
    const world = await openWorld({}, { hasDoor: true });
    await world.door?.blackhole();
    const asked = Array.from({ length: 20 }, () => world.ask(PLAIN, { token: secret() }));
    await vi.waitFor(() => expect(world.clock.pending()).toBe(2 * asked.length)); // their requests' timers and their own
    world.advance(5);
    expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([504]));
    await world.door?.open();
    expect(await isOpen(world)).toBe(true);
  });

  test('opens at the very call that makes it half', async () => {
    const world = await openWorld();
    await send(world, ...times(10, GOOD), ...times(9, BAD));
    expect(await isOpen(world)).toBe(false); // 9 of 19, with itself 9 of 20
    await send(world, BAD);
    expect(await isOpen(world)).toBe(false); // 10 of 21, with itself 10 of 22
    await send(world, BAD);
    expect(await isOpen(world)).toBe(false); // 11 of 23, with itself 11 of 24
    await send(world, BAD, BAD);
    expect(await isOpen(world)).toBe(true); // 13 of 26
  });

  test('says in the log when it opens and when it closes', async () => {
    const world = await openWorld();
    const said = () => world.gateway.lines.filter(({ msg }) => msg.startsWith('circuit ')).map(({ msg }) => msg);
    await send(world, ...times(20, BAD));
    expect(said()).toEqual(['circuit opened: the upstream fails and is not asked']);
    world.advance(5);
    await send(world, GOOD);
    expect(said().slice(1)).toEqual(['circuit closed: the upstream answers again']);
  });

  test('forgets failures after ten seconds', async () => {
    const world = await openWorld();
    await send(world, ...times(19, BAD));
    world.advance(10);
    await send(world, ...times(19, BAD));
    expect(await isOpen(world)).toBe(false);
    world.advance(10);
    await send(world, ...times(10, BAD));
    world.advance(9);
    await send(world, ...times(10, BAD));
    expect(await isOpen(world)).toBe(true);
  });

  test('forgets good calls after ten seconds too', async () => {
    const world = await openWorld();
    await send(world, ...times(40, GOOD));
    world.advance(10);
    await send(world, ...times(20, BAD));
    expect(await isOpen(world)).toBe(true);
  });
});

const from = (nth: number) => ({ headers: { 'X-Forwarded-For': `203.0.113.${nth}` } });

describe('of each account its last calls count:', () => {
  type Calls = readonly (readonly [good: number, bad: number])[];

  /** All good calls of all accounts, and then the bad ones. */
  const calledBy = async (accounts: Calls) => {
    const world = await openWorld({ RATE_LIMIT_PER_MINUTE: '0' });
    const callers = accounts.map(([good, bad]) => ({ token: secret(), good, bad }));
    for (const [which, step] of [
      ['good', GOOD],
      ['bad', BAD],
    ] as const) {
      for (const caller of callers) {
        world.upstream.once(callOf(WRITE), ...times(caller[which], step));
        for (let sent = 0; sent < caller[which]; sent++) await world.ask(WRITE, { token: caller.token });
      }
    }
    return world;
  };

  test.each<[string, Calls, boolean]>([
    ['the last twenty of one that is alone', [[30, 10]], true],
    ['and no fewer', [[30, 9]], false],
    [
      'ten of each of two',
      [
        [0, 10],
        [0, 10],
      ],
      true,
    ],
    [
      'which are too few where one has called less',
      [
        [9, 0],
        [0, 25],
      ],
      false,
    ],
    [
      'seven of each of three',
      [
        [0, 7],
        [7, 0],
        [3, 4],
      ],
      true,
    ],
    [
      'so that one of three has no say alone',
      [
        [25, 0],
        [25, 0],
        [0, 25],
      ],
      false,
    ],
    [
      'five of each of four',
      [
        [5, 0],
        [5, 0],
        [0, 5],
        [0, 5],
      ],
      true,
    ],
    [
      'so that one of four has no say alone',
      [
        [5, 0],
        [5, 0],
        [5, 0],
        [0, 25],
      ],
      false,
    ],
    [
      'five of each of more',
      [
        [5, 0],
        [5, 0],
        [5, 0],
        [0, 25],
        [0, 5],
        [0, 5],
      ],
      true,
    ],
    [
      'and those of two bad ones are not half of five',
      [
        [5, 0],
        [5, 0],
        [5, 0],
        [0, 25],
        [0, 25],
      ],
      false,
    ],
    [
      'the last ones, whatever came before',
      [
        [25, 5],
        [25, 5],
        [5, 0],
        [5, 0],
      ],
      true,
    ],
  ])('%s', async (_, accounts, open) => {
    expect(await isOpen(await calledBy(accounts))).toBe(open);
  });

  test('without a credential, of each address', async () => {
    const world = await openWorld({ TRUSTED_PROXIES: '127.0.0.1', RATE_LIMIT_PER_MINUTE: '0' });
    await send(world, ...times(15, GOOD));
    world.upstream.on(callOf('loginSocial'), BAD);
    for (let sent = 0; sent < 40; sent++) await world.ask('loginSocial', from(1));
    for (let sent = 0; sent < 40; sent++) await world.ask('loginSocial', from(2));
    expect(await isOpen(world)).toBe(false); // 10 of 25
    for (let sent = 0; sent < 40; sent++) await world.ask('loginSocial', from(3));
    for (let sent = 0; sent < 40; sent++) await world.ask('loginSocial', from(4));
    expect(await isOpen(world)).toBe(true); // 16 of 32
  });

  test('one whose reads are answered with 500, eight a second for a minute, is asked all the time, and so are the others', async () => {
    const world = await openWorld();
    world.answerAll();
    const hog = secret();
    const others = Array.from({ length: 3 }, secret);
    world.upstream.on((to) => tokenOf(to) === hog, BAD);
    for (let second = 0; second < 60; second++) {
      for (let sent = 0; sent < 8; sent++)
        expect(await world.ask(PLAIN, { token: hog })).toMatchObject({ status: 502 });
      for (const token of others) expect(await world.ask(PLAIN, { token })).toMatchObject({ status: 200 });
      world.advance(1);
    }
  });
});

const cutOff = httpResponse(200, '{"id":5}').subarray(0, -3);

describe('to the circuit', () => {
  test.each<[string, Step]>([
    ...[500, 501, 502, 503, 504, 507, 599].map((status) => [String(status), json(status, '')] as [string, Step]),
    ['a reset', reset()],
    ['a close', close()],
    ['an answer cut off', reply(bytes(cutOff), close())],
    ['what is not HTTP', bytes('hello?\r\n\r\n')],
  ])('%s is a failure', async (_, step) => {
    const world = await openWorld();
    await send(world, ...times(10, GOOD), ...times(9, step));
    expect(await isOpen(world)).toBe(false); // 9 of 19, with itself 9 of 20
    await send(world, ...times(3, step)); // with the second 11 of 22
    expect(await isOpen(world)).toBe(true);
  });

  test('no answer in time is a failure', async () => {
    const world = await openWorld();
    world.upstream.on(callOf(WRITE), hang());
    const asked = times(20, GOOD).map(() => world.ask(WRITE, { token: secret() }));
    await world.upstream.waitForCalls(20);
    world.advance(5);
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(asked.map(() => 504));
    expect(await isOpen(world)).toBe(true);
  });

  test('a refused connection is a failure', async () => {
    const world = await openWorld();
    await world.upstream.close();
    for (let sent = 0; sent < 20; sent++) {
      expectProblem(await world.ask(WRITE, { token: secret() }), { status: 502, code: 'upstream_unreachable' });
    }
    expectProblem(await world.ask(WRITE), { status: 503, code: 'upstream_unavailable' });
  });

  test.each<[string, Step]>([
    ...[400, 401, 403, 404, 408, 409, 422, 429, 451].map((s) => [String(s), json(s, '')] as [string, Step]),
    ['HTML with 200', json(200, '<html>Maintenance</html>', { 'Content-Type': 'text/html' })],
    ['malformed JSON', json(200, '{"id":')],
    ['a redirect', json(302, '', { Location: '/' })],
  ])('%s is none', async (_, step) => {
    const world = await openWorld();
    await send(world, ...times(30, step));
    expect(await isOpen(world)).toBe(false);
    await send(world, ...times(29, BAD)); // 29 of 60: the others count as calls
    expect(await isOpen(world)).toBe(false);
  });

  test('a client that leaves says nothing', async () => {
    const world = await openWorld();
    world.upstream.on(callOf(PLAIN), hang());
    for (let left = 1; left <= 19; left++) {
      const leave = new AbortController();
      const asked = world.ask(PLAIN, { token: secret(), signal: leave.signal }).catch(() => undefined);
      const held = (await world.upstream.waitForCalls(left)).at(-1);
      leave.abort();
      await asked;
      await world.upstream.disconnected(held!);
    }
    await send(world, ...times(19, BAD));
    expect(await isOpen(world)).toBe(false); // 19 of 19; it would be half had they been good, and more had they been bad
    await send(world, BAD);
    expect(await isOpen(world)).toBe(true);
  });

  test('retries are calls like any', async () => {
    const world = await openWorld();
    world.upstream.on(callOf(PLAIN), json(503, ''));
    await world.ask(PLAIN); // three calls
    await send(world, ...times(16, BAD));
    expect(await isOpen(world)).toBe(false); // 19, with itself 20
    await send(world, BAD);
    expect(await isOpen(world)).toBe(true);
  });
});

describe('an open circuit', () => {
  test('refuses every read at once', async () => {
    const world = await brokenWorld();
    for (const id of readIds) {
      const problem = expectProblem(await world.ask(id), { status: 503, code: 'upstream_unavailable' });
      expect(problem).toMatchObject({ retry_after: 5, retryable: true });
    }
    world.advance(2);
    for (const id of readIds) {
      const answer = await world.ask(id, { token: secret() });
      expect(expectProblem(answer, { status: 503, code: 'upstream_unavailable' }).retry_after).toBe(3);
    }
    expect(world.upstream.calls).toEqual([]);
  });

  test('refuses every write at once, and nothing has happened', async () => {
    const world = await brokenWorld();
    for (const id of writeIds) {
      for (const options of [{}, keyed(id)]) {
        const problem = expectProblem(await world.ask(id, options), { status: 503, code: 'upstream_unavailable' });
        expect([problem.retry_after, problem.outcome]).toEqual([5, undefined]);
      }
    }
    expect(world.upstream.calls).toEqual([]);
    world.advance(5);
    world.answerAll();
    for (const id of writeIds) expect((await world.ask(id, keyed(id))).status).toBeLessThan(300);
    expect(world.upstream.calls).toHaveLength(writeIds.length);
  });

  test('does not count what it refuses', async () => {
    const world = await openWorld();
    await openCircuit(world);
    for (let asked = 0; asked < 50; asked++) expect(await isOpen(world)).toBe(true);
    world.advance(5);
    expect(await isOpen(world)).toBe(false);
    expect(await isOpen(world)).toBe(false);
  });

  test('is not closed by the late answer to a call from before', async () => {
    const world = await openWorld();
    const gate = barrier();
    world.upstream.on(callOf('getSubscription'), reply(hold(gate), json(200, bodyOf('getSubscription', 1))));
    const late = world.ask('getSubscription');
    await gate.reached;
    await openCircuit(world);
    gate.release();
    expect(await late).toMatchObject({ status: 200 });
    expect(await isOpen(world)).toBe(true);
  });
});
