import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { byCookie, cookieIn, SESSION, signInWith } from '../sessions/helpers.ts';
import { call } from '../support/http.ts';
import { markOf } from '../support/marked.ts';
import { hasRedis, relyOn, SKIPPED, startRedis, type TestRedis } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { startSentinel, type TestSentinel } from '../support/sentinel.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import { isOf, requestOf } from '../support/versioned-upstream.ts';
import {
  ask,
  bought,
  buy,
  buyOnce,
  Fleet,
  isHit,
  isWithoutStore,
  newOrder,
  openFleet,
  outcomeAt,
  prime,
  UNAVAILABLE,
  untilNot,
  writeThrough,
} from './fleet.ts';

const CONFIG = 'getReferralConfig';
/** On a busy machine. */
const PATIENCE = { timeout: 50_000, interval: 50 };

describe.skipIf(!hasRedis)(`a primary that is cut off from the replica that it needs${SKIPPED}`, () => {
  let fleet: Fleet;
  let replica: TestRedis;
  let a: NodeGateway;
  let b: NodeGateway;

  const says = (text: string) =>
    vi.waitFor(async () => expect(await fleet.redis.client.info('replication')).toMatch(text), PATIENCE);

  const follow = async () => {
    await replica.client.replicaof('127.0.0.1', fleet.redis.port);
    await says('state=online');
  };

  beforeEach(async () => {
    [fleet, replica] = await Promise.all([openFleet(), startRedis()]);
    await follow();
    await fleet.redis.client.config('SET', 'min-replicas-to-write', '1');
    const env = { SESSIONS: 'true' };
    [a, b] = await Promise.all([fleet.start(env), fleet.start(env)]);
  }, 60_000);
  afterEach(async () => {
    await fleet.close();
    await replica.close();
  }, 30_000);

  test('is no store: no copy of before is given, nothing is written that needs one, and reads go on', async () => {
    const token = secret();
    const cookie = cookieIn(await call(a.url, signInWith(token)));
    for (const at of [a, b]) await prime(at, CONFIG, { token });
    await replica.kill();
    await says('connected_slaves:0');
    for (const at of [a, b]) await at.until(() => isWithoutStore(at) || undefined);
    const calls = fleet.callsOf(token).length;
    for (const at of [a, b]) {
      expect(isHit(await ask(at, CONFIG, { token }))).toBe(false);
      expect(await buyOnce(at, newOrder())).toBe(UNAVAILABLE);
      expect((await ask(at, 'updateReferralConfig', { token })).status).toBe(503);
    }
    expect(fleet.callsOf(token)).toHaveLength(calls + 2);
    for (const options of [requestOf('getApiKey'), { path: SESSION }])
      expect((await call(a.url, byCookie(cookie, options))).status).toBe(200);
    expect((await call(a.url, byCookie(cookie, requestOf('createApiKey')))).status).toBe(503);
    expect(fleet.upstream.callsTo((to) => isOf(token, to) && to.method !== 'GET')).toEqual([]);

    await replica.start();
    await follow();
    for (const at of [a, b]) {
      await prime(at, CONFIG, { token });
      expect(await untilNot([UNAVAILABLE], () => buy(at, newOrder()))).toBe(bought(2));
    }
    await writeThrough(a, 'updateReferralConfig', { token });
    for (const at of [b, a]) expect(markOf((await ask(at, CONFIG, { token })).text)).toBe(2);
  });
});

describe.skipIf(!hasRedis)(`a replica that Sentinel puts in the place of its primary${SKIPPED}`, () => {
  let sentinel: TestSentinel;
  let fleet: Fleet;
  let a: NodeGateway;
  let b: NodeGateway;

  beforeEach(async () => {
    sentinel = await startSentinel();
    await relyOn(sentinel.primary);
    const redis = { ...sentinel.primary, url: sentinel.url, close: () => sentinel.close() };
    fleet = new Fleet(redis, await startUpstream());
    [a, b] = await Promise.all([fleet.start(), fleet.start()]);
  }, 60_000);
  afterEach(() => fleet.close(), 30_000);

  test('is another store: it replays what it has, for a while nothing new is bought, and nothing old is read', async () => {
    const token = secret();
    for (const at of [a, b]) await prime(at, CONFIG, { token });
    const [known, underWay] = [newOrder(), newOrder()];
    expect(await buy(a, known)).toBe(bought(2));
    const held = fleet.holdNext(underWay.token, 'purchasePlan');
    const buying = buy(b, underWay);
    await held.reached;
    await vi.waitFor(async () =>
      expect(await sentinel.replica.client.dbsize()).toBe(await fleet.redis.client.dbsize()),
    );

    await sentinel.primary.kill();
    await sentinel.promote();
    for (const at of [a, b]) {
      expect(await untilNot([UNAVAILABLE], () => buyOnce(at, known))).toBe(bought(2, { isReplay: true }));
      const next = newOrder();
      expect(await buyOnce(at, next)).toBe(UNAVAILABLE);
      expect(await outcomeAt(at, next)).toBe('store_unavailable');
      expect(isHit(await ask(at, CONFIG, { token }))).toBe(false);
    }
    await writeThrough(a, 'updateReferralConfig', { token });
    for (const at of [b, a, b, a]) expect(markOf((await ask(at, CONFIG, { token })).text)).toBe(2);
    held.release();
    expect(await buying).toBe(bought(2));
    await relyOn(sentinel.replica);
    for (const at of [a, b]) {
      expect(await buy(at, underWay)).toBe(bought(2, { isReplay: true }));
      expect(await untilNot([UNAVAILABLE], () => buyOnce(at, newOrder()))).toBe(bought(2));
      await prime(at, CONFIG, { token });
    }
    for (const order of [known, underWay]) expect(fleet.charges(order)).toBe(1);
  });
});
