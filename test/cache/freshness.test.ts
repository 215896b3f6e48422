import { describe, expect, test } from 'vitest';
import { cacheStatusOf, hit, MISS, NO_CACHE, NO_STORE, seen } from './helpers.ts';
import { operations } from '../support/account-api.ts';
import { bodyOf, callOf } from '../support/marked.ts';
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
import { cachedIds, uncachedIds, writeIds, policyOf } from '../support/table.ts';
import { openWorld } from '../support/world.ts';

describe.each(cachedIds)('%s', (id) => {
  const { fresh, stale, onError } = policyOf(id);

  test('is stored, a hit while it is fresh, then stale with one refresh behind it', async () => {
    const { upstream, store, ask, advance } = await openWorld();
    const gate = barrier();
    upstream.on(callOf(id), json(200, bodyOf(id, 1)), reply(hold(gate), json(200, bodyOf(id, 2))));
    const first = await ask(id);
    expect(seen(first)).toEqual([200, MISS, 1]);
    expect(first.headers).toMatchObject({ age: '0', 'cache-control': 'private, no-cache' });
    expect(first.headers['vary']).toMatch(/^Authorization\b/);

    advance(fresh - 3);
    const again = await ask(id);
    expect(seen(again)).toEqual([200, hit(3), 1]);
    expect(again.headers).toMatchObject({ age: String(fresh - 3), etag: first.headers['etag'] });
    expect(again.text).toBe(first.text);
    expect(upstream.calls).toHaveLength(1);

    advance(7);
    // The refresh is held, so none of these waited for it; and they share it.
    for (let i = 0; i < 3; i += 1) expect(seen(await ask(id))).toEqual([200, hit(-4), 1]);
    await gate.reached;
    expect(upstream.calls).toHaveLength(2);
    const refreshed = store.saves.next();
    gate.release();
    await refreshed;
    const renewed = await ask(id);
    expect(seen(renewed)).toEqual([200, hit(fresh), 2]);
    expect(renewed.headers['etag']).not.toBe(first.headers['etag']);
    expect(upstream.calls).toHaveLength(2);
  });

  test('is stale at the very moment that its freshness ends', async () => {
    const { upstream, store, ask, advance } = await openWorld();
    upstream.on(callOf(id), json(200, bodyOf(id, 1)), json(200, bodyOf(id, 2)));
    await ask(id);
    advance(fresh - 0.001);
    expect(seen(await ask(id))).toEqual([200, hit(0), 1]);
    expect(upstream.calls).toHaveLength(1);
    advance(0.001);
    const refreshed = store.saves.next();
    expect(seen(await ask(id))).toEqual([200, hit(-1), 1]);
    await refreshed;
    expect(seen(await ask(id))).toEqual([200, hit(fresh), 2]);
  });

  test('is fetched again once it is too old to be stale', async () => {
    const { upstream, ask, advance } = await openWorld();
    upstream.on(callOf(id), json(200, bodyOf(id, 1)), json(200, bodyOf(id, 2)));
    await ask(id);
    advance(fresh + stale);
    expect(seen(await ask(id))).toEqual([200, 'portico; fwd=stale; stored', 2]);
  });

  test('stands in for a failure until it is too old for that as well', async () => {
    const { upstream, ask, advance } = await openWorld();
    upstream.on(callOf(id), json(200, bodyOf(id, 1)), json(503));
    await ask(id);
    advance(fresh + stale);
    const old = await ask(id);
    expect(seen(old)).toEqual([200, hit(-stale), 1]);
    expect(old.headers['age']).toBe(String(fresh + stale));
    advance(onError - stale - 1);
    expect(seen(await ask(id))).toEqual([200, hit(1 - onError), 1]);
    advance(1);
    const expired = await ask(id);
    expect(expired).toMatchObject({ status: 503, json: { code: 'upstream_unavailable' } });
    expect(expired.headers['cache-control']).toBe('no-store');
  });

  test('comes fresh and is stored for who says no-cache, and is not kept at all for who says no-store', async () => {
    const { upstream, ask } = await openWorld();
    upstream.on(callOf(id), ...[1, 2, 3, 4].map((mark) => json(200, bodyOf(id, mark))));
    const unkept = await ask(id, { headers: NO_STORE });
    expect(seen(unkept)).toEqual([200, 'portico; fwd=request', 1]);
    expect(unkept.headers['cache-control']).toBe('no-store');
    expect(seen(await ask(id))).toEqual([200, MISS, 2]);
    expect(seen(await ask(id, { headers: NO_STORE }))).toEqual([200, 'portico; fwd=request', 3]);
    expect(seen(await ask(id))).toEqual([200, hit(policyOf(id).fresh), 2]);
    expect(seen(await ask(id, { headers: NO_CACHE }))).toEqual([200, 'portico; fwd=request; stored', 4]);
    expect(seen(await ask(id))).toEqual([200, hit(policyOf(id).fresh), 4]);
  });
});

test.each(uncachedIds)('%s is never cached', async (id) => {
  const { upstream, ask } = await openWorld();
  upstream.on(callOf(id), json(200, bodyOf(id, 1), { ETag: '"up"' }), json(200, bodyOf(id, 2)), json(500));
  for (const mark of [1, 2]) {
    const answer = await ask(id);
    expect(seen(answer)).toEqual([200, 'portico; fwd=bypass', mark]);
    expect(answer.headers['cache-control']).toBe('no-store');
    expect('etag' in answer.headers).toBe('polled' in operations[id]);
    expect(answer.headers).not.toHaveProperty('age');
  }
  expect(await ask(id)).toMatchObject({ status: 502 });
  expect(upstream.calls[1]?.headers).not.toHaveProperty('if-none-match');
});

test.each(writeIds)('%s is never cached', async (id) => {
  const { upstream, ask, answerAll } = await openWorld();
  answerAll(() => upstream.calls.length);
  for (const calls of [1, 2]) {
    const answer = await ask(id);
    expect(answer.status).toBeLessThan(300);
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'cache-status': 'portico; fwd=method' });
    expect(answer.headers).not.toHaveProperty('etag');
    expect(upstream.calls).toHaveLength(calls);
  }
});

const html = httpResponse(200, '<html>back soon</html>', { 'Content-Type': 'text/html' });
const whole = httpResponse(200, bodyOf('getSubscription', 2));

const FAILURES: readonly (readonly [string, Step, number])[] = [
  ['500', json(500, '"oops"'), 502],
  ['502 with HTML', bytes(httpResponse(502, '<html>', { 'Content-Type': 'text/html' })), 502],
  ['503', json(503), 503],
  ['504', json(504), 504],
  ['429', json(429, '', { 'Retry-After': '7' }), 429],
  ['a redirect', json(302, '', { Location: 'http://elsewhere.example/' }), 502],
  ['a reset', reset(), 502],
  ['half an answer', reply(bytes(whole.subarray(0, -5)), close()), 502],
  ['an HTML page with 200', bytes(html), 502],
  ['nothing with 200', json(200, ''), 502],
  ['a 304 that nobody asked for', bytes(httpResponse(304, '')), 502],
];

describe.each(FAILURES)('on %s', (_, failure, status) => {
  test('an older copy is answered, and it stays', async () => {
    const { upstream, ask, advance } = await openWorld();
    upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)), failure);
    await ask('getSubscription');
    advance(331);
    expect(seen(await ask('getSubscription'))).toEqual([200, hit(-301), 1]);
    expect(seen(await ask('getSubscription'))).toEqual([200, hit(-301), 1]);
  });

  test('who says no-cache gets the error and not the older copy', async () => {
    const { upstream, ask } = await openWorld();
    upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)), failure);
    await ask('getSubscription');
    expect(await ask('getSubscription', { headers: NO_CACHE })).toMatchObject({ status });
    expect(seen(await ask('getSubscription'))).toEqual([200, hit(30), 1]);
  });

  test('who has nothing to fall back on gets the error, and nothing is stored', async () => {
    const { upstream, ask } = await openWorld();
    upstream.on(callOf('getSubscription'), failure);
    const answer = await ask('getSubscription');
    expect(answer.status).toBe(status);
    expect(answer.headers['cache-control']).toBe('no-store');
    upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 2)));
    if (status !== 429) expect(seen(await ask('getSubscription'))).toEqual([200, MISS, 2]);
  });
});

test('an upstream that hangs is a failure too, at its deadline', async () => {
  const { upstream, ask, advance } = await openWorld({ UPSTREAM_TIMEOUT_MS: '5000', REQUEST_TIMEOUT_MS: '5000' });
  upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)), hang());
  await ask('getSubscription');
  advance(330);
  const waiting = ask('getSubscription');
  const [, held] = await upstream.waitForCalls(2);
  advance(5);
  expect(seen(await waiting)).toEqual([200, hit(-305), 1]);
  if (held) await upstream.disconnected(held);
});

const UNSTORED: readonly (readonly [string, Step])[] = [
  ['201', json(201, bodyOf('getSubscription', 1))],
  ['203', json(203, bodyOf('getSubscription', 1))],
  ['204', json(204)],
  ['206', json(206, bodyOf('getSubscription', 1))],
];

test.each(UNSTORED)('%s goes through and is not stored', async (status, step) => {
  const { upstream, ask } = await openWorld();
  upstream.on(callOf('getSubscription'), step, json(200, bodyOf('getSubscription', 2)));
  const answer = await ask('getSubscription');
  expect(answer.status).toBe(Number(status));
  expect(answer.headers['cache-control']).toBe('no-store');
  expect(answer.headers).not.toHaveProperty('etag');
  expect(seen(await ask('getSubscription'))).toEqual([200, MISS, 2]);
});

test.each([404, 410, 400])('a %i for a cached thing forgets it, and only it', async (status) => {
  const { upstream, ask, advance, store } = await openWorld();
  upstream.on(callOf('getTransaction'), json(200, bodyOf('getTransaction', 1)), json(status), json(503));
  upstream.on(callOf('listTransactions'), json(200, bodyOf('listTransactions', 1)));
  await ask('listTransactions');
  await ask('getTransaction');
  advance(31);
  const dropped = store.drops.next();
  expect(seen(await ask('getTransaction'))).toEqual([200, hit(-1), 1]);
  await dropped;
  expect(await ask('getTransaction')).toMatchObject({ status: 503 });
  expect(cacheStatusOf(await ask('listTransactions'))).toBe(hit(-1));
  await upstream.waitForCalls(2, callOf('listTransactions'));
});

test('a read that is refused before it is sent leaves nothing behind', async () => {
  const { upstream, ask, store } = await openWorld();
  upstream.on(callOf('getSubuser'), json(200, bodyOf('getSubuser', 1)));
  await ask('getSubuser');
  const path = '/api/v2/subuser/12345/?plan_id=x';
  for (let i = 0; i < 2; i += 1) expect(await ask('getSubuser', { path })).toMatchObject({ status: 400 });
  // Each would be one more thing to remember, of keys as long as a client likes.
  expect([store.drops.total, store.refusals.total, store.saves.total]).toEqual([0, 0, 1]);
  expect(seen(await ask('getSubuser'))).toEqual([200, hit(10), 1]);
  expect(upstream.calls).toHaveLength(1);
});
