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
    ['opens when 11 of 20 failed', true, 9, 11],
    ['opens when all of 20 failed', true, 0, 20],
    ['opens when 51 of 100 failed', true, 49, 51],
    ['stays closed when it is half only with the account that failed most', false, 10, 10],
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
    await send(world, ...times(10, GOOD), ...times(10, BAD));
    expect(await isOpen(world)).toBe(false); // 9 of 19 without one account, with itself 9 of 20
    await send(world, BAD);
    expect(await isOpen(world)).toBe(false); // 10 of 21
    await send(world, BAD, BAD);
    expect(await isOpen(world)).toBe(true); // 12 of 23
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

/** So many failures of one account. */
const fail = async (world: World, token: string, count: number) => {
  world.upstream.once(callOf(WRITE), ...times(count, BAD));
  for (let sent = 0; sent < count; sent++) await world.ask(WRITE, { token });
};

describe('one account never opens the circuit for others:', () => {
  test('its hash is in the line that says that it is open for that account alone', async () => {
    const world = await openWorld({ RATE_LIMIT_PER_MINUTE: '0' });
    const token = secret();
    await fail(world, token, 100);
    const [line] = world.gateway.lines.filter(({ msg }) => msg.startsWith('circuit opened'));
    expect(line?.msg).toBe('circuit opened for one account: half of its calls of the upstream fail');
    expect(line?.account).toBe(world.gateway.lines.find(({ msg }) => msg === 'request')?.account);
    expect(line?.account).toMatch(/^[\w-]{43}$/);
    world.advance(5);
    world.upstream.once(callOf(WRITE), GOOD);
    await world.ask(WRITE, { token });
    const closed = world.gateway.lines.find(({ msg }) => msg.startsWith('circuit closed'));
    expect(closed).toMatchObject({ level: 'warn', account: line?.account });
  });

  test.each([
    ['a hundred failures of one, among four good calls of others', [100], 4, false],
    ['a hundred failures of one, and four of others', [100, 1, 1, 1, 1], 0, false],
    ['a hundred failures of one, and five of others', [100, 1, 1, 1, 1, 1], 0, true],
    ['a hundred failures of one, and five of others among six good calls', [100, 5], 6, false],
    ['a hundred failures of one, and six of others among six good calls', [100, 6], 6, true],
    ['a hundred failures of each of two', [100, 100], 0, true],
    ['a hundred failures of one that is alone', [100], 0, false],
  ])('%s', async (_, failures, good, open) => {
    const world = await openWorld({ RATE_LIMIT_PER_MINUTE: '0' });
    await send(world, ...times(good, GOOD));
    // The most first: while it stands open, nothing more is counted.
    for (const count of failures.toSorted((one, other) => one - other)) await fail(world, secret(), count);
    expect(await isOpen(world)).toBe(open);
  });

  test('who is alone and has failed twenty times is not asked for any more, and all others are', async () => {
    const world = await openWorld();
    world.answerAll();
    const token = secret();
    await fail(world, token, 19);
    expect(await world.ask(PLAIN, { token })).toMatchObject({ status: 200 });
    await fail(world, token, 1);
    const calls = world.upstream.calls.length;
    for (let asked = 0; asked < 3; asked++) {
      expectProblem(await world.ask(PLAIN, { token }), { status: 503, code: 'upstream_unavailable' });
      expect(await world.ask(PLAIN, { token: secret() })).toMatchObject({ status: 200 });
    }
    expect(world.upstream.calls).toHaveLength(calls + 3);
    world.advance(5);
    for (let asked = 0; asked < 3; asked++) expect(await world.ask(PLAIN, { token })).toMatchObject({ status: 200 });
  });

  test('reads that are answered with 500, eight a second for a minute', async () => {
    const world = await openWorld();
    world.answerAll();
    const hog = secret();
    world.upstream.on((to) => tokenOf(to) === hog, BAD);
    for (let second = 0; second < 60; second++) {
      for (let sent = 0; sent < 8; sent++) {
        expect(await world.ask(PLAIN, { token: hog })).toMatchObject({ status: 502 });
      }
      expect(await world.ask(PLAIN)).toMatchObject({ status: 200 });
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
    expect(await isOpen(world)).toBe(false); // 8 of 18 without one account, with itself 8 of 19
    await send(world, ...times(3, step));
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
