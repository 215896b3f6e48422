import { describe, expect, test } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { expectProblem } from '../http/problem.ts';
import { brokenWorld, noticed, openCircuit, PLAIN, WRITE } from './helpers.ts';
import { bodyOf, callOf, markOf } from '../support/marked.ts';
import { barrier, bytes, hang, hold, json, reply, reset, type Step } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { openWorld, type World } from '../support/world.ts';

const GOOD = json(200, bodyOf(PLAIN, 'good'));

const ask = (world: World) => world.ask(PLAIN, { token: secret() });

const refusal = async (world: World) =>
  expectProblem(await ask(world), { status: 503, code: 'upstream_unavailable' }).retry_after;

/** Open, with nothing refused because of the five seconds. */
const dueWorld = async (env: Readonly<Record<string, string>> = {}) => {
  const world = await brokenWorld(env);
  world.advance(5);
  return world;
};

const statuses = async (asked: readonly Promise<{ status: number }>[]) =>
  (await Promise.all(asked)).map(({ status }) => status);

describe('five seconds after the circuit has opened', () => {
  test('nothing goes through a moment before', async () => {
    const world = await brokenWorld();
    world.advance(4.999);
    expect(await refusal(world)).toBe(1);
    expect(world.upstream.calls).toEqual([]);
  });

  test('exactly one call goes through, and the others do not wait for it', async () => {
    const world = await dueWorld();
    const gate = barrier();
    world.upstream.on(callOf(PLAIN), reply(hold(gate), GOOD));
    const probe = ask(world);
    await gate.reached;
    // Answered while the first is held.
    expect(await statuses(Array.from({ length: 10 }, () => ask(world)))).toEqual(Array.from({ length: 10 }, () => 503));
    expect(world.upstream.calls).toHaveLength(1);
    gate.release();
    expect(await probe).toMatchObject({ status: 200 });
  });

  test('whose call was let through and has failed lets others go first', async () => {
    const world = await dueWorld();
    world.upstream.on(callOf(PLAIN), json(500));
    const [failing, other] = [secret(), secret()];
    const askAs = async (token: string) => (await world.ask(PLAIN, { token })).status;
    expect(await askAs(failing)).toBe(502);
    expect([await askAs(failing), await askAs(other)]).toEqual([503, 503]);
    world.advance(5);
    expect(await askAs(failing)).toBe(503);
    world.upstream.on(callOf(PLAIN), GOOD);
    expect(await askAs(other)).toBe(200);
  });

  test('one of many that come at once goes through', async () => {
    const world = await dueWorld();
    const gate = barrier();
    world.upstream.on(callOf(PLAIN), reply(hold(gate), GOOD));
    const asked = Array.from({ length: 20 }, () => ask(world));
    await gate.reached;
    const refused = Promise.all(asked.map(async (one) => (await one).status === 503 && refusedSoFar.push(1)));
    const refusedSoFar: number[] = [];
    await expect.poll(() => refusedSoFar.length).toBe(19);
    gate.release();
    await refused;
    expect(await statuses(asked)).toEqual(expect.arrayContaining([200, 503]));
    expect(world.upstream.calls).toHaveLength(1);
  });

  test('its success closes the circuit', async () => {
    const world = await dueWorld();
    world.upstream.on(callOf(PLAIN), GOOD);
    expect(await ask(world)).toMatchObject({ status: 200 });
    expect(await statuses(Array.from({ length: 30 }, () => ask(world)))).toEqual(Array.from({ length: 30 }, () => 200));
  });

  test.each<[string, Step]>([
    ['a refusal', json(404, '')],
    ['a 429', json(429, '')],
    ['HTML', json(200, '<html></html>')],
  ])('%s closes it too: the upstream is there', async (_, step) => {
    const world = await dueWorld();
    world.upstream.on(callOf(PLAIN), step, GOOD);
    await ask(world);
    expect(await ask(world)).toMatchObject({ status: 200 });
  });

  test('the failures from before it was closed are forgotten', async () => {
    const world = await dueWorld();
    world.upstream.on(callOf(PLAIN), GOOD, ...Array.from({ length: 19 }, () => json(500, '')), GOOD);
    await ask(world);
    for (let failed = 0; failed < 19; failed++) expect(await ask(world)).toMatchObject({ status: 502 });
    expect(await ask(world)).toMatchObject({ status: 200 });
  });

  test.each<[string, Step]>([
    ['500', json(500, '')],
    ['503', json(503, '')],
    ['a reset', reset()],
    ['what is not HTTP', bytes('hello?\r\n\r\n')],
  ])('its failure does not: %s', async (_, step) => {
    const world = await dueWorld();
    world.upstream.on(callOf(PLAIN), step);
    expect((await ask(world)).status).toBeGreaterThanOrEqual(502);
    expect(world.upstream.calls).toHaveLength(1); // a probe is not retried either
    expect(await refusal(world)).toBe(5);
    world.advance(4.9);
    expect(await refusal(world)).toBe(1);
    world.advance(0.1);
    await ask(world);
    expect(world.upstream.calls).toHaveLength(2);
    world.advance(5);
    world.upstream.on(callOf(PLAIN), GOOD);
    expect(await statuses([ask(world)])).toEqual([200]);
    expect(await statuses([ask(world), ask(world)])).toEqual([200, 200]);
  });

  test('a write may be the one', async () => {
    const world = await dueWorld();
    world.upstream.on(callOf(WRITE), json(500, ''), json(200, bodyOf(WRITE, 2)));
    expect(expectProblem(await world.ask(WRITE), { status: 502, code: 'upstream_bad_response' }).outcome).toBe(
      'unknown',
    );
    expect(await world.ask(WRITE)).toMatchObject({ status: 503 });
    world.advance(5);
    expect(markOf((await world.ask(WRITE)).text)).toBe(2);
    expect(markOf((await world.ask(WRITE)).text)).toBe(2);
  });
});

describe('a probe', () => {
  test('that its client abandons lets the next one through', async () => {
    const world = await dueWorld();
    world.upstream.on(callOf(PLAIN), hang(), GOOD);
    const leave = new AbortController();
    const left = world.ask(PLAIN, { signal: leave.signal }).catch(() => undefined);
    const [held] = await world.upstream.waitForCalls(1);
    expect(await refusal(world)).toBe(5);
    leave.abort();
    await left;
    await noticed(world, 1);
    await world.upstream.disconnected(held!);
    expect(await ask(world)).toMatchObject({ status: 200 });
  });

  test('that hangs does not keep the next one back for longer than five seconds', async () => {
    const world = await dueWorld({ UPSTREAM_TIMEOUT_MS: '60000', REQUEST_TIMEOUT_MS: '60000' });
    world.upstream.on(callOf(PLAIN), hang(), GOOD);
    const hanging = ask(world);
    await world.upstream.waitForCalls(1);
    world.advance(4.9);
    expect(await refusal(world)).toBe(1);
    world.advance(0.1);
    expect(await ask(world)).toMatchObject({ status: 200 });
    expect(await ask(world)).toMatchObject({ status: 200 });
    world.advance(60);
    expect(await hanging).toMatchObject({ status: 504 });
  });

  test('that runs into its timeout is followed by the next one', async () => {
    const world = await dueWorld();
    world.upstream.on(callOf(PLAIN), hang(), GOOD);
    const hanging = ask(world);
    await world.upstream.waitForCalls(1);
    world.advance(5);
    expect(await hanging).toMatchObject({ status: 504 });
    expect(await statuses([ask(world)])).toEqual([200]);
  });

  test('that is held back by a cooldown lets another account through', async () => {
    const world = await openWorld();
    world.upstream.on(callOf(PLAIN), json(429, '', { 'Retry-After': '300' }), GOOD);
    await world.ask(PLAIN);
    await openCircuit(world);
    world.advance(5);
    expect(await world.ask(PLAIN)).toMatchObject({ status: 429 });
    expect(world.upstream.calls).toEqual([]);
    expect(await ask(world)).toMatchObject({ status: 200 });
  });
});

test('late failures of calls from before do not open a circuit that has closed since', async () => {
  const world = await openWorld();
  const gate = barrier();
  world.upstream.on(callOf('getSubscription'), reply(hold(gate), json(500, '')));
  const late = Array.from({ length: 30 }, () => world.ask('getSubscription', { token: secret() }));
  await gate.count(30);
  await openCircuit(world);
  world.advance(4.5);
  world.upstream.on(callOf(PLAIN), GOOD);
  await refusal(world);
  world.advance(0.499);
  await refusal(world);
  gate.release();
  expect(await statuses(late)).toEqual(late.map(() => 502));
  world.advance(0.001);
  expect(await statuses([ask(world)])).toEqual([200]);
  expect(await statuses([ask(world), ask(world)])).toEqual([200, 200]);
});

describe('whoever has a copy, with the circuit open', () => {
  const OLD: OperationId = 'getSubscription';
  const oldCopy = { CACHE_POLICY: '{"getSubscription":{"fresh":1,"stale":0,"on_error":3600}}' };

  /** One account with a copy that only a failure brings out. */
  const worldWithCopy = async () => {
    const world = await openWorld({ RATE_LIMIT_PER_MINUTE: '0', ...oldCopy });
    world.upstream.once(callOf(OLD), json(200, bodyOf(OLD, 'old')));
    await world.ask(OLD);
    world.advance(2);
    await openCircuit(world);
    world.advance(5); // the next call is let through
    return world;
  };

  test('does not wait for the call that is let through: it goes out behind the answer', async () => {
    const world = await worldWithCopy();
    const gate = barrier();
    world.upstream.on(callOf(OLD), reply(hold(gate), json(200, bodyOf(OLD, 'new'))));
    const older = await world.ask(OLD);
    expect([markOf(older.text), older.headers['cache-status']]).toEqual(['old', expect.stringMatching(/hit; ttl=-/)]);
    await gate.reached;
    expect(markOf((await world.ask(OLD)).text)).toBe('old');
    const saved = world.store.saves.next();
    gate.release();
    await saved;
    expect(markOf((await world.ask(OLD)).text)).toBe('new');
    expect(world.upstream.callsTo(callOf(OLD))).toHaveLength(1);
  });

  test('keeps it when a write is held back: nothing was sent', async () => {
    const world = await brokenWorld(oldCopy);
    const token = secret();
    world.advance(5);
    world.upstream.once(callOf(OLD), json(200, bodyOf(OLD, 'old')));
    await world.ask(OLD, { token });
    world.advance(2);
    await openCircuit(world);
    expectProblem(await world.ask('purchasePlan', { token }), { status: 503, code: 'upstream_unavailable' });
    expect(markOf((await world.ask(OLD, { token })).text)).toBe('old');
  });
});
