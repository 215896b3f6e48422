import { describe, expect, test } from 'vitest';
import type { OperationId } from '../../support/account-api.ts';
import { says } from '../../support/contract.ts';
import type { Asked, Asking } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer, refused, reset, type Reply } from '../../support/upstream.ts';
import {
  askAll,
  CACHED,
  hit,
  isHit,
  isOld,
  MISS,
  NEVER_CACHED,
  NO_CACHE,
  openCache,
  seen,
  UNKEPT,
  versioned,
  warm,
} from './seen.ts';

const HOUR = 3_600;
const FAILED = answer(500);
const times5 = (reply: Reply) => [reply, reply, reply, reply, reply];

/**
 * Times half-way between those at which something changes: where sockets are, some time passes by itself. Three accounts,
 * so that nothing depends on when a refresh is over.
 */
const lives = (times: readonly [fresh: number, stale: number, onError: number], ...ids: readonly OperationId[]) => {
  const [fresh, stale, onError] = times;
  const all = (cache: unknown, version: number) => ids.map(() => [200, cache, version]);
  return async (stage: Asked) => {
    const { upstream, pass } = stage;
    const [one, late, failed] = [secret(), secret(), secret()];
    const see = async (token: string) => (await askAll(stage, ids, { token })).map(seen);
    for (const token of [one, late, failed]) {
      expect(await see(token)).toEqual(all(MISS, 1));
      await warm(stage, ids, { token });
      upstream.change(token);
    }
    await pass(fresh / 2);
    expect(await see(one)).toEqual(all(isHit, 1));
    await pass((fresh + stale) / 2);
    const calls = ids.map((id) => upstream.callsTo(id).length);
    expect(await see(one)).toEqual(all(isOld, 1));
    for (const [n, id] of ids.entries()) await upstream.arrived(id, calls[n]! + 1); // behind the answer
    await pass((stale + onError) / 2);
    expect(await see(late)).toEqual(all('portico; fwd=stale; stored', 2));
    for (const id of ids) upstream.next(id, FAILED);
    expect(await see(failed)).toEqual(all(isOld, 1));
    await pass(onError);
    for (const id of ids) upstream.next(id, FAILED);
    for (const { status } of await askAll(stage, ids, { token: failed })) expect(status).toBe(502);
  };
};

everywhere(
  says('subscription, referral config, referral channels, payment methods (list, one) | 30 s | 300 s | 1 h'),
  lives(
    [30, 300, HOUR],
    ...(['getSubscription', 'getReferralConfig', 'listReferralChannels'] as const),
    ...(['listPaymentMethods', 'getPaymentMethod'] as const),
  ),
  { time: true },
);

everywhere(says('notifications | 10 s | 60 s | 1 h'), lives([10, 60, HOUR], 'listNotifications'), { time: true });

everywhere(
  says('transactions, referral credits, earn-outs (list, one), pending payments (list) | 30 s | 60 s | 1 h'),
  lives(
    [30, 60, HOUR],
    ...(['listTransactions', 'getTransaction', 'listReferralCredits', 'getReferralCredit'] as const),
    ...(['listEarnOuts', 'getEarnOut', 'listPendingPayments'] as const),
  ),
  { time: true },
);

everywhere(
  says('sub-user, IP authorization, proxy activity | 10 s | 30 s | 10 min'),
  lives([10, 30, 600], 'getSubuser', 'getIpAuthorization', 'listProxyActivity'),
  { time: true },
);

everywhere(
  says('pending payment, API key, verification flow, all that is no GET | never | never | never'),
  async ({ ask, upstream, me }) => {
    for (const id of NEVER_CACHED)
      for (const version of [upstream.versionOf(me), upstream.versionOf(me) + 1]) {
        const got = await ask(id);
        expect(seen(got)).toEqual([200, 'portico; fwd=bypass', version]);
        expect([got.headers.get('cache-control'), got.headers.get('age')]).toEqual(['no-store', null]);
        upstream.change(me);
      }
    for (const id of ['updateReferralConfig', 'purchasePlan', 'deletePaymentMethod'] as const) {
      const { cache, headers } = await ask(id);
      expect([cache, headers.get('cache-control'), headers.get('etag')]).toEqual([
        'portico; fwd=method',
        'no-store',
        null,
      ]);
    }
  },
);

test(says('Never-cached: `no-store`.'), async () => {
  const { ask, upstream } = openCache();
  for (const id of NEVER_CACHED) {
    upstream.next(id, versioned(1, { etag: '"up"' }), FAILED);
    expect((await ask(id)).headers.get('cache-control')).toBe('no-store');
    expect((await ask(id)).status).toBe(502);
  }
});

const policy = (getSubscription: unknown) => ({ CACHE_POLICY: JSON.stringify({ getSubscription }) });

describe(says('seconds, fractions allowed; `stale` and `on_error` both count from the moment freshness ends'), () => {
  /** Steps: so many seconds later an upstream that fails is asked, and a copy of this ttl is answered, or none. */
  test.each<[OperationId, object, string]>([
    ['listNotifications', {}, '9.999:0 0.001:-1 60:-60 3539.999:-3600 0.001:none'],
    ['getSubuser', {}, '9.999:0 0.001:-1 30:-30 569.999:-600 0.001:none'],
    ['getSubscription', { fresh: 0.5, stale: 0.25, on_error: 0.75 }, '0.499:0 0.25:-1 0.5:-1 0.001:none'],
    ['getSubscription', { fresh: 2 }, '0:2 301:-299 3300:-3599 1:none'],
    ['getSubscription', { fresh: 0, stale: 0, on_error: 60 }, '1:-1 58.9:-60 0.1:none'],
    ['getSubscription', { fresh: 1, stale: 100, on_error: 0 }, '100:-99 1:none'],
  ])('%s with %j: %s', async (id, times, steps) => {
    const { ask, pass, upstream } = openCache(policy(times));
    await ask(id);
    upstream.next(id, ...times5(FAILED));
    for (const [after = '', ttl] of steps.split(' ').map((step) => step.split(':'))) {
      await pass(Number(after));
      expect((await ask(id)).cache, `${after} s later`).toBe(ttl === 'none' ? null : `portico; hit; ttl=${ttl}`);
    }
    upstream.clear();
  });
});

test(`${says('seconds, fractions allowed')}, or false: nothing is kept`, async () => {
  const { see } = openCache(policy(false));
  for (const _ of [1, 2]) expect(await see('getSubscription')).toEqual([200, 'portico; fwd=bypass', 1]);
});

everywhere(says('Only 200 with valid JSON is kept.'), async ({ ask, upstream }) => {
  for (const reply of [201, 203, 206].map((status) => versioned(7, {}, status))) {
    upstream.next('getSubscription', reply);
    const { cache, headers } = await ask('getSubscription');
    expect([cache, headers.get('cache-control'), headers.get('etag')]).toEqual([UNKEPT, 'no-store', null]);
  }
  for (const text of ['{"x_version":7', '']) {
    upstream.next('getSubscription', answer(200, text));
    expect((await ask('getSubscription')).status).toBe(502);
  }
  expect(seen(await ask('getSubscription'))).toEqual([200, MISS, 1]);
  expect(seen(await ask('getSubscription'))).toEqual([200, isHit, 1]);
});

everywhere(
  says('A stale copy beats a failure.'),
  async ({ ask, pass, upstream }) => {
    await ask('getSubscription');
    await pass(1_000); // no longer stale while it is refreshed
    upstream.next('getSubscription', FAILED);
    expect(seen(await ask('getSubscription'))).toEqual([200, isOld, 1]);
  },
  { time: true },
);

describe(says('then given on upstream failure'), () => {
  test.each<[string, Reply, number]>([
    ['500', answer(500, '"oops"'), 502],
    ['504', answer(504), 504],
    ['429', answer(429, '', { 'retry-after': '7' }), 429],
    ['a redirect', answer(302, '', { location: 'http://elsewhere.example/' }), 502],
    ['a reset', reset(), 502],
    ['no connection', refused(), 502],
    ['an HTML page with 200', answer(200, '<html>', { 'content-type': 'text/html' }), 502],
    ['a 304 that nobody asked for', answer(304), 502],
  ])('on %s, and the copy stays; not to who says no-cache, and without a copy it is the error', async (...row) => {
    const [, failure, status] = row;
    const { ask, see, pass, upstream } = openCache();
    const failing = async (asking?: Asking) => {
      upstream.next('getSubscription', ...times5(failure)); // it may be tried again
      const got = await ask('getSubscription', asking);
      upstream.clear();
      return got;
    };
    expect(await failing()).toMatchObject({ status, cache: null });
    await pass(60);
    expect(await see('getSubscription')).toEqual([200, MISS, 1]);
    expect(await failing({ headers: NO_CACHE })).toMatchObject({ status, cache: null });
    expect(await see('getSubscription')).toEqual([200, hit(30), 1]);
    await pass(331);
    for (const _ of [1, 2]) expect(seen(await failing())).toEqual([200, hit(-301), 1]);
  });

  test.each([404, 410, 400])('not on a %i, which forgets the copy and only it', async (status) => {
    const { ask, see, pass, idle, upstream } = openCache();
    await askAll({ ask }, ['getTransaction', 'listTransactions']);
    await pass(31);
    upstream.next('getTransaction', answer(status), FAILED);
    expect(await see('getTransaction')).toEqual([200, hit(-1), 1]);
    await idle();
    expect((await ask('getTransaction')).status).toBe(502);
    expect(await see('listTransactions')).toEqual([200, hit(-1), 1]);
    expect((await ask('listTransactions', { path: '/api/v2/payment/transaction/?page=x' })).status).toBe(400);
    await idle();
    expect(await see('listTransactions')).toEqual([200, hit(30), 1]); // what was not sent changes nothing
    await pass(331);
    upstream.next('listTransactions', answer(status));
    expect((await ask('listTransactions')).status).toBe(status);
  });
});

test(`${says('bound of the cache of this process')}: of nothing keeps nothing, and answers all the same`, async () => {
  const { ask } = openCache({ CACHE_MAX_BYTES: '0' });
  for (const _ of [1, 2])
    for (const read of await askAll({ ask }, CACHED)) expect(seen(read)).toEqual([200, UNKEPT, 1]);
});
