import { describe, expect, test, vi } from 'vitest';
import { noMetrics } from '../../src/core/metrics.ts';
import { Waiting } from '../../src/gateway/waiting.ts';
import { limitOf } from '../limits/helpers.ts';
import { byCookie, cookieIn, SESSION, signInWith } from '../sessions/helpers.ts';
import { type OperationId, operations } from '../support/account-api.ts';
import { watchedClock } from '../support/clock.ts';
import { exampleInput } from '../support/examples.ts';
import type { CallOptions } from '../support/http.ts';
import { isCallTo } from '../support/marked.ts';
import { barrier, hang, hold, json, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { cachedIds } from '../support/table.ts';
import { type Env, openWorld } from '../support/world.ts';

const SECONDS = 6;
/** Between two readings. */
const PAUSE = 2;
const APPLIED = `wait=${SECONDS}`;

const OVERVIEW = '/bff/v1/account-overview';
const POLLED: OperationId = 'getPendingPayment';
const [SUBSCRIPTION, PAYMENT] = [exampleInput('getSubscription').path, exampleInput(POLLED).path];
const PATHS = [OVERVIEW, SUBSCRIPTION, PAYMENT];

/** Copies are fresh when they are read for the first time while a request waits, and then not any more. */
const shortPolicy = (stale: number): Env => ({
  CACHE_POLICY: JSON.stringify(Object.fromEntries(cachedIds.map((id) => [id, { fresh: 3, stale, on_error: 600 }]))),
});

const isPause = (ms: number) => ms === PAUSE * 1000;

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
  /** Resolves when so many requests more wait for the next reading. */
  const paused = async (act: () => unknown, times = 1) => {
    const before = clock.lengths.filter(isPause).length;
    act();
    await clock.waits(isPause, before + times);
  };
  /** Reads, and asks for what is newer; comes back once that is waited for. */
  const wait = async (path: string, { headers, ...options }: Asking = {}, prefer = '') => {
    const first = await get(path, options);
    const asked = { 'If-None-Match': first.headers['etag'] ?? '', Prefer: prefer + APPLIED, ...headers };
    let answer: ReturnType<typeof get> | undefined;
    await paused(() => (answer = get(path, { ...options, headers: asked })));
    return { first, answer: answer! };
  };
  return {
    ...world,
    state,
    get,
    wait,
    /** Lets all that wait read once more, and wait on. */
    pass: (times = 1) => paused(() => world.advance(PAUSE), times),
    buy: (token = world.token) => world.ask('purchasePlan', { token }),
  };
}

describe.each(PATHS)('%s', (path) => {
  test('is answered as soon as a write of the account is over, and not for one of another', async () => {
    const world = await open();
    const { first, answer } = await world.wait(path);
    world.state.mark = 2;
    const calls = world.upstream.calls.length;
    await world.buy(secret());
    expect(world.upstream.calls).toHaveLength(calls + 1);
    await world.buy();
    const { status, headers, text } = await answer;
    expect([status, headers['preference-applied']]).toEqual([200, APPLIED]);
    expect(headers['etag']).not.toBe(first.headers['etag']);
    expect(text).toContain('"x_mark":2');
  });

  test('is read again every 2 s, and is a 304 when the time is over', async () => {
    const world = await open();
    const { first, answer } = await world.wait(path);
    await world.pass();
    await world.pass();
    world.advance(PAUSE);
    const { status, headers } = await answer;
    expect([status, headers['preference-applied'], headers['etag']]).toEqual([304, APPLIED, first.headers['etag']]);
    if (path === PAYMENT) expect(world.upstream.calls).toHaveLength(5);
    else expect(new Set(world.upstream.calls.map(({ target }) => target)).size).toBe(world.upstream.calls.length);
  });

  test('is answered when it differs at the upstream', async () => {
    const world = await open(shortPolicy(0));
    const { answer } = await world.wait(path);
    await world.pass();
    world.state.mark = 2;
    world.advance(PAUSE);
    expect((await answer).text).toContain('"x_mark":2');
  });

  test('is refused where the key is refused meanwhile', async () => {
    const world = await open(shortPolicy(0));
    const { answer } = await world.wait(path);
    await world.pass();
    world.upstream.on(() => true, json(401));
    world.advance(PAUSE);
    expect((await answer).status).toBe(401);
  });

  test('is answered at once where the client has no copy, or another one', async () => {
    const world = await open();
    const headers = { Prefer: APPLIED };
    expect((await world.get(path, { headers })).headers).not.toHaveProperty('preference-applied');
    const other = await world.get(path, { headers: { ...headers, 'If-None-Match': '"other"' } });
    expect(other.status).toBe(200);
  });
});

test('an old copy is read anew behind the reading, which the next one sees', async () => {
  const world = await open(shortPolicy(60));
  const { answer } = await world.wait(SUBSCRIPTION);
  await world.pass();
  world.state.mark = 2;
  const saved = world.store.saves.next();
  await world.pass();
  await saved;
  world.advance(PAUSE);
  expect((await answer).text).toContain('"x_mark":2');
});

test('an overview says that its sections are old as soon as the upstream fails', async () => {
  const world = await open(shortPolicy(0));
  const { answer } = await world.wait(OVERVIEW);
  await world.pass();
  world.upstream.on(() => true, json(500));
  world.advance(PAUSE);
  const { status, json: body } = await answer;
  expect(status).toBe(200);
  const { sections } = (body as { meta: { sections: Record<string, object> } }).meta;
  for (const section of Object.values(sections))
    expect(section).toMatchObject({ state: 'stale', code: 'upstream_bad_response' });
});

test('with changed sections only those come that are new', async () => {
  const world = await open();
  const { answer } = await world.wait(OVERVIEW, {}, 'changed-sections, ');
  world.upstream.on(isCallTo('getSubscription'), json(200, '{"payment_method":null}'));
  await world.buy();
  const { status, headers, json: body } = await answer;
  expect([status, headers['preference-applied']]).toEqual([200, `changed-sections, ${APPLIED}`]);
  expect(body).toMatchObject({ data: { subscription: { payment_method: null }, payment_method: null } });
  expect((body as { meta: { unchanged: string[] } }).meta.unchanged).toEqual(['notifications', 'referral_config']);
});

test('a new copy that the client wants is the first, and then it is read through the cache', async () => {
  const world = await open();
  const { answer } = await world.wait(SUBSCRIPTION, { headers: { 'Cache-Control': 'no-cache' } });
  await world.pass();
  await world.pass();
  world.advance(PAUSE);
  expect((await answer).status).toBe(304);
  expect(world.upstream.calls).toHaveLength(2);
});

test('four requests of an account wait; a fifth gets its 304 at once, and one of another account waits', async () => {
  const world = await open();
  const waits = [];
  for (let count = 0; count < 4; count++) waits.push(await world.wait(OVERVIEW));
  const headers = { 'If-None-Match': waits[0]!.first.headers['etag'] ?? '', Prefer: APPLIED };
  const fifth = await world.get(OVERVIEW, { headers });
  expect([fifth.status, fifth.headers['preference-applied']]).toEqual([304, undefined]);
  waits.push(await world.wait(OVERVIEW, { token: secret() }));
  await world.pass(5);
  await world.pass(5);
  world.advance(PAUSE);
  for (const { answer } of waits) expect((await answer).headers['preference-applied']).toBe(APPLIED);
});

test('of an instance 5,000 wait', () => {
  const waiting = new Waiting({ clock: watchedClock(), metrics: noMetrics });
  const waits = Array.from({ length: 5_000 }, (_, at) => ({ account: `a${at}`, wait: waiting.begin(`a${at}`) }));
  expect(waits.every(({ account, wait }) => waiting.takePlace(account, wait))).toBe(true);
  const another = waiting.begin('another');
  expect(waiting.takePlace('another', another)).toBe(false);
  waiting.end('a0', waits[0]!.wait);
  expect(waiting.takePlace('another', another)).toBe(true);
});

test('a write that is over during a reading ends the pause after it at once', async () => {
  const clock = watchedClock();
  const waiting = new Waiting({ clock, metrics: noMetrics });
  const wait = waiting.begin('a');
  waiting.wake('a');
  await wait.pause(clock, Infinity);
  expect(clock.lengths).toEqual([]);
});

test('a request takes no place while its first answer is on its way', async () => {
  const world = await open();
  await world.get(OVERVIEW);
  const gate = barrier();
  world.upstream.on(() => true, reply(hold(gate), json(200, '{}')));
  const headers = { 'If-None-Match': '"old"', Prefer: APPLIED };
  const reading = [1, 2, 3, 4].map((count) => world.get(`${SUBSCRIPTION}?count=${count}`, { headers }));
  await gate.count(4);
  const leaving = new AbortController();
  const { answer } = await world.wait(OVERVIEW, { signal: leaving.signal });
  gate.release();
  for (const { status } of await Promise.all(reading)) expect(status).toBe(200);
  leaving.abort();
  await expect(answer).rejects.toThrow();
});

test('one whose client has left takes no place', async () => {
  const world = await open();
  for (let count = 0; count < 5; count++) {
    const leaving = new AbortController();
    const { answer } = await world.wait(OVERVIEW, { signal: leaving.signal });
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
  ['wait="6"', 6],
  ['respond-async, WAIT = 6', 6],
  ['other="a, wait=3"; wait=4, wait=6; wait=5, wait=7', 6],
])('%s is %i seconds', async (prefer, seconds) => {
  const world = await open();
  const { answer } = await world.wait(SUBSCRIPTION, { headers: { Prefer: prefer } });
  for (let left = seconds - PAUSE; left > 0; left -= PAUSE) await world.pass();
  world.advance(PAUSE);
  const { status, headers } = await answer;
  expect([status, headers['preference-applied']]).toEqual([304, `wait=${seconds}`]);
});

test.each(['wait=0', 'wait=-1', 'wait=soon', 'wait', 'wait=1e3', 'other; wait=7', 'other="a, wait=7"'])(
  '%s is no wait',
  async (prefer) => {
    const world = await open();
    const { etag = '' } = (await world.get(SUBSCRIPTION)).headers;
    const { status, headers } = await world.get(SUBSCRIPTION, { headers: { 'If-None-Match': etag, Prefer: prefer } });
    expect([status, headers['preference-applied']]).toEqual([304, undefined]);
  },
);

test('a wait is one request in the limit, and no slow one in the log; `REQUEST_TIMEOUT_MS` does not end it', async () => {
  const times = { REQUEST_TIMEOUT_MS: '1000', UPSTREAM_TIMEOUT_MS: '1000', SLOW_MS: '1000' };
  const world = await open({ ...shortPolicy(0), ...times, RATE_LIMIT_PER_MINUTE: '9' });
  const { first, answer } = await world.wait(OVERVIEW);
  await world.pass();
  await world.pass();
  world.advance(PAUSE);
  const last = await answer;
  expect([last.status, limitOf(first)?.[2], limitOf(last)?.[2]]).toEqual([304, 8, 7]);
  const line = world.gateway.lines.filter(({ route }) => route === OVERVIEW).at(-1);
  expect(line).toMatchObject({ duration_ms: SECONDS * 1000, status: 304 });
  expect(line).not.toHaveProperty('legs');
});

test('a reading has the time of a request, and the wait may be over before that', async () => {
  const world = await open(shortPolicy(0));
  const { answer } = await world.wait(SUBSCRIPTION);
  await world.pass();
  world.upstream.on(() => true, hang());
  world.advance(PAUSE);
  await world.upstream.waitForCalls(2);
  world.advance(10);
  const { status, headers } = await answer;
  expect([status, headers['preference-applied']]).toEqual([304, APPLIED]); // by the older copy
});

test.each(['', '?everywhere=true'])('a session that is signed out%s gets a 401', async (query) => {
  const world = await open({ SESSIONS: 'true', SECRETS: secret() + secret() });
  const cookie = cookieIn(await world.call(signInWith(world.token)));
  const { answer } = await world.wait(SUBSCRIPTION, { cookie });
  await world.call(byCookie(cookie, { path: `${SESSION}${query}`, method: 'DELETE' }));
  world.advance(PAUSE);
  expect((await answer).status).toBe(401);
});

test('a session that expires meanwhile gets a 401', async () => {
  const world = await open({ SESSIONS: 'true', SECRETS: secret() + secret() });
  const cookie = cookieIn(await world.call(signInWith(world.token)));
  world.advance(7 * 86_400 - 1);
  const { answer } = await world.wait(SUBSCRIPTION, { cookie });
  world.advance(PAUSE);
  expect((await answer).status).toBe(401);
});

test('the end of the process ends waits with their 304, and nobody begins to wait', async () => {
  const world = await open();
  const { first, answer } = await world.wait(PAYMENT);
  const calls = world.upstream.calls.length;
  world.gateway.endWaits();
  const { status, headers } = await answer;
  expect([status, headers['preference-applied']]).toEqual([304, APPLIED]);
  expect(world.upstream.calls).toHaveLength(calls);
  const late = await world.get(PAYMENT, { headers: { 'If-None-Match': first.headers['etag'] ?? '', Prefer: APPLIED } });
  expect([late.status, late.headers['preference-applied']]).toEqual([304, undefined]);
});

test('only what is cached, and a pending payment, can be waited for', async () => {
  const world = await open();
  for (const [id, row] of Object.entries(operations)) {
    if (row.method !== 'GET' || cachedIds.includes(id as OperationId) || id === POLLED) continue;
    const { path } = exampleInput(id as OperationId);
    const headers = { 'If-None-Match': '*', Prefer: APPLIED };
    expect((await world.get(path, { headers })).status, id).toBe(200);
  }
});
