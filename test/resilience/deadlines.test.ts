import { describe, expect, test } from 'vitest';
import { allOperations } from '../support/account-api.ts';
import { expectProblem } from '../http/problem.ts';
import { legsOf, overviewTable } from '../overviews/helpers.ts';
import { isPause, openTimedWorld, PLAIN, WRITE } from './helpers.ts';
import { call } from '../support/http.ts';
import { bodyOf, callOf, markOf } from '../support/marked.ts';
import { barrier, drip, hang, hold, httpResponse, json, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { readIds, writeIds } from '../support/table.ts';

const TIMEOUT = { status: 504, code: 'upstream_timeout' } as const;

/** Says how a promise stands once everything that can happen without time passing has happened. */
const isPending = async (work: Promise<unknown>) => {
  let over = false;
  void work.then(() => (over = true));
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  return !over;
};

describe.each(allOperations.map(({ id }) => id))('%s', (id) => {
  const outcome = writeIds.includes(id) ? 'unknown' : undefined;

  test.each([
    ['UPSTREAM_TIMEOUT_MS', { UPSTREAM_TIMEOUT_MS: '2000', REQUEST_TIMEOUT_MS: '3000' }],
    ['REQUEST_TIMEOUT_MS', { UPSTREAM_TIMEOUT_MS: '3000', REQUEST_TIMEOUT_MS: '2000' }],
  ])('is given up when %s is over, and asked for no more', async (_, env) => {
    const world = await openTimedWorld(env);
    world.upstream.on(callOf(id), hang());
    const asked = world.ask(id);
    const [held] = await world.upstream.waitForCalls(1);
    world.clock.advance(1999);
    expect(await isPending(asked)).toBe(true);
    world.clock.advance(1);
    expect(expectProblem(await asked, TIMEOUT).outcome).toBe(outcome);
    await world.upstream.disconnected(held!);
    world.clock.advance(10_000);
    expect(world.upstream.calls).toHaveLength(1);
    expect(world.clock.pending()).toBe(0);
  });
});

describe('UPSTREAM_TIMEOUT_MS', () => {
  test('is not renewed by bytes that come one by one', async () => {
    const world = await openTimedWorld({ UPSTREAM_TIMEOUT_MS: '2000' });
    world.upstream.on(callOf(PLAIN), drip(httpResponse(200, bodyOf(PLAIN, 1)), 1));
    const asked = world.ask(PLAIN);
    await world.upstream.waitForCalls(1);
    for (let part = 0; part < 10; part++) {
      expect(await isPending(asked)).toBe(true);
      world.clock.advance(200);
    }
    expectProblem(await asked, TIMEOUT);
  });

  test('is for each attempt', async () => {
    const world = await openTimedWorld({ UPSTREAM_TIMEOUT_MS: '2000', REQUEST_TIMEOUT_MS: '10000' });
    const gates = [barrier(), barrier(), barrier()] as const;
    const held = gates.map((gate, nth) => reply(hold(gate), json(nth < 2 ? 503 : 200, bodyOf(PLAIN, nth))));
    world.upstream.on(callOf(PLAIN), ...held);
    const asked = world.ask(PLAIN);
    for (const [nth, gate] of gates.entries()) {
      await gate.reached;
      world.clock.advance(1900);
      gate.release();
      if (nth < 2) await world.clock.waits(isPause, nth + 1);
      world.clock.advance(nth < 2 ? 200 : 0);
    }
    const answer = await asked;
    expect([answer.status, markOf(answer.text)]).toEqual([200, 2]);
  });
});

describe('REQUEST_TIMEOUT_MS', () => {
  const env = { UPSTREAM_TIMEOUT_MS: '2000', REQUEST_TIMEOUT_MS: '3000' };

  test.each(readIds)('is for all attempts together: %s', async (id) => {
    const world = await openTimedWorld(env);
    const gate = barrier();
    world.upstream.on(callOf(id), reply(hold(gate), json(503, '')), hang());
    const asked = world.ask(id);
    await gate.reached;
    world.clock.advance(1900);
    gate.release();
    await world.clock.waits(isPause);
    world.clock.advance(100);
    await world.upstream.waitForCalls(2);
    world.clock.advance(999);
    expect(await isPending(asked)).toBe(true);
    world.clock.advance(1); // the second attempt has had half of its time
    expectProblem(await asked, TIMEOUT);
    world.clock.advance(10_000);
    expect(world.upstream.calls).toHaveLength(2);
  });

  test('is each reader’s own, where one joins the call of another', async () => {
    const world = await openTimedWorld({ UPSTREAM_TIMEOUT_MS: '9000', REQUEST_TIMEOUT_MS: '3000' });
    const gate = barrier();
    world.upstream.on(callOf(PLAIN), reply(hold(gate), json(200, bodyOf(PLAIN, 1))));
    const first = world.ask(PLAIN);
    await gate.reached;
    world.clock.advance(2000);
    const second = world.ask(PLAIN);
    await world.clock.waits((ms) => ms === 3000, 3); // of two requests and one call
    world.clock.advance(999);
    expect([await isPending(first), await isPending(second)]).toEqual([true, true]);
    world.clock.advance(1);
    expectProblem(await first, TIMEOUT);
    // The call was begun for the first, and has no more time than that.
    expectProblem(await second, TIMEOUT);
  });

  test.each(overviewTable)('is for all legs of %s together', async (path, overview) => {
    const legs = legsOf(overview);
    for (const slow of legs) {
      const world = await openTimedWorld(env);
      world.answerAll();
      for (const leg of legs) world.upstream.on(`GET ${leg.path}`, json(200, leg.upstream));
      world.upstream.on(`GET ${slow.path}`, hang());
      const asked = call(world.gateway.url, { path, token: world.token });
      await world.upstream.waitForCalls(legs.length);
      world.clock.advance(1999);
      expect(await isPending(asked)).toBe(true);
      world.clock.advance(1);
      const answer = await asked;
      if (slow.required) expectProblem(answer, TIMEOUT);
      const error = { section: slow.section, code: 'upstream_timeout', status: 504 };
      const errors = slow.isCard ? [] : [error]; // there is time left to ask for the card by its id
      if (!slow.required) expect(answer).toMatchObject({ status: 200, json: { errors } });
    }
  });

  test('is for all items of a batch together', async () => {
    const world = await openTimedWorld({ ...env, UPSTREAM_TIMEOUT_MS: '9000' });
    world.answerAll();
    world.upstream.on(callOf(PLAIN), hang());
    const paths = ['/api/v2/subscription/', `${callOf(PLAIN).split(' ')[1]}`];
    const requests = paths.map((path, index) => ({ id: `r${index}`, path }));
    const { gateway, token } = world;
    const asked = call(gateway.url, { method: 'POST', path: '/bff/v1/batch', token, body: { requests } });
    await world.upstream.waitForCalls(2);
    world.clock.advance(2999);
    expect(await isPending(asked)).toBe(true);
    world.clock.advance(1);
    const { json: body } = await asked;
    expect(body).toMatchObject({ responses: [{ status: 200 }, { status: 504, body: { code: 'upstream_timeout' } }] });
  });

  test.each([PLAIN, WRITE])('is for the waiting for a slot too: %s', async (id) => {
    const world = await openTimedWorld({ REQUEST_TIMEOUT_MS: '800', UPSTREAM_MAX_CONNECTIONS: '1' });
    const gate = barrier();
    const slow = 'getSubscription';
    world.upstream.on(callOf(slow), reply(hold(gate), json(200, bodyOf(slow, 1))));
    const busy = world.ask(slow, { token: secret() });
    await gate.reached;
    world.clock.advance(10);
    const late = world.ask(id);
    await world.clock.waits((ms) => ms === 1000 || ms === 800, 4);
    world.clock.advance(789);
    gate.release(); // just before its own time is up
    await busy;
    world.upstream.on(callOf(id), json(200, bodyOf(id, 1)));
    expect(await late).toMatchObject({ status: 200 });
  });

  test.each([PLAIN, WRITE])('once over, keeps what waited for a slot from being sent: %s', async (id) => {
    const world = await openTimedWorld({ REQUEST_TIMEOUT_MS: '800', UPSTREAM_MAX_CONNECTIONS: '1' });
    const gate = barrier();
    world.upstream.on(callOf('purchasePlan'), reply(hold(gate), json(200, bodyOf('purchasePlan', 1))));
    const busy = world.ask('purchasePlan', { token: secret() });
    await gate.reached;
    world.clock.advance(10);
    const late = world.ask(id);
    await world.clock.waits((ms) => ms === 1000);
    world.clock.advance(801); // the one's time is up, and in the same moment the other's
    expect(expectProblem(await busy, TIMEOUT).outcome).toBe('unknown');
    await isPending(late); // sent by now, if it is to be
    world.clock.advance(10);
    const { status, text } = await late;
    expect([status, text.includes('"outcome"')]).toEqual([504, false]);
    expect(world.upstream.calls).toHaveLength(1);
  });
});
