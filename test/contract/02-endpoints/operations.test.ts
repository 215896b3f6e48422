import { describe, expect, test } from 'vitest';
import { allOperations, type OperationId } from '../../support/account-api.ts';
import { says } from '../../support/contract.ts';
import { exampleBody, exampleInput } from '../../support/examples.ts';
import { type Asking, openGateway } from '../../support/gateway.ts';
import { expectCommonHeaders, expectProblem } from '../../support/problem.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';

/** The one sweep over all operations: routing, checks, credential and bytes. Each rule has a file of its own. */

/**
 * The list of `upstream-api.md`, in its order, and what it says of each: takes a body, or one or none; answers without
 * one; answers with pages; takes no credential. Not made from the rows: a wrong row would be right then.
 */
const LISTED: readonly (readonly [id: OperationId, endpoint: string, kinds?: string])[] = [
  ['getApiKey', 'GET /api/v2/apikey/{id}/'],
  ['createApiKey', 'POST /api/v2/apikey/', 'body'],
  ['listPaymentMethods', 'GET /api/v2/payment/method/', 'pages'],
  ['getPaymentMethod', 'GET /api/v2/payment/method/{id}/'],
  ['deletePaymentMethod', 'DELETE /api/v2/payment/method/', '204'],
  ['listTransactions', 'GET /api/v2/payment/transaction/', 'pages'],
  ['getTransaction', 'GET /api/v2/payment/transaction/{id}/'],
  ['listPendingPayments', 'GET /api/v2/payment/pending/', 'pages'],
  ['getPendingPayment', 'GET /api/v2/payment/pending/{id}/'],
  ['purchasePlan', 'POST /api/v2/subscription/checkout/purchase/', 'body'],
  ['getSubscription', 'GET /api/v2/subscription/'],
  ['getReferralConfig', 'GET /api/v2/referral/config/'],
  ['updateReferralConfig', 'PATCH /api/v2/referral/config/', 'body'],
  ['listReferralCredits', 'GET /api/v2/referral/credit/', 'pages'],
  ['getReferralCredit', 'GET /api/v2/referral/credit/{id}/'],
  ['listEarnOuts', 'GET /api/v2/referral/earnout/', 'pages'],
  ['getEarnOut', 'GET /api/v2/referral/earnout/{id}/'],
  ['listReferralChannels', 'GET /api/v2/referral/channel/'],
  ['getSubuser', 'GET /api/v2/subuser/{id}/'],
  ['refreshSubuser', 'POST /api/v2/subuser/{id}/refresh/'],
  ['getIpAuthorization', 'GET /api/v2/proxy/ipauthorization/{id}/'],
  ['deleteIpAuthorization', 'DELETE /api/v2/proxy/ipauthorization/{id}/', '204'],
  ['refreshProxyList', 'POST /api/v2/proxy/list/refresh/', '204'],
  ['listProxyActivity', 'GET /api/v2/proxy/activity/', 'pages'],
  ['listNotifications', 'GET /api/v2/notification/', 'pages'],
  ['startIdVerification', 'POST /api/v2/idverification/start/', 'maybe'],
  ['getVerificationFlow', 'GET /api/v2/verification/flow/{id}/'],
  ['registerSocial', 'POST /api/v2/register/social/', 'body open'],
  ['loginSocial', 'POST /api/v2/login/social/', 'body open'],
];

const DOCUMENTED = LISTED.map(([id, endpoint, kinds = '']) => ({ id, endpoint, kinds }));

const QUERY = 'x_b=2&x_a=%7e%2F&x_b=1&x_empty=&x_flag&x_list[]=(1)&x_plus=a+b%20c';

/** What a client may try and no upstream may see: hop-by-hop, made-up identities, cookies, ranges. */
const UNWANTED = {
  cookie: 'sessionid=x',
  'x-forwarded-for': '203.0.113.9',
  'x-subuser': '7',
  'x-http-method-override': 'DELETE',
  'x-original-url': '/api/v2/apikey/1/',
  accept: 'text/html',
  'accept-encoding': 'br',
  range: 'bytes=0-1',
  'if-modified-since': 'Tue, 09 Jun 2026 12:00:00 GMT',
  via: '1.1 elsewhere',
  te: 'trailers',
  'x-hop': 'named by Connection',
  connection: 'x-hop, authorization, te, upgrade',
};

const methodOf = (endpoint: string) => endpoint.split(' ')[0]!;

/** What the upstream says, and what the client gets, whose own origin stands in the links. */
const textsOf = (id: OperationId, isPaged: boolean, host: string) => {
  const { path } = exampleInput(id);
  const texts = ['https://internal.example', host].map((origin) =>
    exampleBody(id, isPaged ? { next: `${origin}${path}?page=3&x=%7e`, previous: `${origin}${path}` } : {}),
  );
  return { sent: texts[0]!, expected: texts[1]! };
};

const { ask, call, upstream } = openGateway();

test(`${says('All 29: same method, path, query and JSON')}: they are the documented ones`, () => {
  const rows = allOperations.map(({ id, method, path }) => `${id} ${method} ${path}`);
  expect(rows.toSorted()).toEqual(DOCUMENTED.map(({ id, endpoint }) => `${id} ${endpoint}`).toSorted());
  expect(DOCUMENTED).toHaveLength(29);
});

describe.each(DOCUMENTED)('$id', ({ id, endpoint, kinds }) => {
  const { path, query, body } = exampleInput(id);
  const method = methodOf(endpoint);
  const [status, isOpen] = [kinds.includes('204') ? 204 : 200, kinds.includes('open')];
  const hasBody = kinds.includes('body') || kinds.includes('maybe');

  test.each([
    ['Token', path],
    ['bearer', path.slice(0, -1)],
  ])(
    `${says('All 29: same method, path, query and JSON, with or without the trailing slash')}: %s, %s`,
    async (scheme, at) => {
      const key = secret();
      const { sent, expected } = textsOf(id, kinds.includes('pages'), 'http://localhost');
      upstream.next(id, answer(status, sent));
      const target = `?${[query, QUERY].filter(Boolean).join('&')}`;
      const headers = { ...UNWANTED, authorization: `${scheme} ${key}`, 'user-agent': 'app/1.0 (test)' };
      const got = await ask(id, { path: at + target, token: null, headers });
      expect([got.status, got.text]).toEqual([status, expected]);
      expectCommonHeaders(got);
      expect(got.headers.get('content-type')).toBe(status === 204 ? null : 'application/json');
      const [only, ...more] = upstream.calls;
      expect([only?.method, only?.target, only?.body, more]).toEqual([method, path + target, body ?? '', []]);
      expect(only?.headers).toEqual({
        accept: 'application/json',
        'user-agent': 'app/1.0 (test)',
        'x-request-id': got.headers.get('x-request-id'),
        traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-9a-f]$/),
        via: expect.stringMatching(/^1\.1 portico-[\w-]{12}$/),
        ...(!isOpen && { authorization: `Token ${key}` }),
        ...(hasBody && { 'content-type': 'application/json' }),
      });
    },
  );

  test(says('Known path, other method: 405'), async () => {
    const there = DOCUMENTED.filter((other) => other.endpoint.split(' ')[1] === endpoint.split(' ')[1]);
    const allowed = there.flatMap((one) =>
      methodOf(one.endpoint) === 'GET' ? ['GET', 'HEAD'] : methodOf(one.endpoint),
    );
    for (const other of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((one) => !allowed.includes(one))) {
      const got = await call(path, { method: other });
      expect([other, got.status]).toEqual([other, 405]);
      expect(got.headers.get('allow')?.split(', ').toSorted()).toEqual(allowed.toSorted());
    }
    expect(upstream.calls).toEqual([]);
  });

  test(
    isOpen ? says('Social register and login take none') : says('with `WWW-Authenticate: Token`, no call'),
    async () => {
      for (const headers of [{}, { authorization: 'Basic eDp5' }]) {
        const got = await ask(id, { token: null, headers });
        if (isOpen) expect(got.status).toBe(200);
        else expectProblem(got, { status: 401, code: 'unauthenticated', instance: path });
        expect(got.headers.get('www-authenticate')).toBe(isOpen ? null : 'Token');
      }
      expect(upstream.calls.filter(({ headers }) => !isOpen || 'authorization' in headers)).toEqual([]);
    },
  );

  if (endpoint.includes('{id}')) {
    test(says('anything else is 404 without a call'), async () => {
      for (const bad of ['', '%31', '1%2f2', '1.0', '1,2', '1;a=b', 'x'.repeat(65)]) {
        const at = endpoint.split(' ')[1]!.replace('{id}', bad);
        if (DOCUMENTED.every((one) => one.endpoint.split(' ')[1] !== at.replace('//', '/')))
          expectProblem(await call(at, { method }), { status: 404, code: 'unknown_endpoint', instance: at });
      }
      expect(upstream.calls).toEqual([]);
    });
  }

  if (!hasBody) return;
  test(says('**Body** checked against the document'), async () => {
    const refused: readonly (readonly [string, number, Asking])[] = [
      ['malformed_json', 400, { body: '{"a":NaN}' }],
      ['validation_failed', 400, { body: '[]' }],
      ['unsupported_media_type', 415, { body: '{}', headers: { 'content-type': 'text/plain' } }],
      ['payload_too_large', 413, { body: `"${'x'.repeat(65_535)}"` }],
    ];
    for (const [code, expected, asking] of refused)
      expectProblem(await ask(id, asking), { status: expected, code, instance: path });
    expect(upstream.calls).toEqual([]);
    const got = await call(path, { method });
    if (kinds.includes('maybe'))
      expect([got.status, upstream.calls[0]?.headers['content-type']]).toEqual([200, undefined]);
    else expectProblem(got, { status: 400, code: 'malformed_json', instance: path });
  });
});

/** On each stage all operations in one test: what a runtime does to a request and its answer is the same for all. */
everywhere(says('All 29: same method, path, query and JSON, with or without the trailing slash.'), async (stage) => {
  for (const { id, endpoint, kinds } of DOCUMENTED) {
    const { path, query, body } = exampleInput(id);
    const status = kinds.includes('204') ? 204 : 200;
    const { sent, expected } = textsOf(id, false, '');
    stage.upstream.next(id, answer(status, sent));
    const target = `?${[query, QUERY].filter(Boolean).join('&')}`;
    const got = await stage.ask(id, { path: path.slice(0, -1) + target, headers: { cookie: 'a=b', 'x-subuser': '7' } });
    expect([id, got.status, got.text]).toEqual([id, status, expected]);
    const only = stage.upstream.callsTo(id).at(-1)!;
    expect(`${only.method} ${only.target}`).toBe(`${methodOf(endpoint)} ${path}${target}`);
    expect([only.body, only.headers['cookie'], only.headers['x-subuser']]).toEqual([body ?? '', undefined, undefined]);
  }
});

everywhere(says('A client of the upstream changes its base URL and is done.'), async ({ ask: asks, call: calls }) => {
  const made = await asks('createApiKey');
  expect(made).toMatchObject({ status: 200, version: 2 });
  expect(await calls('/api/v2/subscription/')).toMatchObject({ status: 200, version: 2 });
});
