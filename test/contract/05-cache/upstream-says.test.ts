import { describe, expect, test } from 'vitest';
import { START_MS, testClock } from '../../support/clock.ts';
import { says } from '../../support/contract.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer, type Call } from '../../support/upstream.ts';
import { hit, isHit, isOld, MISS, NEVER_CACHED, NO_CACHE, openCache, seen, UNKEPT, versioned } from './seen.ts';

const saying = (cacheControl: string, headers = {}) => ({ 'cache-control': cacheControl, ...headers });
const each = (values: string) => values.split(' | ').map((value) => saying(value));

const UP = { etag: '"upstream-1"' };
const DATE = 'Tue, 09 Jun 2026 11:50:08 GMT';

const conditions = ({ headers }: Call) => [headers['if-none-match'], headers['if-modified-since']];
const NONE = [undefined, undefined];

/** The time at which these tests begin, and 20 s before and after. */
const date = (seconds: number) => new Date(START_MS + seconds * 1000).toUTCString();
const [START, IN_20, PAST] = [date(0), date(20), { expires: date(-20) }];

describe(says('and obeyed where it is stricter (RFC 9111)'), () => {
  test.each<[fresh: number | undefined, said: readonly Record<string, string>[]]>([
    [30, [{}, { age: '20' }, { vary: 'Accept' }, saying(`max-age=${'9'.repeat(400)}`)]],
    [30, each('max-age=3600 | s-maxage=0, public, proxy-revalidate, private | max-age, max-age=, max-age=""')],
    [30, each('max-age=soon, max-age=1.5, max-age=0x0 | x-no-store, no-store-x, no-cached, max-age-x=1')],
    [20, [saying('max-age=20', { age: 'old' }), saying('max-age=20', { age: '-8' })]],
    [12, [saying('max-age=20', { age: '8' })]],
    [10, [saying('max-age=3600', { age: '3590' })]],
    [
      7,
      each('max-age=7 | Private, MAX-AGE=7 | max-age="7" | max-age=9, max-age=7 | private,max-age=7,must-revalidate'),
    ],
    [7, each('s-maxage=0, max-age=7 | x="no-cache, max-age=1, no-store", max-age=7 | x="no-store, max-age=7')],
    [-1, each('max-age=0 | max-age=-1 | x="\\", max-age=9", max-age=0')],
    [-1, [saying('max-age=5', { age: '9' }), saying('max-age=5', { age: '9, 1' })]],
    [30, [{ expires: IN_20 }, { expires: '0' }, PAST].map((said) => saying('max-age=60', said))],
    [
      20,
      [{ expires: IN_20 }, saying('private', { expires: IN_20, date: START }), { date: PAST.expires, expires: START }],
    ],
    [15, [{ expires: IN_20, age: '5' }]],
    [-1, [PAST, { expires: '0' }, { expires: '' }, { expires: IN_20, date: IN_20 }]],
    [undefined, each('No-Store | max-age=60, no-store | no-store=1 | private; no-store | no-cache no-store')],
    [undefined, [{ vary: '*' }, { vary: 'Accept,, *' }, saying('max-age=60', { vary: '*' })]],
  ])('fresh for %s s: %j', async (fresh, said) => {
    for (const headers of said) {
      const { see, upstream } = openCache();
      upstream.next('getSubscription', versioned(7, headers));
      expect([headers, await see('getSubscription')]).toEqual([headers, [200, fresh === undefined ? UNKEPT : MISS, 7]]);
      const again = fresh === undefined ? [200, MISS, 1] : [200, hit(fresh), 7];
      expect([headers, await see('getSubscription')]).toEqual([headers, again]);
    }
  });
});

everywhere(says('`no-store` and `Vary: *` are not kept'), async ({ ask, upstream }) => {
  for (const headers of [saying('no-store'), { vary: '*' }]) {
    upstream.next('getSubscription', versioned(7, headers));
    expect(seen(await ask('getSubscription'))).toEqual([200, UNKEPT, 7]);
  }
  expect(seen(await ask('getSubscription'))).toEqual([200, MISS, 1]);
});

everywhere(
  says('a smaller `max-age` shortens `fresh`'),
  async ({ ask, upstream, pass }) => {
    upstream.next('getSubscription', versioned(7, saying('max-age=16')));
    await ask('getSubscription');
    await pass(8);
    expect(seen(await ask('getSubscription'))).toEqual([200, isHit, 7]);
    await pass(16);
    expect(seen(await ask('getSubscription'))).toEqual([200, isOld, 7]);
    await pass(30 + 300); // too old to be stale, which counts from the end of its freshness
    expect(seen(await ask('getSubscription'))).toMatchObject([200, {}, 1]);
  },
  { time: true },
);

everywhere(says('`no-cache` is not fresh at all'), async ({ ask, upstream }) => {
  upstream.next('getSubscription', versioned(7, saying('no-cache', UP)), answer(304, '', UP));
  expect(seen(await ask('getSubscription'))).toEqual([200, MISS, 7]);
  expect(seen(await ask('getSubscription'))).toEqual([200, 'portico; fwd=stale; stored', 7]);
  expect(upstream.calls.map(conditions)).toEqual([NONE, [UP.etag, undefined]]);
});

const NEVER_STALE =
  'must-revalidate, max-age=20 | MAX-AGE=20 , Proxy-Revalidate | no-cache | max-age=20, no-cache="Set-Cookie, X"';

everywhere(
  says('`no-cache`, `must-revalidate` and `proxy-revalidate` are never given stale, on failure neither.'),
  async ({ ask, pass, upstream }) => {
    for (const headers of each(NEVER_STALE)) {
      const token = secret();
      upstream.next('getSubscription', versioned(7, headers), answer(500), versioned(8, headers), answer(500));
      await ask('getSubscription', { token });
      if (headers['cache-control']?.includes('validate')) {
        expect(seen(await ask('getSubscription', { token }))).toEqual([200, isHit, 7]);
        await pass(25);
      }
      expect((await ask('getSubscription', { token })).status).toBe(502);
      expect(seen(await ask('getSubscription', { token }))).toEqual([200, 'portico; fwd=stale; stored', 8]);
      await pass(25);
      expect((await ask('getSubscription', { token })).status).toBe(502);
    }
  },
  { time: true },
);

test(`${says('never given stale, on failure neither.')}: not while the circuit is open, and no section of an overview`, async () => {
  const { ask, request, pass, upstream } = openCache();
  upstream.next('getReferralConfig', versioned(7, saying('must-revalidate')));
  await ask('getReferralConfig');
  await pass(31);
  upstream.next('getReferralConfig', answer(500));
  const json = await (await request('/bff/v1/account-overview')).json();
  expect([json.data.referral_config, json.meta.sections.referral_config.state]).toEqual([null, 'failed']);
  for (let failed = 0; failed < 25; failed++) {
    upstream.next('getApiKey', answer(500));
    await ask('getApiKey', { token: secret() });
  }
  upstream.clear();
  upstream.calls.length = 0;
  expect((await ask('getReferralConfig')).code).toBe('upstream_unavailable');
  expect(upstream.calls).toEqual([]);
});

/** One of the two clocks advances, and the other stands still: a machine slept, or its clock was set back. */
test.each(['now', 'wall'] as const)(
  `${says('Copies age by the larger of wall and monotonic time')}: by \`%s\` alone`,
  async (which) => {
    const clock = testClock();
    let ms = 0;
    const { see, ask } = openCache({}, { clock: { ...clock, [which]: () => clock[which]() + ms } });
    await see('getSubscription');
    ms = 20_000;
    const { cache, headers } = await ask('getSubscription');
    expect([cache, headers.get('age')]).toEqual([hit(10), '20']);
    ms = 3_931_000; // longer than on_error
    expect(await see('getSubscription')).toEqual([200, 'portico; fwd=stale; stored', 1]);
  },
);

describe(says('obeyed where it is stricter'), () => {
  test('no-store on a refresh takes the older copy away, and who says no-cache gets what is not kept', async () => {
    const { see, pass, idle, upstream } = openCache();
    await see('getSubscription');
    await pass(31);
    upstream.next('getSubscription', versioned(7, saying('no-store')), answer(500), versioned(8, saying('no-store')));
    expect(await see('getSubscription')).toEqual([200, hit(-1), 1]);
    await idle();
    expect(await see('getSubscription')).toEqual([502, null, undefined]);
    expect(await see('getSubscription', { headers: NO_CACHE })).toEqual([200, 'portico; fwd=request', 8]);
  });
});

everywhere(
  says('The upstream is asked with `If-None-Match` or `If-Modified-Since` where it gave a validator'),
  async ({ ask, pass, upstream }) => {
    upstream.next('getSubscription', versioned(7, { ...UP, 'last-modified': DATE }), answer(304, '', UP));
    const first = await ask('getSubscription');
    await pass(400);
    const again = await ask('getSubscription');
    expect(upstream.calls.map(conditions)).toEqual([NONE, [UP.etag, DATE]]);
    expect(seen(again)).toEqual([200, 'portico; fwd=stale; stored', 7]);
    expect([again.text, again.headers.get('etag')]).toEqual([first.text, first.headers.get('etag')]);
    expect(seen(await ask('getSubscription'))).toEqual([200, isHit, 7]);
  },
  { time: true },
);

test.each<[Record<string, string | string[]>, (string | undefined)[]]>([
  [UP, [UP.etag, undefined]],
  [{ etag: 'W/"2"' }, ['W/"2"', undefined]],
  [{ 'last-modified': DATE }, [undefined, DATE]],
  [{ etag: ['"4"', '"5"'] }, ['"4"', undefined]],
  [{ etag: '"\u2713"' }, NONE],
  [{ etag: '*' }, NONE],
  [{}, NONE],
])(`${says('where it gave a validator')}: %j, and with nothing of it after another answer`, async (given, expected) => {
  const { see, pass, idle, upstream } = openCache();
  upstream.next('getSubscription', versioned(7, given), versioned(8, { etag: '"3"' }));
  for (const seconds of [31, 400, 0]) {
    await see('getSubscription');
    await pass(seconds);
    await idle();
  }
  expect(upstream.calls.map(conditions)).toEqual([NONE, expected, ['"3"', undefined]]);
});

describe(`${says('The upstream is asked with')}: a 304`, () => {
  test.each<[string, Record<string, string>, number | undefined, (string | undefined)[]]>([
    ['that says nothing leaves what was said', {}, 7, [UP.etag, undefined]],
    ['that asks for less applies', saying('max-age=3', UP), 3, [UP.etag, undefined]],
    ['that asks for more than before applies', saying('max-age=12', UP), 12, [UP.etag, undefined]],
    ['that says something else takes the limit away', saying('private', UP), 30, [UP.etag, undefined]],
    ['that lets it be as old as we like applies', saying('max-age=3600', UP), 30, [UP.etag, undefined]],
    [
      'of another representation gives the copy no validators',
      { etag: 'W/"2"', 'last-modified': DATE },
      7,
      [UP.etag, undefined],
    ],
    ['that says no-store is answered from the copy once more', saying('no-store', UP), undefined, NONE],
  ])('%s', async (_, headers, fresh, next) => {
    const { see, pass, upstream } = openCache();
    upstream.next('getSubscription', versioned(7, saying('max-age=7', UP)), answer(304, '', headers));
    await see('getSubscription');
    await pass(400);
    expect(await see('getSubscription')).toEqual([200, `portico; fwd=stale${fresh ? '; stored' : ''}`, 7]);
    if (fresh) expect(await see('getSubscription')).toEqual([200, hit(fresh), 7]);
    await pass(fresh ? 400 : 0);
    await see('getSubscription');
    expect(conditions(upstream.calls.at(-1)!)).toEqual(next);
  });

  test('with `Expires` alone leaves it one that is never given stale', async () => {
    const { see, pass, upstream } = openCache();
    const renewed = answer(304, '', { expires: date(60) });
    upstream.next('getSubscription', versioned(7, saying('must-revalidate', UP)), renewed, answer(500));
    await see('getSubscription');
    await pass(31);
    expect(await see('getSubscription')).toEqual([200, 'portico; fwd=stale; stored', 7]);
    await pass(31);
    expect((await see('getSubscription'))[0]).toBe(502);
  });

  test('from before a write renews nothing, and after it the copy is not asked after', async () => {
    const { ask, see, begin, pass, upstream } = openCache();
    upstream.next('getReferralConfig', versioned(7, UP));
    await see('getReferralConfig');
    await pass(400);
    const slow = await begin('getReferralConfig');
    await ask('updateReferralConfig');
    expect(await slow.end(answer(304))).toEqual([200, 'portico; fwd=stale', 7]);
    expect(await see('getReferralConfig')).toEqual([200, MISS, 2]);
    expect(conditions(upstream.calls.at(-1)!)).toEqual(NONE);
  });
});

test(`${says('where it gave a validator')}: not for what is never cached, nor for another account, id or query`, async () => {
  const { ask, upstream, me } = openCache();
  const headers = { 'If-None-Match': UP.etag, 'If-Modified-Since': DATE }; // the client's own
  for (const id of [...NEVER_CACHED, 'getSubuser'] as const) {
    upstream.next(id, versioned(7, { ...UP, 'last-modified': DATE }));
    await ask(id);
  }
  for (const id of NEVER_CACHED) await ask(id, { headers });
  await ask('getSubuser', { token: `${me}2` });
  for (const end of ['2/', '12345/?plan_id=1']) await ask('getSubuser', { path: `/api/v2/subuser/${end}`, headers });
  expect(upstream.calls.map(conditions)).toEqual(upstream.calls.map(() => NONE));
});
