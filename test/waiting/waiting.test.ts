import { describe, expect, test, vi } from 'vitest';
import { limitOf } from '../limits/helpers.ts';
import { overviewTable } from '../overviews/helpers.ts';
import { byCookie, cookieIn, SESSION, signInWith } from '../sessions/helpers.ts';
import { type OperationId, operations } from '../support/account-api.ts';
import { manualClock, watchedClock } from '../support/clock.ts';
import { exampleInput } from '../support/examples.ts';
import type { CallOptions } from '../support/http.ts';
import { callOf, isCallTo } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';
import { cachedIds } from '../support/table.ts';
import { type Env, openWorld } from '../support/world.ts';
import { noMetrics } from '../../src/core/metrics.ts';
import { Waiting } from '../../src/gateway/waiting.ts';
import type { Store } from '../../src/store/store.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';

const SECONDS = 7;
/** Fresh for so many. Nothing else takes as long. */
const FRESH = 3;

const overviewPaths = overviewTable.map(([path]) => path);
/** All that can be waited for and is cached. */
const PATHS = [...overviewPaths, ...cachedIds.map((id) => exampleInput(id).path)];

interface Asking extends Partial<CallOptions> {
  /** In the place of the token. */
  readonly cookie?: string;
}

/** A gateway that knows nothing yet; whatever is read says what `mark` is then. */
async function open(env: Env = {}) {
  const clock = watchedClock();
  const world = await openWorld(env, { clock });
  const state = { mark: 1 };
  world.answerAll(() => state.mark);
  const get = (path: string, { cookie, ...options }: Asking = {}) =>
    world.call(
      cookie === undefined ? { path, token: world.token, ...options } : byCookie(cookie, { path, ...options }),
    );
  return { ...world, clock, state, get, buy: () => world.ask('purchasePlan', { token: world.token }) };
}

const isOfWait = (ms: number) => ms > 0 && (ms <= FRESH * 1000 || ms === SECONDS * 1000);

/** Reads, and asks for what is newer; comes back once that is waited for. */
async function waiting(world: Awaited<ReturnType<typeof open>>, path: string, options: Asking = {}, prefer = '') {
  const first = await world.get(path, { ...options, headers: { ...options.headers } });
  const before = world.clock.lengths.length;
  const headers = {
    ...options.headers,
    'If-None-Match': first.headers['etag'] ?? '',
    Prefer: `${prefer}wait=${SECONDS}`,
  };
  const answer = world.get(path, { ...options, headers });
  await vi.waitFor(() => expect(world.clock.lengths.slice(before).some(isOfWait)).toBe(true));
  return { first, answer };
}

const shortPolicy: Env = {
  CACHE_POLICY: JSON.stringify(
    Object.fromEntries(cachedIds.map((id) => [id, { fresh: FRESH, stale: 60, on_error: 600 }])),
  ),
};

describe.each(PATHS)('%s', (path) => {
  test('is answered as soon as a write of the account is over, and not for one of another', async () => {
    const world = await open();
    const { first, answer } = await waiting(world, path);
    world.state.mark = 2;
    await world.ask('purchasePlan', { token: secret() });
    await world.buy();
    const { status, headers, text } = await answer;
    expect([status, headers['preference-applied']]).toEqual([200, `wait=${SECONDS}`]);
    expect(headers['etag']).not.toBe(first.headers['etag']);
    expect(text).toContain('"x_mark":2');
  });

  test('is a 304 when the time is over, without another call', async () => {
    const world = await open();
    const { first, answer } = await waiting(world, path);
    const calls = world.upstream.calls.length;
    world.advance(SECONDS);
    const { status, headers } = await answer;
    expect([status, headers['preference-applied'], headers['etag']]).toEqual([
      304,
      `wait=${SECONDS}`,
      first.headers['etag'],
    ]);
    expect(world.upstream.calls).toHaveLength(calls);
  });

  test('is read again once it is not fresh any more, by one call for all that wait', async () => {
    const world = await open(shortPolicy);
    const first = await waiting(world, path);
    const calls = world.upstream.calls.length;
    const second = await waiting(world, path);
    expect(world.upstream.calls).toHaveLength(calls);
    world.state.mark = 2;
    world.advance(FRESH);
    const answers = [await first.answer, await second.answer];
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(answers[0]!.text).toBe(answers[1]!.text);
    expect(world.upstream.calls).toHaveLength(2 * calls);
  });

  test('goes on waiting while what is read is the same', async () => {
    const world = await open(shortPolicy);
    const { answer } = await waiting(world, path);
    const calls = world.upstream.calls.length;
    const before = world.clock.lengths.length;
    world.advance(FRESH);
    await vi.waitFor(() => expect(world.clock.lengths.slice(before).some(isOfWait)).toBe(true));
    expect(world.upstream.calls).toHaveLength(2 * calls);
    world.state.mark = 2;
    world.advance(FRESH);
    expect((await answer).status).toBe(200);
    expect(world.upstream.calls).toHaveLength(3 * calls);
  });

  test('is answered at once where the client has no copy, or another one', async () => {
    const world = await open();
    await world.get(path);
    const headers = { Prefer: `wait=${SECONDS}` };
    expect((await world.get(path, { headers })).headers).not.toHaveProperty('preference-applied');
    const other = await world.get(path, { headers: { ...headers, 'If-None-Match': '"other"' } });
    expect(other.status).toBe(200);
  });
});

test.each(overviewPaths)('%s says that its sections are old as soon as the upstream fails', async (path) => {
  const world = await open(shortPolicy);
  const { answer } = await waiting(world, path);
  world.upstream.on(() => true, json(500));
  world.advance(FRESH);
  const { status, json: body } = await answer;
  expect(status).toBe(200);
  const { sections } = (body as { meta: { sections: Record<string, object> } }).meta;
  for (const section of Object.values(sections))
    expect(section).toMatchObject({ state: 'stale', code: 'upstream_bad_response' });
});

test('with changed sections only those come that are new', async () => {
  const world = await open();
  const [path] = overviewPaths as [string];
  const { answer } = await waiting(world, path, {}, 'changed-sections, ');
  world.upstream.on(isCallTo('getSubscription'), json(200, '{"payment_method":null}'));
  await world.buy();
  const { status, headers, json: body } = await answer;
  expect([status, headers['preference-applied']]).toEqual([200, `changed-sections, wait=${SECONDS}`]);
  expect(body).toMatchObject({ data: { subscription: { payment_method: null }, payment_method: null } });
  expect((body as { meta: { unchanged: string[] } }).meta.unchanged).toEqual(['notifications', 'referral_config']);
});

const POLLED: OperationId = 'getPendingPayment';

test('a pending payment is asked for every two seconds, for all that wait', async () => {
  const world = await open();
  const { path } = exampleInput(POLLED);
  const first = await waiting(world, path);
  const second = await waiting(world, path);
  const calls = world.upstream.calls.length;
  for (const count of [1, 2]) {
    const before = world.clock.lengths.length;
    world.advance(2);
    await vi.waitFor(() => expect(world.clock.lengths.slice(before).filter(isOfWait)).toHaveLength(2));
    expect(world.upstream.callsTo(callOf(POLLED))).toHaveLength(calls + count);
  }
  world.state.mark = 2;
  world.advance(2);
  const answers = [await first.answer, await second.answer];
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(answers[0]!.headers['cache-control']).toBe('no-store');
});

test('while nobody knows how a write ended, it is read every two seconds', async () => {
  const world = await open();
  const { path } = exampleInput('getSubscription');
  const { answer } = await waiting(world, path);
  world.upstream.on(callOf('purchasePlan'), json(500));
  expect((await world.buy()).json).toMatchObject({ outcome: 'unknown' });
  const calls = () => world.upstream.callsTo(callOf('getSubscription')).length;
  const before = world.clock.lengths.length;
  world.advance(2);
  await vi.waitFor(() => expect(world.clock.lengths.slice(before).some(isOfWait)).toBe(true));
  expect(calls()).toBe(2);
  world.state.mark = 2;
  world.advance(2);
  expect((await answer).status).toBe(200);
  expect(calls()).toBe(3);
});

test('four requests of an account wait; a fifth gets its 304 at once, and one of another account waits', async () => {
  const world = await open();
  const [path] = overviewPaths as [string];
  const waits = [];
  for (let count = 0; count < 4; count++) waits.push(await waiting(world, path));
  const { etag = '' } = waits[0]!.first.headers;
  const headers = { 'If-None-Match': etag, Prefer: 'wait=30' };
  const fifth = await world.get(path, { headers });
  expect([fifth.status, fifth.headers['preference-applied']]).toEqual([304, undefined]);
  const other = await waiting(world, path, { token: secret() });
  world.advance(SECONDS);
  for (const { answer } of [...waits, other]) expect((await answer).headers['preference-applied']).toBeDefined();
  expect((await world.get(path, { headers: { ...headers, Prefer: 'wait=0' } })).status).toBe(304);
});

test('of an instance 5,000 wait', () => {
  const store = new MemoryStore({ maxBytes: 1_000 });
  const waits = new Waiting({ store, clock: watchedClock(), metrics: noMetrics });
  const begun = Array.from({ length: 5_000 }, (_, at) => waits.begin(`account ${at}`));
  expect(begun.every((wait) => wait.takePlace())).toBe(true);
  const another = waits.begin('another');
  expect(another.takePlace()).toBe(false);
  begun[0]?.end();
  expect(another.takePlace()).toBe(true);
});

test('a request takes no place while its first answer is on its way', async () => {
  const world = await open();
  const [path] = overviewPaths as [string];
  await world.get(path);
  const gate = barrier();
  world.upstream.on(() => true, reply(hold(gate), json(200, '{}')));
  const headers = { 'If-None-Match': '"old"', Prefer: 'wait=30' };
  const { path: other } = exampleInput('getSubscription');
  const reading = [1, 2, 3, 4].map((count) => world.get(`${other}?count=${count}`, { headers }));
  await gate.count(4);
  const { answer } = await waiting(world, path);
  gate.release();
  for (const { status } of await Promise.all(reading)) expect(status).toBe(200);
  world.advance(SECONDS);
  expect((await answer).headers['preference-applied']).toBe(`wait=${SECONDS}`);
});

test('where all may have changed, all are woken within a second, and not all at once', async () => {
  const told = vi.fn<Store['onChange']>();
  const store = { onChange: told, hears: () => true, snapshot: () => expect.fail('nobody asks') };
  const clock = manualClock();
  const waits = new Waiting({ store, clock, metrics: noMetrics, wakesOthers: true });
  const woken: number[] = [];
  for (let at = 0; at < 100; at++)
    void waits
      .begin(`account ${at}`)
      .next(Infinity)
      .then(() => woken.push(clock.now()));
  const from = clock.now();
  told.mock.calls[0]![0]();
  for (let step = 0; step < 10; step++) {
    clock.advance(100);
    await new Promise(setImmediate);
  }
  expect(woken).toHaveLength(100);
  expect(woken.filter((at) => at <= from + 500).length).toBeGreaterThan(20);
  expect(woken.filter((at) => at > from + 500).length).toBeGreaterThan(20);
});

test('a change does not hide that the client has left or that the process ends', async () => {
  const store = new MemoryStore({ maxBytes: 1_000 });
  const waits = new Waiting({ store, clock: watchedClock(), metrics: noMetrics });
  for (const end of ['left', 'over'] as const) {
    const between = waits.begin('a');
    between.wake(end);
    between.wake('changed');
    expect([await between.next(Infinity), await between.next(Infinity)]).toEqual([end, end]);
    const during = waits.begin('a');
    const next = during.next(Infinity);
    during.wake('changed');
    during.wake(end);
    expect(await next).toBe(end);
  }
});

test('one whose client has left takes no place', async () => {
  const world = await open();
  const [path] = overviewPaths as [string];
  for (let count = 0; count < 5; count++) {
    const leaving = new AbortController();
    const { answer } = await waiting(world, path, { signal: leaving.signal });
    leaving.abort();
    await expect(answer).rejects.toThrow();
    await vi.waitFor(() =>
      expect(world.gateway.lines.filter(({ code }) => code === 'client_left')).toHaveLength(count + 1),
    );
  }
});

test.each([
  ['wait=99', 30],
  ['wait=99999999999', 30],
  ['wait="7"', 7],
  ['respond-async, WAIT = 7', 7],
  ['other="a, wait=3"; wait=4, wait=7; wait=5, wait=6', 7],
])('%s is %i seconds', async (prefer, seconds) => {
  const world = await open();
  const { path } = exampleInput('getSubscription');
  const { etag = '' } = (await world.get(path)).headers;
  const answer = world.get(path, { headers: { 'If-None-Match': etag, Prefer: prefer } });
  await world.clock.waits((ms) => ms === seconds * 1000);
  world.advance(seconds);
  expect((await answer).headers['preference-applied']).toBe(`wait=${seconds}`);
});

test.each(['wait=0', 'wait=-1', 'wait=soon', 'wait', 'wait=1e3', 'other; wait=7', 'other="a, wait=7"'])(
  '%s is no wait',
  async (prefer) => {
    const world = await open();
    const { path } = exampleInput('getSubscription');
    const { etag = '' } = (await world.get(path)).headers;
    const { status, headers } = await world.get(path, { headers: { 'If-None-Match': etag, Prefer: prefer } });
    expect([status, headers['preference-applied']]).toEqual([304, undefined]);
  },
);

test('a wait is one request in the limit, and no slow one in the log; `REQUEST_TIMEOUT_MS` does not end it', async () => {
  const env = {
    ...shortPolicy,
    RATE_LIMIT_PER_MINUTE: '9',
    REQUEST_TIMEOUT_MS: '1000',
    UPSTREAM_TIMEOUT_MS: '1000',
    SLOW_MS: '1000',
  };
  const world = await open(env);
  const [path] = overviewPaths as [string];
  const { first, answer } = await waiting(world, path);
  const before = world.clock.lengths.length;
  world.advance(FRESH);
  await vi.waitFor(() => expect(world.clock.lengths.slice(before).some((ms) => ms > 1000)).toBe(true));
  world.state.mark = 2;
  world.advance(FRESH);
  const last = await answer;
  expect([last.status, limitOf(first)?.[2], limitOf(last)?.[2]]).toEqual([200, 8, 7]);
  const line = world.gateway.lines.filter(({ route }) => route === path).at(-1);
  expect(line).toMatchObject({ waited_ms: 2 * FRESH * 1000, status: 200 });
  expect(line).not.toHaveProperty('legs');
});

test.each(PATHS)('%s is refused where the key is refused meanwhile', async (path) => {
  const world = await open(shortPolicy);
  const { answer } = await waiting(world, path);
  world.upstream.on(() => true, json(401));
  world.advance(FRESH);
  expect((await answer).status).toBe(401);
});

test.each(['', '?everywhere=true'])('a session that is signed out%s gets a 401 at once', async (query) => {
  const world = await open({ SESSIONS: 'true', SECRETS: secret() + secret() });
  const cookie = cookieIn(await world.call(signInWith(world.token)));
  const { path } = exampleInput('getSubscription');
  const { answer } = await waiting(world, path, { cookie });
  await world.call(byCookie(cookie, { path: `${SESSION}${query}`, method: 'DELETE' }));
  expect((await answer).status).toBe(401);
});

test('a session that expires meanwhile gets a 401', async () => {
  const world = await open({ SESSIONS: 'true', SECRETS: secret() + secret() });
  const cookie = cookieIn(await world.call(signInWith(world.token)));
  world.advance(7 * 86_400 - 5);
  const { answer } = await waiting(world, exampleInput('getSubscription').path, { cookie });
  world.advance(SECONDS);
  expect((await answer).status).toBe(401);
});

test('the end of the process ends waits with their 304, and nobody begins to wait', async () => {
  const world = await open();
  const [path] = overviewPaths as [string];
  const { first, answer } = await waiting(world, path);
  world.gateway.endWaits();
  const { status, headers } = await answer;
  expect([status, headers['preference-applied']]).toEqual([304, `wait=${SECONDS}`]);
  const late = await world.get(path, { headers: { 'If-None-Match': first.headers['etag'] ?? '', Prefer: 'wait=30' } });
  expect([late.status, late.headers['preference-applied']]).toEqual([304, undefined]);
});

test('only what is cached, and a pending payment, can be waited for', async () => {
  const world = await open();
  for (const [id, row] of Object.entries(operations)) {
    if (row.method !== 'GET' || cachedIds.includes(id as OperationId) || id === POLLED) continue;
    const { path } = exampleInput(id as OperationId);
    const headers = { 'If-None-Match': '*', Prefer: 'wait=30' };
    expect((await world.get(path, { headers })).status, id).toBe(200);
  }
});
