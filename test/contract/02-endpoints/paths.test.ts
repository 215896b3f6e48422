import { describe, expect, test } from 'vitest';
import { allOperations } from '../../support/account-api.ts';
import { says } from '../../support/contract.ts';
import { exampleInput } from '../../support/examples.ts';
import { openGateway } from '../../support/gateway.ts';
import { expectProblem } from '../../support/problem.ts';
import { everywhere } from '../../support/stages.ts';

const METHOD = '/api/v2/payment/method/';
const AUTHORIZATION = '/api/v2/proxy/ipauthorization/';

/** Of digits or not, each is one for an IP authorization. */
const NAMES = ['91', 'auth_91-a', '-', '_', 'A', 'a'.repeat(64), 'refresh', '0x1', '12345678901234567890'];

everywhere(
  says('`<ID>` is 1 to 19 digits, for an IP authorization also `[A-Za-z0-9_-]{1,64}`;'),
  async ({ call, upstream, me }) => {
    for (const id of ['0', '1', '007', '9'.repeat(19)]) expect((await call(`${METHOD}${id}`)).status).toBe(200);
    for (const id of NAMES) {
      expect((await call(`${AUTHORIZATION}${id}/`)).status).toBe(200);
      expect((await call(`${AUTHORIZATION}${id}/`, { method: 'DELETE' })).status).toBe(204);
    }
    expect(upstream.callsOf(me).at(-1)?.path).toBe(`${AUTHORIZATION}12345678901234567890/`);
  },
);

everywhere(says('anything else is 404 without a call.'), async ({ call, upstream, me }) => {
  const ids = ['12345678901234567890', 'abc', '-1', '1.0', '1%00', '%31'].map((id) => METHOD + id);
  const slugs = ['a'.repeat(65), 'a.b', '1%2f2', '%41'].map((id) => AUTHORIZATION + id);
  for (const path of [...ids, ...slugs])
    expectProblem(await call(path), { status: 404, code: 'unknown_endpoint', instance: path });
  expect(upstream.callsOf(me)).toEqual([]);
});

everywhere(
  says("The upstream's URL is made from the row, never from the raw path."),
  async ({ call, upstream, me }) => {
    const query = 'x=/../..//%2e%2e/%00&y=http://elsewhere.example/&z=;a';
    await call(`/api/v2/subscription?${query}`);
    await call(`${METHOD}007?x=1`);
    for (const path of ['/api/v2//subscription/', '/api/v2%2fsubscription/', '/api/v2/subscription/;x=1'])
      expect((await call(path)).status).toBe(404);
    const targets = upstream.callsOf(me).map(({ target }) => target);
    expect(targets).toEqual([`/api/v2/subscription/?${query}`, `${METHOD}007/?x=1`]);
  },
);

everywhere(says('Unknown path: 404 `unknown_endpoint`.'), async ({ call, upstream, me }) => {
  for (const path of ['/api', '/api/v2/', '/api/v2/nothing/', '/favicon.ico', '/bff/v1/nothing', '/admin'])
    expectProblem(await call(path, { token: null }), { status: 404, code: 'unknown_endpoint', instance: path });
  expect(upstream.callsOf(me)).toEqual([]);
});

everywhere(says('Known path, other method: 405 with `Allow`.'), async ({ call, upstream, me }) => {
  for (const [path, method, allow] of [
    [METHOD, 'PUT', 'GET, HEAD, DELETE'],
    [`${METHOD}1071/`, 'DELETE', 'GET, HEAD'],
    ['/api/v2/apikey', 'PATCH', 'POST'],
    ['/bff/v1/account-overview', 'POST', 'GET, HEAD'],
    ['/docs', 'DELETE', 'GET, HEAD'],
  ] as const) {
    const got = await call(path, { method, token: null });
    expectProblem(got, { status: 405, code: 'method_not_allowed', instance: path });
    expect(got.headers.get('allow')).toBe(allow);
  }
  expect(upstream.callsOf(me)).toEqual([]);
});

/** Values that each documented parameter with a type does not take (`upstream-api.md`, endpoints 14 and 19 to 25). */
const BAD: Readonly<Record<string, readonly string[]>> = {
  page: ['0', '-1', 'two', '1.5', '', '%D9%A1', '1e3', '%zz'],
  page_size: ['0', '-1', 'all', '1.0', ''],
  plan_id: ['x', '1.5', '', '1%00', '1,2'],
  referral_channel: ['x', '1.5', 'null'],
  dismissed_at__isnull: ['maybe', '', '2'],
  timestamp__lte: ['yesterday', '', '2026-13-01', '09.06.2026', '1781000000'],
  timestamp__gte: ['yesterday', '2026-06-09T25', 'T'],
  starting_after: ['x', '2026'],
  ordering: ['x', '--id', 'id,created_at', ''],
};

/** The lists whose filters the document does not give take any `ordering`. */
const FREE_ORDERING = new Set(['listPaymentMethods', 'listTransactions', 'listPendingPayments']);

const QUERIED = allOperations.flatMap(({ id, query = {} }) => {
  const typed = Object.keys(query).filter((name) => name in BAD && !(name === 'ordering' && FREE_ORDERING.has(id)));
  return typed.length === 0 ? [] : ([[id, typed]] as const);
});

const entry = (field: string) => ({ code: expect.any(String), message: expect.any(String), field });

everywhere(
  says('Documented parameters are checked by type (400, an entry for each bad one);'),
  async ({ call, upstream, me }) => {
    const path = '/api/v2/proxy/activity/';
    const got = await call(`${path}?timestamp__lte=T&x=1&starting_after=x&page_size=all&page_size=0`);
    const { errors } = expectProblem(got, { status: 400, code: 'validation_failed', instance: path });
    expect(errors).toEqual(['timestamp__lte', 'starting_after', 'page_size'].map(entry));
    expect(upstream.callsOf(me)).toEqual([]);
  },
);

everywhere(says('others go through, in order.'), async ({ call, upstream, me }) => {
  const query = 'Page=x&page__gte=x&plan=x&__proto__=x&constructor=x&toString=x&a%5Bb%5D=%zz&b=2&a=1&b=1&=&&x==';
  expect((await call(`/api/v2/notification/?${query}`)).status).toBe(200);
  expect((await call('/api/v2/subscription/?')).status).toBe(200);
  const targets = upstream.callsOf(me).map(({ target }) => target);
  expect(targets).toEqual([`/api/v2/notification/?${query}`, '/api/v2/subscription/']);
});

const { ask, call, upstream } = openGateway();

/** No `<ID>` of any kind; as it stands in a URL, which a `Request` leaves as it is. */
const BAD_IDS = [
  String.raw`%31 1%00 %00 1%2f 1%2F2 %2f ..%2f1 ... 1.0 1. a.b % %zz 1% %u0031 %c0%ae 1;a=b 1; ;1 1,2 1%20 %201 1%0a`,
  String.raw`1%0d%0aX-Subuser:%207 %09 1%3Fplan_id=2 1%23 1%5c +1 1+1 {id} :id * (1) [1] 1' 1" 1|2 1@2 1=1 1&2 1:2 ~ ! $`,
  '%D9%A1 %EF%BC%91',
].flatMap((line) => line.split(' '));

describe(says('anything else is 404 without a call'), () => {
  test.each([
    ['digits', METHOD, [...BAD_IDS, '1a', '1_000', '0x1', '1e3', 'NaN', 'null']],
    ['an IP authorization', AUTHORIZATION, BAD_IDS],
  ])('of %s', async (_, path, ids) => {
    for (const id of ids) expect([id, (await call(`${path}${id}/`)).code]).toEqual([id, 'unknown_endpoint']);
    expect(upstream.calls).toEqual([]);
  });

  test.each([METHOD, `${AUTHORIZATION}1/`, '/api/v2/subscription/'])('near %s', async (path) => {
    const within = ['/v2//', '/v2%2f', '/V2/', '/v3/', '/%762/'].map((part) => path.replace('/v2/', part));
    const ends = ['%2f', ';x=1/', '.json'].map((end) => path.slice(0, -1) + end);
    const behind = ['/', 'x.y', '%00', '%20', '%0d%0a'].map((more) => path + more);
    for (const target of [...within, ...ends, ...behind, `/x${path}`])
      expect([target, (await call(target)).code]).toEqual([target, 'unknown_endpoint']);
    expect(upstream.calls).toEqual([]);
  });
});

const fieldsOf = async (path: string, method: string, query: string) => {
  const got = await call(`${path}?${query}`, { method });
  return expectProblem(got, { status: 400, code: 'validation_failed' }).errors.map(({ field }) => field);
};

describe(says('Documented parameters are checked by type'), () => {
  test.each(QUERIED)('of %s: %j', async (id, typed) => {
    const { method, path } = exampleInput(id);
    for (const name of typed)
      for (const bad of BAD[name]!) expect(await fieldsOf(path, method, `x=1&${name}=${bad}&y=2`)).toEqual([name]);
    const all = [...typed, ...typed].map((name) => `${name}=${BAD[name]![0]}`).join('&');
    expect(await fieldsOf(path, method, all)).toEqual(typed);
    expect(upstream.calls).toEqual([]);
  });

  test('a thousand times, and named once', async () => {
    const fields = await fieldsOf('/api/v2/notification/', 'GET', Array<string>(1_000).fill('page').join('&'));
    expect(fields).toEqual(['page']);
  });

  test.each([
    '/api/v2/proxy/activity/?starting_after=2026-06-09T11:50:08.101337+02:00',
    '/api/v2/proxy/activity/?timestamp__gte=2026-06-09T11%3A50%3A08Z&error_reason=*&bytes__gte=1.5k',
    '/api/v2/notification/?dismissed_at__isnull=false&ordering=dismissed_at',
    '/api/v2/referral/credit/?referral_channel=&mode=&status=',
    '/api/v2/payment/transaction/?ordering=-amount,id&status=completed',
  ])('and %s is good', async (path) => {
    expect((await ask('listProxyActivity', { path })).status).toBe(200);
    expect(upstream.calls.map(({ target }) => target)).toEqual([path]);
  });
});
