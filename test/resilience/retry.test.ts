import { describe, expect, test } from 'vitest';
import { noAnswer } from '../../src/upstream/transport.ts';
import { inProcess } from '../gateway/in-process.ts';
import { expectProblem } from '../http/problem.ts';
import { attemptsOf } from './helpers.ts';
import { clockOfDeadlines } from '../support/clock.ts';
import { bodyOf, callOf, markOf, pathOf } from '../support/marked.ts';
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
import { openWorld } from '../support/world.ts';
import { exampleRequest } from '../support/examples.ts';

const PASSING: readonly (readonly [name: string, step: Step, status: number, code: string])[] = [
  ['a reset before an answer', reset(), 502, 'upstream_unreachable'],
  ['a close before an answer', close(), 502, 'upstream_unreachable'],
  ['502', json(502, ''), 502, 'upstream_bad_response'],
  ['503', json(503, '', { 'Retry-After': '9' }), 503, 'upstream_unavailable'],
  ['504', json(504, ''), 504, 'upstream_timeout'],
];

const HTML = { 'Content-Type': 'text/html' };

/** None says that the next attempt would do better. */
const LASTING: readonly (readonly [name: string, step: Step])[] = [
  ['500', json(500, '')],
  ['599', json(599, '')],
  ['an answer cut off', reply(bytes(httpResponse(200, '{"id":5}').subarray(0, -3)), close())],
  ['an answer reset', reply(bytes(httpResponse(200, '{"id":5}').subarray(0, -3)), reset())],
  ['HTML with 200', json(200, '<html>Maintenance</html>', HTML)],
  ['malformed JSON', json(200, '{"id":')],
  ['a redirect', json(302, '', { Location: '/' })],
  ['bytes that are not HTTP', bytes('hello?\r\n\r\n')],
  ...[400, 401, 404, 408, 429].map((status) => [String(status), json(status, '')] as const),
];

describe.each(readIds)('%s', (id) => {
  test('is asked for again after what may pass', async () => {
    const world = await openWorld();
    for (const [name, step] of PASSING) {
      world.upstream.calls.length = 0;
      world.upstream.on(callOf(id), step, json(200, bodyOf(id, name)));
      const answer = await world.ask(id, { token: secret() });
      expect([answer.status, markOf(answer.text)]).toEqual([200, name]);
      expect(world.upstream.calls).toHaveLength(2);
      expect(attemptsOf(world)).toBe(2);
      world.advance(10); // the budget of retries
    }
  });

  test('is asked for again twice at most', async () => {
    const world = await openWorld();
    for (const [, step, status, code] of PASSING) {
      world.upstream.calls.length = 0;
      world.upstream.on(callOf(id), step);
      const problem = expectProblem(await world.ask(id, { token: secret() }), { status, code });
      expect(problem.retry_after).toBe(status === 503 ? 9 : undefined);
      expect(world.upstream.calls).toHaveLength(3);
      world.advance(10);
    }
  });

  test('is asked for again after a refused connection', async () => {
    const world = await openWorld();
    await world.upstream.close();
    expectProblem(await world.ask(id), { status: 502, code: 'upstream_unreachable' });
    expect(attemptsOf(world)).toBe(3);
    let attempts = 0;
    const gateway = inProcess({
      async transport() {
        if (++attempts < 3) throw noAnswer('no_connection', 'refused');
        return { status: 200, headers: {}, body: { text: bodyOf(id, 'third') } };
      },
      clock: clockOfDeadlines(),
    });
    const answer = await gateway.ask(pathOf(id), world.token);
    expect([answer.status, markOf(await answer.text())]).toEqual([200, 'third']);
    await gateway.close();
  });

  test('is asked for once where another attempt would be no use', async () => {
    const world = await openWorld();
    const calls = [];
    for (const [name, step] of LASTING) {
      world.upstream.calls.length = 0;
      world.upstream.on(callOf(id), step);
      await world.ask(id, { token: secret() });
      calls.push([name, world.upstream.calls.length]);
    }
    expect(calls).toEqual(LASTING.map(([name]) => [name, 1]));
  });

  test('is asked for once where it took too long', async () => {
    const world = await openWorld({ UPSTREAM_TIMEOUT_MS: '2000' });
    world.upstream.on(callOf(id), hang());
    const asked = world.ask(id);
    await world.upstream.waitForCalls(1);
    world.advance(2);
    expectProblem(await asked, { status: 504, code: 'upstream_timeout' });
    expect(world.upstream.calls).toHaveLength(1);
  });
});

describe.each(writeIds)('%s', (id) => {
  test('is sent once, whatever becomes of it', async () => {
    const world = await openWorld();
    for (const [name, step] of [...PASSING, ...LASTING]) {
      world.upstream.calls.length = 0;
      world.upstream.on(callOf(id), step);
      await world.ask(id, { token: secret() });
      expect([name, world.upstream.calls.length]).toEqual([name, 1]);
      world.advance(10); // so many failures in a row open the circuit
    }
    await world.upstream.close();
    expectProblem(await world.ask(id), { status: 502, code: 'upstream_unreachable' });
    expect(attemptsOf(world)).toBe(1);
  });

  test('is sent once with a key too', async () => {
    const world = await openWorld();
    world.upstream.on(callOf(id), json(503, ''));
    await world.ask(id, { headers: { 'Idempotency-Key': 'one' } });
    expect(world.upstream.calls).toHaveLength(1);
  });
});

describe('retries', () => {
  const ID = 'getSubscription';

  test('are shared by equal reads', async () => {
    const world = await openWorld();
    const gate = barrier();
    world.upstream.on(callOf(ID), reply(hold(gate), json(503, '')), json(503, ''), json(200, bodyOf(ID, 3)));
    const waiting = world.store.lookups.next(10);
    const asked = Array.from({ length: 10 }, () => world.ask(ID));
    await waiting;
    gate.release();
    expect((await Promise.all(asked)).map(({ status, text }) => [status, markOf(text)])).toEqual(
      asked.map(() => [200, 3]),
    );
    expect(world.upstream.calls).toHaveLength(3);
  });

  test.each([
    ['HEAD', { method: 'HEAD' }],
    ['no-store', { headers: { 'Cache-Control': 'no-store' } }],
    ['no-cache', { headers: { 'Cache-Control': 'no-cache' } }],
  ])('are there for %s', async (_, options) => {
    const world = await openWorld();
    world.upstream.on(callOf(ID), json(503, ''), json(200, bodyOf(ID, 2)));
    expect(await world.ask(ID, options)).toMatchObject({ status: 200 });
    expect(world.upstream.calls).toHaveLength(2);
  });

  test('are there for a refresh behind a stale copy', async () => {
    const world = await openWorld();
    world.upstream.on(callOf(ID), json(200, bodyOf(ID, 1)), json(503, ''), json(200, bodyOf(ID, 3)));
    await world.ask(ID);
    world.advance(31);
    const stored = world.store.saves.next();
    expect(markOf((await world.ask(ID)).text)).toBe(1);
    await stored;
    expect(markOf((await world.ask(ID)).text)).toBe(3);
    expect(world.upstream.calls).toHaveLength(3);
  });

  test('send the same request with the same request id', async () => {
    const world = await openWorld();
    world.upstream.on(callOf('listTransactions'), json(502, ''), json(200, bodyOf('listTransactions', 2)));
    const { path } = exampleRequest('listTransactions');
    await world.ask('listTransactions', { path: `${path}?page=3&x=%20y`, headers: { 'X-Request-Id': 'same' } });
    const sent = world.upstream.calls.map(({ target, headers: { traceparent = '', ...headers } }) => {
      return { target, headers, trace: traceparent.split('-')[1] };
    });
    expect(sent).toHaveLength(2);
    expect(sent[0]).toMatchObject({ target: `${path}?page=3&x=%20y`, headers: { 'x-request-id': 'same' } });
    expect(sent[1]).toEqual(sent[0]);
  });
});
