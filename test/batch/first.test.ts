import { describe, expect, test } from 'vitest';
import { CONFIG, openBatch, responsesOf, SUBSCRIPTION, transaction } from './helpers.ts';
import { manualClock } from '../support/clock.ts';
import { barrier, hang, hold, json, perCall, reply, type Step } from '../support/scripted-upstream.ts';

type BatchWorld = Awaited<ReturnType<typeof openBatch>>;

const PATHS = Array.from({ length: 20 }, (_, index) => transaction(index + 1));
const [FIRST = '', SECOND = '', ...OTHERS] = PATHS;

const good: Step = perCall(({ path }) => json(200, { path }));

const REFUSALS = [
  [401, 'unauthenticated', json(401, { detail: 'Invalid token.' })],
  [403, '2fa_needed', json(403, { detail: 'Two factors.', code: '2fa_needed' })],
  [403, 'forbidden', json(403, { detail: 'Not yours.' })],
] as const;

/** A batch of twenty, and what the upstream answers its items but the first ones. */
const openTwenty = async (step: Step = good, ...args: Parameters<typeof openBatch>) => {
  const world = await openBatch(...args);
  world.upstream.on(({ path }) => PATHS.includes(path), step);
  return world;
};

const sent = ({ upstream }: BatchWorld) => upstream.calls.map(({ path }) => path);

describe('a batch for a credential that the upstream has not accepted yet', () => {
  test('sends its first item alone, and after a good answer all the others at once', async () => {
    const gate = barrier();
    const world = await openTwenty(perCall(({ path }) => reply(hold(gate), json(200, { path }))));
    const first = barrier();
    world.on(FIRST, reply(hold(first), json(200, { path: FIRST })));
    const pending = world.batch(PATHS);
    await world.upstream.waitForCalls(1);
    world.on(SUBSCRIPTION, json(200, '{}'));
    await world.get(SUBSCRIPTION); // others would have been sent by now
    expect(sent(world)).toEqual([FIRST, SUBSCRIPTION]);
    first.release();
    await world.upstream.waitForCalls(1 + PATHS.length);
    gate.release();
    expect(responsesOf(await pending).map(({ status, body }) => [status, body['path']])).toEqual(
      PATHS.map((path) => [200, path]),
    );
  });

  test('sends all at once when an earlier request has shown that it is accepted', async () => {
    const gate = barrier();
    const world = await openTwenty(perCall(({ path }) => reply(hold(gate), json(200, { path }))));
    world.on(SUBSCRIPTION, json(200, '{}'));
    await world.get(SUBSCRIPTION);
    const pending = world.batch(PATHS);
    await gate.count(PATHS.length);
    gate.release();
    expect(responsesOf(await pending).map(({ status }) => status)).toEqual(PATHS.map(() => 200));
  });

  test.each(REFUSALS)('gives all the problem of its first item, a %i %s, and sends nothing more', async (...of) => {
    const [status, code, step] = of;
    const world = await openTwenty(step);
    const paths = [...PATHS.slice(0, -2), `${CONFIG}?secret=x`, FIRST];
    const responses = responsesOf(await world.batch(paths, { headers: { 'X-Request-Id': 'batch-1' } }));
    expect(sent(world)).toEqual([FIRST]);
    expect(responses.map(({ id }) => id)).toEqual(paths.map((_, index) => `r${index}`));
    const { body: problem } = responses[0]!;
    expect(problem).toMatchObject({ status, code, request_id: 'batch-1', instance: FIRST });
    for (const [index, response] of responses.entries()) {
      expect(response.status).toBe(status);
      expect(response.body).toEqual({ ...problem, instance: paths[index]!.split('?')[0] });
    }
  });

  test.each([
    ['400', json(400, { detail: 'No.' })],
    ['404', json(404, { detail: 'Not found.' })],
    ['500', json(500, 'oops')],
    ['HTML', json(200, '<html>', { 'Content-Type': 'text/html' })],
  ])('goes on one by one after what shows nothing: %s', async (_, step) => {
    const world = await openTwenty(json(403, { detail: 'Two factors.', code: '2fa_needed' }));
    world.on(FIRST, step);
    const responses = responsesOf(await world.batch(PATHS));
    expect(sent(world)).toEqual([FIRST, SECOND]);
    expect(responses.slice(1).map(({ body }) => body['code'])).toEqual([SECOND, ...OTHERS].map(() => '2fa_needed'));
    expect(responses[0]?.body['code']).not.toBe('2fa_needed');
  });

  test('goes by the first item that the upstream is asked for', async () => {
    const world = await openTwenty(json(401, ''));
    const unsent = [
      '/api/v2/nothing/',
      '/api/v2/subscription/checkout/purchase/',
      '/api/v2/payment/transaction/?page=x',
    ];
    const responses = responsesOf(await world.batch([...unsent, ...PATHS.slice(3)]));
    expect(sent(world)).toEqual([PATHS[3]]);
    expect(responses.map(({ status }) => status)).toEqual([404, 405, 400, ...PATHS.slice(3).map(() => 401)]);
  });

  test('takes a copy for a good answer', async () => {
    const gate = barrier();
    const world = await openTwenty(perCall(({ path }) => reply(hold(gate), json(200, { path }))));
    world.on(SUBSCRIPTION, json(200, '{}'));
    await world.get(SUBSCRIPTION);
    const pending = world.batch([SUBSCRIPTION, ...PATHS.slice(1)]);
    await world.upstream.waitForCalls(PATHS.length);
    gate.release();
    expect(responsesOf(await pending).map(({ status }) => status)).toEqual(PATHS.map(() => 200));
  });

  test('asks once for equal items that fail', async () => {
    const world = await openTwenty(json(404, { detail: 'Not found.' }));
    const responses = responsesOf(await world.batch([FIRST, FIRST.slice(0, -1), `${FIRST}?`, SECOND]));
    expect(sent(world)).toEqual([FIRST, SECOND]);
    expect(responses.map(({ body }) => body['instance'])).toEqual([FIRST, FIRST.slice(0, -1), FIRST, SECOND]);
  });

  test('sends nothing more when its time is up', async () => {
    const clock = manualClock();
    const world = await openTwenty(good, { REQUEST_TIMEOUT_MS: '1000' }, { clock });
    world.on(FIRST, hang());
    const pending = world.batch(PATHS);
    await world.upstream.waitForCalls(1);
    clock.advance(1000);
    expect(responsesOf(await pending).map(({ body }) => body['code'])).toEqual(PATHS.map(() => 'upstream_timeout'));
    world.on(SUBSCRIPTION, json(200, '{}'));
    await world.get(SUBSCRIPTION); // what was sent behind the answer's back would arrive before this
    expect(sent(world)).toEqual([FIRST, SUBSCRIPTION]);
    expect(world.gateway.lines.filter(({ route }) => route === '/bff/v1/batch')).toMatchObject([{ upstream_calls: 1 }]);
  });

  test('sends nothing more when its client has left', async () => {
    const world = await openTwenty();
    const gate = barrier();
    world.on(FIRST, reply(hold(gate), json(404, { detail: 'Not found.' })));
    const leaving = new AbortController();
    const pending = world.batch(PATHS, { signal: leaving.signal });
    const [first] = await world.upstream.waitForCalls(1);
    leaving.abort();
    await expect(pending).rejects.toThrow('aborted');
    await world.upstream.disconnected(first!);
    world.on(SUBSCRIPTION, json(200, '{}'));
    await world.get(SUBSCRIPTION);
    expect(sent(world)).toEqual([FIRST, SUBSCRIPTION]);
  });
});

test('a 403 of one item among those sent at once leaves the others as they are', async () => {
  const world = await openTwenty();
  world.on(SECOND, json(403, { detail: 'Not yours.' }));
  const responses = responsesOf(await world.batch(PATHS));
  expect(responses.map(({ status }) => status)).toEqual(PATHS.map((path) => (path === SECOND ? 403 : 200)));
  expect(world.upstream.calls).toHaveLength(PATHS.length);
});
