import { describe, expect, test } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { hit, MISS, NO_CACHE, NO_STORE, seen } from './helpers.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { barrier, bytes, hold, httpResponse, json, reply, type Step } from '../support/scripted-upstream.ts';
import { cachedIds, uncachedIds } from '../support/table.ts';
import { openWorld } from '../support/world.ts';

const UP = '"upstream-1"';
const WEAK = 'W/"upstream-2"';
const DATE = 'Tue, 09 Jun 2026 11:50:08 GMT';
const ID: OperationId = 'getSubscription';

const notModified = (headers: Readonly<Record<string, string>> = {}): Step => bytes(httpResponse(304, '', headers));

const conditions = (headers: Readonly<Record<string, unknown>>) => ({
  etag: headers['if-none-match'],
  date: headers['if-modified-since'],
});

const NONE = { etag: undefined, date: undefined };

const VALIDATORS: readonly (readonly [string, Record<string, string>, ReturnType<typeof conditions>])[] = [
  ['an ETag', { ETag: UP }, { ...NONE, etag: UP }],
  ['a weak ETag', { ETag: WEAK }, { ...NONE, etag: WEAK }],
  ['a Last-Modified', { 'Last-Modified': DATE }, { ...NONE, date: DATE }],
  ['both', { ETag: UP, 'Last-Modified': DATE }, { etag: UP, date: DATE }],
  ['neither', {}, NONE],
];

describe.each(VALIDATORS)('an upstream that sends %s', (_, headers, expected) => {
  test('is asked with it when a copy is refreshed', async () => {
    const { upstream, ask, advance, store } = await openWorld();
    upstream.on(callOf(ID), json(200, bodyOf(ID, 1), headers), json(200, bodyOf(ID, 2), { ETag: '"upstream-3"' }));
    await ask(ID);
    advance(31);
    const refreshed = store.saves.next();
    await ask(ID);
    await refreshed;
    expect(upstream.calls.map((call) => conditions(call.headers))).toEqual([NONE, expected]);
    expect(seen(await ask(ID))).toEqual([200, hit(30), 2]);
    advance(400);
    await ask(ID);
    // Nothing is left of what the first answer was validated with.
    expect(conditions(upstream.calls[2]?.headers ?? {})).toEqual({ ...NONE, etag: '"upstream-3"' });
  });
});

describe.each(cachedIds)('%s', (id) => {
  test('is fresh again after a 304', async () => {
    const { upstream, ask, advance, store } = await openWorld();
    upstream.on(callOf(id), json(200, bodyOf(id, 1), { ETag: UP }), notModified({ ETag: UP }));
    const first = await ask(id);
    advance(31);
    const renewed = store.saves.next();
    await ask(id);
    await renewed;
    const again = await ask(id);
    expect(again.headers).toMatchObject({ age: '0', etag: first.headers['etag'] });
    expect(again.headers['cache-status']).toMatch(/^portico; hit; ttl=[1-9]/);
    expect(again.text).toBe(first.text);
    expect(upstream.calls).toHaveLength(2);
  });
});

test('who waits for a 304 gets the whole answer', async () => {
  const { upstream, ask, advance } = await openWorld();
  upstream.on(callOf(ID), json(200, bodyOf(ID, 1), { ETag: UP }), notModified());
  const first = await ask(ID);
  advance(400);
  const again = await ask(ID);
  expect(seen(again)).toEqual([200, 'portico; fwd=stale; stored', 1]);
  expect(again.text).toBe(first.text);
  expect(again.headers['age']).toBe('0');
  advance(400);
  // The 304 named no validator, so the old one still holds.
  await ask(ID);
  expect(conditions(upstream.calls[2]?.headers ?? {})).toEqual({ ...NONE, etag: UP });
});

test('a 304 brings new validators', async () => {
  const { upstream, ask, advance } = await openWorld();
  upstream.on(callOf(ID), json(200, bodyOf(ID, 1), { ETag: UP }), notModified({ ETag: WEAK, 'Last-Modified': DATE }));
  for (let i = 0; i < 3; i += 1) {
    await ask(ID);
    advance(400);
  }
  expect(conditions(upstream.calls[2]?.headers ?? {})).toEqual({ etag: WEAK, date: DATE });
});

test('who says no-cache is answered with what the upstream confirms', async () => {
  const { upstream, ask } = await openWorld();
  upstream.on(callOf(ID), json(200, bodyOf(ID, 1), { ETag: UP }), notModified());
  await ask(ID);
  expect(seen(await ask(ID, { headers: NO_CACHE }))).toEqual([200, 'portico; fwd=request; stored', 1]);
  expect(conditions(upstream.calls[1]?.headers ?? {})).toEqual({ ...NONE, etag: UP });
});

test('who says no-store asks without condition', async () => {
  const { upstream, ask } = await openWorld();
  upstream.on(callOf(ID), json(200, bodyOf(ID, 1), { ETag: UP }));
  await ask(ID);
  await ask(ID, { headers: NO_STORE });
  expect(conditions(upstream.calls[1]?.headers ?? {})).toEqual(NONE);
});

test.each(uncachedIds)('%s is never asked with a condition', async (id) => {
  const { upstream, ask } = await openWorld();
  upstream.on(callOf(id), json(200, bodyOf(id, 1), { ETag: UP, 'Last-Modified': DATE }));
  for (let i = 0; i < 2; i += 1) await ask(id, { headers: { 'If-None-Match': UP, 'If-Modified-Since': DATE } });
  expect(upstream.calls.map(({ headers }) => conditions(headers))).toEqual([NONE, NONE]);
});

test('another account, another id and another query are asked without condition', async () => {
  const { upstream, ask, token } = await openWorld();
  upstream.on((call) => call.path.startsWith('/api/v2/subuser/'), json(200, bodyOf('getSubuser', 1), { ETag: UP }));
  await ask('getSubuser');
  for (const other of [
    { token: `${token}2` },
    { path: '/api/v2/subuser/2/' },
    { path: '/api/v2/subuser/12345/?plan_id=1' },
  ])
    await ask('getSubuser', other);
  expect(upstream.calls.map(({ headers }) => conditions(headers))).toEqual([NONE, NONE, NONE, NONE]);
});

describe('a 304 that nobody asked for', () => {
  test('is a bad response', async () => {
    const { upstream, ask } = await openWorld();
    upstream.on(callOf(ID), notModified({ ETag: UP }), json(200, bodyOf(ID, 2)));
    expect(await ask(ID)).toMatchObject({ status: 502, json: { code: 'upstream_bad_response' } });
    expect(seen(await ask(ID))).toEqual([200, MISS, 2]);
  });

  test('does not renew a copy that has no validators', async () => {
    const { upstream, ask, advance } = await openWorld();
    upstream.on(callOf(ID), json(200, bodyOf(ID, 1)), notModified({ ETag: UP }));
    await ask(ID);
    advance(400);
    expect(seen(await ask(ID))).toEqual([200, hit(-370), 1]);
    await ask(ID);
    expect(upstream.calls.map(({ headers }) => conditions(headers))).toEqual([NONE, NONE, NONE]);
  });

  test('does not answer a write', async () => {
    const { upstream, ask } = await openWorld();
    upstream.on(callOf('updateReferralConfig'), notModified({ ETag: UP }));
    expect(await ask('updateReferralConfig')).toMatchObject({ status: 502, json: { outcome: 'unknown' } });
  });
});

describe('after a write', () => {
  test('the copy is not asked after any more', async () => {
    const { upstream, ask } = await openWorld();
    const id = 'getReferralConfig';
    upstream.on(callOf(id), json(200, bodyOf(id, 1), { ETag: UP }), json(200, bodyOf(id, 2)));
    upstream.on(callOf('updateReferralConfig'), json(200, bodyOf('updateReferralConfig', 2)));
    await ask(id);
    await ask('updateReferralConfig');
    expect(seen(await ask(id))).toEqual([200, MISS, 2]);
    expect(upstream.callsTo(callOf(id)).map(({ headers }) => conditions(headers))).toEqual([NONE, NONE]);
  });

  test('a 304 from before it renews nothing', async () => {
    const { upstream, ask, advance } = await openWorld();
    const id = 'getReferralConfig';
    const gate = barrier();
    upstream.on(
      callOf(id),
      json(200, bodyOf(id, 1), { ETag: UP }),
      reply(hold(gate), notModified()),
      json(200, bodyOf(id, 2)),
    );
    upstream.on(callOf('updateReferralConfig'), json(200, bodyOf('updateReferralConfig', 2)));
    await ask(id);
    advance(400);
    const slow = ask(id);
    await gate.reached;
    await ask('updateReferralConfig');
    gate.release();
    expect(seen(await slow)).toEqual([200, 'portico; fwd=stale', 1]);
    expect(seen(await ask(id))).toEqual([200, MISS, 2]);
  });
});
