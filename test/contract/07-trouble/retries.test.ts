import { describe, expect, test } from 'vitest';
import { noAnswer } from '../../../src/upstream/transport.ts';
import { START_MS, testClock } from '../../support/clock.ts';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer, hang, type Reply, refused, reset } from '../../support/upstream.ts';
import { summaryOf } from './helpers.ts';

/** Never cached: each request for it is one upstream call. */
const PLAIN = 'getPendingPayment';
const READ = 'getSubscription';

const date = (seconds: number) => new Date(START_MS + seconds * 1000).toUTCString();
const unavailable = (times: number) => Array.from({ length: times }, () => answer(503));

everywhere(
  says('on a connection failure, 408, 502, 504, or 503 without `Retry-After`'),
  async ({ ask, upstream, pass, me }) => {
    for (const [at, reply] of [reset(), answer(408), answer(502), answer(503), answer(504)].entries()) {
      upstream.next(PLAIN, reply);
      expect(await ask(PLAIN)).toMatchObject({ status: 200 });
      expect(upstream.callsOf(me)).toHaveLength(2 * at + 2);
      await pass(10); // retries are few where calls are
    }
  },
  { time: true },
);

everywhere(says('**Retries**: GET only'), async ({ ask, upstream }) => {
  upstream.next('createApiKey', answer(503), answer(408));
  for (const status of [503, 408]) expect(await ask('createApiKey')).toMatchObject({ status });
  expect(upstream.callsTo('createApiKey')).toHaveLength(2);
});

everywhere(says('twice at most'), async ({ ask, upstream, me }) => {
  upstream.next(READ, ...unavailable(3));
  const { json, headers } = await ask(READ);
  expect([json.code, json.retry_after, headers.get('retry-after')]).toEqual(['upstream_unavailable', 5, '5']);
  expect(upstream.callsOf(me)).toHaveLength(3);
});

everywhere(
  says('three at least'),
  async ({ ask, upstream }) => {
    for (const id of [PLAIN, READ, 'getSubuser', 'listTransactions'] as const) {
      upstream.next(id, ...unavailable(3));
      expect((await ask(id, { token: secret() })).code).toBe('upstream_unavailable');
    }
    expect(upstream.calls).toHaveLength(4 + 3);
    upstream.clear();
  },
  { not: ['fleet'] }, // each instance has its own
);

everywhere(
  says("holds that account's calls of this instance back"),
  async ({ ask, upstream, pass, me }) => {
    upstream.next(PLAIN, answer(429, '', { 'retry-after': '60' }));
    for (const id of [PLAIN, READ, 'createApiKey', 'deleteIpAuthorization'] as const) {
      const held = await ask(id);
      expect([summaryOf(held), held.headers.get('retry-after')]).toEqual(['429 rate_limited', '60']);
    }
    expect(summaryOf(await ask('purchasePlan', { key: 'key' }))).toBe('429 rate_limited');
    expect(upstream.callsOf(me)).toHaveLength(1);
    expect(await ask(PLAIN, { token: secret() })).toMatchObject({ status: 200 });
    await pass(61);
    for (const id of [PLAIN, READ, 'createApiKey'] as const) expect((await ask(id)).status).toBe(200);
  },
  { time: true, not: ['fleet'] },
);

everywhere(says('A 429 is not tried again'), async ({ ask, upstream, me }) => {
  upstream.next(READ, answer(429));
  expect(summaryOf(await ask(READ))).toBe('429 rate_limited');
  expect(upstream.callsOf(me)).toHaveLength(1);
});

const { ask, upstream, pass } = openGateway();

describe(says('on a connection failure, 408, 502, 504, or 503 without Retry-After'), () => {
  test.each<readonly [string, Reply, number]>([
    ['no connection', refused(), 2],
    ['500', answer(500), 1],
    ['an answer cut off', { ...answer(200), body: { flaw: 'cut_short' as const } }, 1],
    ['what is not HTTP', noAnswer('malformed', 'bad_body'), 1],
    ['a fault of ours', new TypeError('a bug'), 1],
    ['no answer in time', hang(), 1],
    ...[400, 401, 404].map((status) => [String(status), answer(status), 1] as const),
    ...['9', date(9)].map((at) => [`503 until ${at}`, answer(503, '', { 'retry-after': at }), 1] as const),
    ['503 until nobody knows when', answer(503, '', { 'retry-after': 'soon' }), 2],
  ])('%s', async (_, reply, calls) => {
    const token = secret();
    upstream.next(PLAIN, reply);
    const asked = ask(PLAIN, { token });
    await pass(5);
    expect((await asked).status < 400).toBe(calls > 1);
    expect(upstream.callsOf(token)).toHaveLength(calls);
  });
});

describe(says('jittered, within the deadline'), () => {
  test('a pause is a chance of 100 ms, and of twice that before the last', async () => {
    const jittered = openGateway({}, { random: () => 0.25 });
    jittered.upstream.next(PLAIN, ...unavailable(2));
    const asked = jittered.ask(PLAIN);
    for (const [n, seconds] of [0.024, 0.001, 0.049, 0.001].entries()) {
      await jittered.pass(seconds);
      expect(jittered.upstream.calls).toHaveLength([1, 2, 2, 3][n]!);
    }
    expect(await asked).toMatchObject({ status: 200 });
  });

  test.each([
    [0.95, 1],
    [0.949, 2],
  ])('a pause is not begun where it would not be over before: after %d s %i calls', async (seconds, calls) => {
    const hasty = openGateway({ REQUEST_TIMEOUT_MS: '1000' }, { random: () => 0.5 });
    const held = hasty.upstream.hold(PLAIN);
    const asked = hasty.ask(PLAIN);
    await hasty.pass(seconds);
    held.release(answer(503));
    await hasty.pass(0.05);
    expect((await asked).status).toBe(calls === 1 ? 503 : 200);
    expect(hasty.upstream.calls).toHaveLength(calls);
  });
});

test.each([
  [91, 9, 10],
  [191, 9, 18],
])(
  `${says('all together a tenth of the calls of the last 10 s')}: after %d good ones, %d bad ones make %d more`,
  async (good, bad, more) => {
    for (let n = 0; n < good; n++) await ask(PLAIN, { token: secret() });
    upstream.next(PLAIN, ...unavailable(bad + more));
    upstream.calls.length = 0;
    for (let n = 0; n < bad; n++) await ask(PLAIN, { token: secret() });
    expect(upstream.calls).toHaveLength(bad + more);
    await pass(10);
    upstream.next(PLAIN, ...unavailable(2));
    expect(await ask(PLAIN)).toMatchObject({ status: 200 });
  },
);

const limit = (seconds: number) => answer(429, '', { 'retry-after': String(seconds) });

const WAITS = '7:7 0:1 2.5:3 300:300 301:300 99999999999999999999:300 -5:10 soon:10'
  .split(' ')
  .map((one) => [one.split(':')[0], Number(one.split(':')[1])] as const);

describe(says("a date is measured from the answer's own `Date`"), () => {
  test.each([
    [date(3_642), date(3_600), 42],
    ['Tuesday, 09-Jun-26 12:00:42 GMT', 'Tue Jun  9 12:00:00 2026', 42],
    [date(42), undefined, 42],
    ['2026-06-09T12:00:42Z', date(0), 10],
    ['Tue, 09 Jun 2026 05:00:42 -0700', date(0), 10],
  ])('%s in an answer of %s', async (at, sentAt, seconds) => {
    const clock = testClock();
    const ahead = openGateway({}, { clock: { ...clock, now: () => clock.now() + 7_000 } }); // wall was corrected
    ahead.upstream.next(PLAIN, answer(429, '', { 'retry-after': at, date: sentAt }));
    expect((await ahead.ask(PLAIN)).json.retry_after).toBe(seconds);
  });
});

test.each([...WAITS, ['', 10], [undefined, 10], [date(42), 42], [date(-42), 1], [date(86_400), 300]] as const)(
  `${says('its Retry-After (5 minutes at most')}: %s is %d s`,
  async (header, seconds) => {
    const limited = openGateway();
    limited.upstream.next(PLAIN, answer(429, '', header === undefined ? {} : { 'retry-after': header }));
    const left = async (): Promise<unknown> => (await limited.ask(READ)).json.retry_after;
    expect((await limited.ask(PLAIN)).json.retry_after).toBe(seconds);
    expect(await left()).toBe(seconds);
    await limited.pass(seconds - 0.5);
    expect(await left()).toBe(1);
    await limited.pass(0.5);
    expect(await limited.ask(READ)).toMatchObject({ status: 200 });
  },
);

describe(says('calls of this instance back'), () => {
  test('no other status with Retry-After, and nobody who has no account', async () => {
    const token = secret();
    for (const status of [503, 403, 408]) {
      upstream.next('createApiKey', answer(status, '', { 'retry-after': '60' }));
      await ask('createApiKey', { token });
      expect(await ask('createApiKey', { token })).toMatchObject({ status: 200 });
    }
    upstream.next('loginSocial', limit(60));
    expect((await ask('loginSocial')).json.retry_after).toBe(60);
    expect(await ask('loginSocial')).toMatchObject({ status: 200 });
  });
});
