import { describe, expect, test } from 'vitest';
import { parseConfig } from '../../src/config.ts';
import { cacheStatusOf, hit, MISS, seen } from './helpers.ts';
import { startGateway } from '../support/gateway.ts';
import { call } from '../support/http.ts';
import { bodyOf, callOf, pathOf } from '../support/marked.ts';
import { json } from '../support/scripted-upstream.ts';
import { cachedIds } from '../support/table.ts';
import { openWorld } from '../support/world.ts';
import { accountTable } from '../support/account-api.ts';

const policy = (policies: unknown) => ({ CACHE_POLICY: JSON.stringify(policies) });

describe('CACHE_POLICY', () => {
  test('takes fractions of a second', async () => {
    const env = policy({ getSubscription: { fresh: 0.5, stale: 0.25, on_error: 0.75 } });
    const { upstream, ask, advance } = await openWorld(env);
    upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)), json(503));
    expect(seen(await ask('getSubscription'))).toEqual([200, MISS, 1]);
    advance(0.499);
    expect(seen(await ask('getSubscription'))).toEqual([200, hit(0), 1]);
    expect(upstream.calls).toHaveLength(1);
    advance(0.25);
    expect(seen(await ask('getSubscription'))).toEqual([200, hit(-1), 1]);
    await upstream.waitForCalls(2);
    advance(0.5);
    expect(seen(await ask('getSubscription'))).toEqual([200, hit(-1), 1]);
    advance(0.001);
    expect(await ask('getSubscription')).toMatchObject({ status: 503 });
  });

  test('false turns caching off for one operation, and for no other', async () => {
    const { upstream, ask } = await openWorld(policy({ getSubscription: false }));
    upstream.on(
      callOf('getSubscription'),
      json(200, bodyOf('getSubscription', 1)),
      json(200, bodyOf('getSubscription', 2)),
    );
    upstream.on(callOf('getReferralConfig'), json(200, bodyOf('getReferralConfig', 1)));
    for (const mark of [1, 2]) {
      const answer = await ask('getSubscription');
      expect(seen(answer)).toEqual([200, 'portico; fwd=bypass', mark]);
      expect(answer.headers['cache-control']).toBe('no-store');
      expect(answer.headers).not.toHaveProperty('etag');
    }
    await ask('getReferralConfig');
    expect(cacheStatusOf(await ask('getReferralConfig'))).toBe(hit(30));
  });

  test('leaves what it does not name as it is', async () => {
    const { upstream, ask, advance } = await openWorld(policy({ getSubscription: { fresh: 2 } }));
    upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)), json(503));
    await ask('getSubscription');
    expect(cacheStatusOf(await ask('getSubscription'))).toBe(hit(2));
    advance(2 + 299);
    expect(cacheStatusOf(await ask('getSubscription'))).toBe(hit(-299));
    advance(3600 - 299 - 1);
    expect(cacheStatusOf(await ask('getSubscription'))).toBe(hit(-3599));
    advance(1);
    expect(await ask('getSubscription')).toMatchObject({ status: 503 });
  });

  test('with nothing fresh asks each time, and still falls back on failure', async () => {
    const { upstream, ask, advance } = await openWorld(
      policy({ getSubscription: { fresh: 0, stale: 0, on_error: 60 } }),
    );
    upstream.on(
      callOf('getSubscription'),
      json(200, bodyOf('getSubscription', 1)),
      json(200, bodyOf('getSubscription', 2)),
      json(503),
    );
    expect(seen(await ask('getSubscription'))).toEqual([200, MISS, 1]);
    expect(seen(await ask('getSubscription'))).toEqual([200, 'portico; fwd=stale; stored', 2]);
    advance(1);
    expect(seen(await ask('getSubscription'))).toEqual([200, hit(-1), 2]);
  });

  test('with a longer stale than on_error answers stale for that long', async () => {
    const { upstream, ask, advance } = await openWorld(
      policy({ getSubscription: { fresh: 1, stale: 100, on_error: 0 } }),
    );
    upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)), json(503));
    await ask('getSubscription');
    advance(100);
    expect(cacheStatusOf(await ask('getSubscription'))).toBe(hit(-99));
    await upstream.waitForCalls(2);
    advance(1);
    expect(await ask('getSubscription')).toMatchObject({ status: 503 });
  });

  test.each([
    ['an operation that does not exist', { getNothing: false }],
    ['an operation that is never cached', { getApiKey: { fresh: 1 } }],
    ['a write', { purchasePlan: { fresh: 1 } }],
    ['a negative time', { getSubscription: { fresh: -1 } }],
    ['a time that is text', { getSubscription: { fresh: '1' } }],
    ['a name that does not exist', { getSubscription: { onError: 1 } }],
    ['true', { getSubscription: true }],
    ['a list', []],
  ])('refuses %s', (_, policies) => {
    expect(parseConfig(policy(policies), accountTable)).toMatchObject({ problems: [{ variable: 'CACHE_POLICY' }] });
  });

  test('refuses what is no JSON', () => {
    expect(parseConfig({ CACHE_POLICY: '{' }, accountTable)).toMatchObject({
      problems: [{ variable: 'CACHE_POLICY' }],
    });
  });
});

describe('CACHE_MAX_BYTES', () => {
  test('of nothing keeps nothing, and answers all the same', async () => {
    const { upstream, token } = await openWorld();
    const gateway = await startGateway(upstream.url, { env: { CACHE_MAX_BYTES: '0' } });
    for (const id of cachedIds) upstream.on(callOf(id), json(200, bodyOf(id, 1)));
    for (const id of [...cachedIds, ...cachedIds]) {
      const answer = await call(gateway.url, { path: pathOf(id), token });
      expect(seen(answer)).toEqual([200, 'portico; fwd=miss', 1]);
    }
    await gateway.close();
  });
});
