import { describe, expect, test } from 'vitest';
import {
  type CallOptions,
  createClient,
  type OperationId,
  type OverviewId,
  type Routes,
  streamOverview,
} from '../../client/src/index.ts';
import { callTo, gistThrown, json, LIST, openStandIn, streamed, SUBSCRIPTION, thrownBy } from './helpers.ts';

/** What the gateway gets of a call. */
async function sent(id: OperationId, input?: object, options?: CallOptions) {
  const { gateway, portico } = openStandIn();
  gateway.on('*', json(200, {}));
  await callTo(portico, id)(input, options);
  expect(gateway.calls).toHaveLength(1);
  return gateway.calls[0]!;
}

const ACCOUNT = 'GET /bff/v1/account-overview';

/** What the operation is given, and what stands in the request line. */
const TARGETS: readonly (readonly [OperationId, object | undefined, CallOptions | undefined, string])[] = [
  ['getTransaction', { id: 12 }, {}, `GET ${LIST}12/`],
  ['getTransaction', { id: '9223372036854775807' }, {}, `GET ${LIST}9223372036854775807/`],
  ['getTransaction', { id: 'a/b?c=d#e%2F é' }, {}, `GET ${LIST}a%2Fb%3Fc%3Dd%23e%252F%20%C3%A9/`],
  ['refreshSubuser', { id: 5 }, {}, 'POST /api/v2/subuser/5/refresh/'],
  ['listTransactions', { page: 2, page_size: '10' }, {}, `GET ${LIST}?page=2&page_size=10`],
  ['listTransactions', undefined, undefined, `GET ${LIST}`],
  ['listTransactions', { page: undefined, page_size: 10 }, {}, `GET ${LIST}?page_size=10`],
  ['listTransactions', { status: ['a', 'b'], c: false, d: 0 }, {}, `GET ${LIST}?status=a%2Cb&c=false&d=0`],
  ['listTransactions', { at: { since: 1, until: undefined } }, {}, `GET ${LIST}?at%5Bsince%5D=1`],
  ['listTransactions', { 'a&b': 'c=d&e+f #é' }, {}, `GET ${LIST}?a%26b=c%3Dd%26e%2Bf%20%23%C3%A9`],
  ['listTransactions', { page: 2 }, { query: { a: 'b', ids: [1, 2] } }, `GET ${LIST}?page=2&a=b&ids=1%2C2`],
  ['listTransactions', undefined, { query: { a: 'b' } }, `GET ${LIST}?a=b`],
  ['listTransactions', { page: 2 }, { query: 'a=1,2&b%5B%5D=%41' }, `GET ${LIST}?page=2&a=1,2&b%5B%5D=%41`],
  ['refreshProxyList', { plan_id: 3 }, {}, 'POST /api/v2/proxy/list/refresh/?plan_id=3'],
  ['deleteSession', { everywhere: true }, {}, 'DELETE /bff/v1/session?everywhere=true'],
  ['getAccountOverview', { fields: { a: ['b', 'c'] } }, {}, `${ACCOUNT}?fields%5Ba%5D=b%2Cc`],
];

test.for(TARGETS)('%s %j %j is %s, without a body', async ([id, input, options, line]) => {
  const { method, target, body, headers } = await sent(id, input && Object.freeze(input), options);
  expect([`${method} ${target}`, body]).toEqual([line, '']);
  for (const name of ['cache-control', 'prefer', 'idempotency-key', 'content-type', 'if-none-match'])
    expect(headers).not.toHaveProperty(name); // nothing that is not needed
});

test('the input of a write is its body, as JSON, less what is undefined', async () => {
  const input = { mode: 'credits', a: undefined, b: null, c: [1, { d: 'é' }] };
  const { method, target, body, headers } = await sent('updateReferralConfig', input, { query: { a: 1 } });
  expect([method, target]).toEqual(['PATCH', '/api/v2/referral/config/?a=1']);
  expect(body).toBe('{"mode":"credits","b":null,"c":[1,{"d":"é"}]}');
  expect(headers['content-type']).toBe('application/json');
  expect(await sent('startIdVerification')).toMatchObject({ body: '' });
});

test.for([
  [{ fresh: true }, { 'cache-control': 'no-cache' }],
  [{ strict: true }, { prefer: 'handling=strict' }],
  [{ idempotencyKey: 'order-1' }, { 'idempotency-key': 'order-1' }],
  [{ headers: { Authorization: 'Token other' } }, { authorization: 'Token other' }],
  [{ fresh: true, headers: { 'cache-control': 'no-store' } }, { 'cache-control': 'no-store' }],
  [{ headers: { 'content-type': 'application/vnd.mine+json' } }, { 'content-type': 'application/vnd.mine+json' }],
] as const)('options %j are headers', async ([options, headers]) => {
  expect((await sent('createApiKey', { title: 'mine' }, options)).headers).toMatchObject(headers);
});

describe('the connection', () => {
  test('a url may end with a slash, and without a token there is no Authorization', async () => {
    const { gateway, clientWith } = openStandIn();
    gateway.on(SUBSCRIPTION, json(200, {}));
    for (const token of [undefined, '', () => undefined, () => Promise.resolve(undefined)])
      await clientWith({ token, url: 'http://gateway.test/' }).getSubscription();
    expect(gateway.calls.map(({ headers }) => 'authorization' in headers)).toEqual([false, false, false, false]);
  });

  test('credentials are as they were given, and redirects are never followed', async () => {
    const { gateway, clientWith } = openStandIn();
    gateway.on('*', json(200, {}));
    await clientWith({ credentials: 'include' }).getSubscription();
    await clientWith({}).getSubscription();
    const [one, other] = gateway.calls.map(({ init }) => init);
    expect([one, other]).toMatchObject([{ credentials: 'include', redirect: 'manual' }, { redirect: 'manual' }]);
    expect(other).not.toHaveProperty('credentials'); // Workers refuse the name
  });

  test.for([undefined, '', '127.0.0.1:8787', 'localhost:8787', '/bff'])(
    'without an address, as with %j, a write is a mistake, and no failed connection',
    async (url) => {
      const error = await thrownBy(createClient({ url }).purchasePlan({}));
      expect(error).toBeInstanceOf(TypeError);
      expect(error).toMatchObject({ message: expect.stringContaining('url') as string });
    },
  );
});

/** Keeps integers beyond 2^53 as texts. */
const parse = (text: string): unknown =>
  JSON.parse(text, (_, value: unknown, context?: { source?: string }) =>
    typeof value === 'number' && !Number.isSafeInteger(value) && /^\d+$/.test(context?.source ?? '')
      ? context?.source
      : value,
  );

test('`parse` reads answers and the lines of streams, so that big ids stay what they are', async () => {
  const BIG = '{"x_big":9007199254740993123,"x_small":5,"x_float":2.5}';
  const KEPT = { x_big: '9007199254740993123', x_small: 5, x_float: 2.5 };
  const { gateway, clientWith } = openStandIn();
  gateway.on(SUBSCRIPTION, json(200, BIG));
  gateway.on(ACCOUNT, streamed([`{"data":${BIG}}\n{"complete":true}\n`]));
  expect(await clientWith({ parse }).getSubscription()).toEqual(KEPT);
  expect(await clientWith({}).getSubscription()).not.toEqual(KEPT);
  for await (const line of streamOverview(clientWith({ parse }), 'getAccountOverview'))
    expect(line).toMatchObject({ data: KEPT });
});

test('an answer without a body is undefined, and no problem', async () => {
  const { gateway, portico } = openStandIn();
  gateway.on('*', json(204));
  for (const act of [portico.getSubscription, portico.updateReferralConfig]) expect(await act({})).toBeUndefined();
  expect(gateway.calls).toHaveLength(2);
});

test('`response` gives the answer itself, and throws its problem all the same', async () => {
  const { gateway, portico } = openStandIn();
  gateway.on(SUBSCRIPTION, json(200, { id: 5 }, { age: '3' }), json(404, '<html>'));
  const answer = await portico.response('getSubscription');
  expect([answer.status, answer.headers.get('Age'), await answer.json()]).toEqual([200, '3', { id: 5 }]);
  expect(await gistThrown(portico.response('getSubscription'))).toBe('unexpected_answer 404');
});

test('routes of a gateway’s own are called in their place', async () => {
  const { gateway, clientWith } = openStandIn();
  const own = { getBadge: 'GET /api/v2/badge/{id}/', getCardOverview: 'GET /bff/v1/card-overview/{id}' };
  gateway.on('GET /api/v2/badge/7/', json(200, { title: 'Early bird' }));
  gateway.on('GET /bff/v1/card-overview/7', json(200, ' '));
  const portico = clientWith({ routes: own as unknown as Routes });
  expect(await callTo(portico, 'getBadge' as OperationId)({ id: 7 })).toEqual({ title: 'Early bird' });
  expect(portico).not.toHaveProperty('getSubscription');
  const input: object = { id: 7 };
  const stream = streamOverview(portico, 'getCardOverview' as OverviewId, input);
  await expect(stream.next()).rejects.toMatchObject({ problem: { instance: '/bff/v1/card-overview/7' } });
});
