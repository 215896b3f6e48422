import { describe, expect, test } from 'vitest';
import { type CallOptions, createClient, streamOverview } from '../../client/src/index.ts';
import { legOf, openOverviews, overviewTable, SUBSCRIPTION as SUBSCRIPTION_PATH } from '../overviews/helpers.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { json } from '../support/scripted-upstream.ts';
import { callTo, gistOf, openClient, openStandIn, problemOf, SUBSCRIPTION } from './helpers.ts';

const [, accountOverview] = overviewTable[0]!;

/** What the gateway gets of a call. */
async function sent(id: Parameters<typeof callTo>[1], input?: object, options?: CallOptions) {
  const { gateway, portico } = await openStandIn();
  gateway.on(() => true, json(200, {}));
  await callTo(portico, id)(input, options);
  const [call, ...others] = gateway.calls;
  expect(others).toEqual([]);
  return call!;
}

const targetOf = async (...given: Parameters<typeof sent>) => (await sent(...given)).target;

describe('ids', () => {
  test.for([
    [12, '12'],
    ['9223372036854775807', '9223372036854775807'],
    ['auth_91-a', 'auth_91-a'],
    ['a/b?c=d#e%2F é', 'a%2Fb%3Fc%3Dd%23e%252F%20%C3%A9'],
  ] as const)('%s goes into the path as %s, and is no part of the query', async ([id, written]) => {
    expect(await targetOf('getTransaction', { id })).toBe(`/api/v2/payment/transaction/${written}/`);
  });

  test('beyond 2^53 it reaches the upstream with all its digits', async () => {
    const { portico, upstream } = await openClient();
    const path = '/api/v2/payment/transaction/9223372036854775807/';
    upstream.on(`GET ${path}`, json(200, bodyOf('getTransaction', 1)));
    await portico.getTransaction({ id: '9223372036854775807' });
    expect(upstream.calls.map(({ target }) => target)).toEqual([path]);
  });

  test('of a write without a body it goes into the path as well', async () => {
    const { method, target, body, headers } = await sent('refreshSubuser', { id: 5 });
    expect([method, target, body]).toEqual(['POST', '/api/v2/subuser/5/refresh/', '']);
    expect(headers).not.toHaveProperty('content-type');
  });
});

describe('the query', () => {
  const PATH = '/api/v2/payment/transaction/';

  test.for([
    ['numbers and texts', { page: 2, page_size: '10' }, 'page=2&page_size=10'],
    ['nothing', {}, ''],
    ['what is undefined, which is left out', { page: undefined, page_size: 10 }, 'page_size=10'],
    ['a list, with commas', { status: ['a', 'b'] }, 'status=a%2Cb'],
    ['a record, with brackets', { created: { since: 1, until: 2 } }, 'created%5Bsince%5D=1&created%5Buntil%5D=2'],
    [
      'what is undefined in a record, which is left out',
      { created: { since: undefined, until: 2 } },
      'created%5Buntil%5D=2',
    ],
    ['characters that mean something', { 'a&b': 'c=d&e+f #é' }, 'a%26b=c%3Dd%26e%2Bf%20%23%C3%A9'],
    ['false and zero', { a: false, b: 0 }, 'a=false&b=0'],
  ] as const)('of the input has %s', async ([, input, query]) => {
    expect(await targetOf('listTransactions', input)).toBe(query ? `${PATH}?${query}` : PATH);
  });

  test('of the options is put behind that of the input', async () => {
    const options = { query: { status: 'completed', ids: [1, 2] } };
    expect(await targetOf('listTransactions', { page: 2 }, options)).toBe(`${PATH}?page=2&status=completed&ids=1%2C2`);
    expect(await targetOf('listTransactions', undefined, options)).toBe(`${PATH}?status=completed&ids=1%2C2`);
  });

  test('of the options as text is sent as it is written', async () => {
    expect(await targetOf('listTransactions', { page: 2 }, { query: 'a=1,2&b%5B%5D=%41' })).toBe(
      `${PATH}?page=2&a=1,2&b%5B%5D=%41`,
    );
    expect(await targetOf('listTransactions', {}, { query: '' })).toBe(PATH);
  });

  test('of a write without a body is its input, and that of one with a body stands in the options only', async () => {
    const bodiless = await sent('refreshProxyList', { plan_id: 3 });
    expect([bodiless.target, bodiless.body]).toEqual(['/api/v2/proxy/list/refresh/?plan_id=3', '']);
    const bodied = await sent('updateReferralConfig', { mode: 'credits' }, { query: { a: 1 } });
    expect([bodied.target, bodied.body]).toEqual(['/api/v2/referral/config/?a=1', '{"mode":"credits"}']);
  });

  test('of a DELETE is its input', async () => {
    const { method, target, body } = await sent('deleteSession', { everywhere: true });
    expect([method, target, body]).toEqual(['DELETE', '/bff/v1/session?everywhere=true', '']);
  });

  test('of an overview has sections and fields as the gateway reads them', async () => {
    const world = await openOverviews();
    const portico = createClient({ url: world.gateway.url, token: world.token });
    const { data, meta } = await portico.getAccountOverview({
      sections: ['subscription', 'notifications'],
      fields: { subscription: ['id', 'plan'], notifications: ['type'] },
    });
    expect(Object.keys(meta.sections)).toEqual(['subscription', 'notifications']);
    expect(Object.keys(data.subscription)).toEqual(['id', 'plan']);
    expect(data.notifications?.results.map((one) => Object.keys(one))).toEqual([['type']]);
    expect(world.upstream.calls).toHaveLength(2);
  });
});

describe('the body', () => {
  test('is the input as JSON, less what is undefined', async () => {
    const input = { mode: 'credits', a: undefined, b: null, c: [1, { d: 'é' }] };
    const { method, body, headers } = await sent('updateReferralConfig', input);
    expect([method, body]).toEqual(['PATCH', '{"mode":"credits","b":null,"c":[1,{"d":"é"}]}']);
    expect(headers['content-type']).toBe('application/json');
  });

  test('is not there without input, where none is needed', async () => {
    const { body, headers } = await sent('startIdVerification');
    expect(body).toBe('');
    expect(headers).not.toHaveProperty('content-type');
  });

  test('leaves the input as it was', async () => {
    const input = Object.freeze({ id: 5, page: 1 });
    await sent('getTransaction', input);
    expect(input).toEqual({ id: 5, page: 1 });
  });
});

describe('options', () => {
  test('without any, no header stands in a request that is not needed', async () => {
    const { headers } = await sent('getSubscription');
    for (const name of ['cache-control', 'prefer', 'idempotency-key', 'content-type', 'if-none-match'])
      expect(headers).not.toHaveProperty(name);
  });

  test('fresh asks the upstream, whatever the gateway has', async () => {
    const { portico, upstream } = await openClient();
    upstream.on(SUBSCRIPTION, ...[1, 2].map((mark) => json(200, bodyOf('getSubscription', mark))));
    const marks = [];
    for (const options of [{}, {}, { fresh: true }, { fresh: false }])
      marks.push(await portico.getSubscription(undefined, options));
    expect(marks).toMatchObject([{ x_mark: 1 }, { x_mark: 1 }, { x_mark: 2 }, { x_mark: 2 }]);
  });

  test('strict makes an overview fail with any of its sections', async () => {
    const world = await openOverviews();
    const portico = createClient({ url: world.gateway.url, token: world.token });
    world.on(legOf(accountOverview, 'notifications'), json(404, {}));
    const asked = { sections: ['subscription', 'notifications'] } as const;
    expect((await portico.getAccountOverview(asked)).data.notifications).toBeNull();
    const problem = await problemOf(portico.getAccountOverview(asked, { strict: true }));
    expect([problem.code, problem.section]).toEqual(['not_found', 'notifications']);
  });

  test('headers are added, and stand above those that the client would send', async () => {
    const headers = { 'X-Request-Id': 'mine', Authorization: 'Token other', 'Cache-Control': 'no-store' };
    const call = await sent('getSubscription', undefined, { fresh: true, headers });
    expect(call.headers).toMatchObject({
      'x-request-id': 'mine',
      authorization: 'Token other',
      'cache-control': 'no-store',
    });
  });

  test('headers may be written small', async () => {
    const headers = { 'content-type': 'application/vnd.mine+json', authorization: 'Token other' };
    expect((await sent('updateReferralConfig', { mode: 'credits' }, { headers })).headers).toMatchObject(headers);
  });

  test('idempotencyKey is a header of the request', async () => {
    const { headers } = await sent('createApiKey', { title: 'mine' }, { idempotencyKey: 'order-1' });
    expect(headers['idempotency-key']).toBe('order-1');
  });
});

describe('the connection', () => {
  test('a url may end with a slash', async () => {
    const { gateway, clientWith } = await openStandIn();
    gateway.on(SUBSCRIPTION, json(200, {}));
    await clientWith({ url: `${gateway.url}/` }).getSubscription();
    expect(gateway.calls.map(({ target }) => target)).toEqual([SUBSCRIPTION_PATH]);
  });

  test('without a token there is no Authorization', async () => {
    const { gateway, clientWith } = await openStandIn();
    gateway.on(SUBSCRIPTION, json(200, {}));
    for (const token of [undefined, () => undefined, () => Promise.resolve(undefined)])
      await clientWith({ token }).getSubscription();
    for (const { headers } of gateway.calls) expect(headers).not.toHaveProperty('authorization');
  });

  test('a redirect is not followed: what is sent goes nowhere else', async () => {
    const [{ gateway, portico, token }, other] = [await openStandIn(), await openStandIn()];
    gateway.on(() => true, json(307, '', { location: `${other.gateway.url}/bff/v1/session` }));
    expect(gistOf(await problemOf(portico.createSession({ token })))).toBe('unexpected_answer 307 unknown');
    expect([gateway.calls.length, other.gateway.calls]).toEqual([1, []]);
  });

  test('credentials and fetch are as they were given', async () => {
    const asked: RequestInit[] = [];
    const fetch = (_: unknown, init?: RequestInit) => {
      asked.push(init ?? {});
      return Promise.resolve(Response.json({}));
    };
    await createClient({ fetch, credentials: 'include' }).getSubscription();
    await createClient({ fetch }).getSubscription();
    expect(asked.map((init) => init.credentials)).toEqual(['include', undefined]);
    expect(asked[1]).not.toHaveProperty('credentials'); // Workers refuse the name
  });
});

/** Keeps integers beyond 2^53 as texts. */
const parse = (text: string): unknown =>
  JSON.parse(text, (_, value: unknown, context?: { source?: string }) =>
    typeof value === 'number' && !Number.isSafeInteger(value) && /^\d+$/.test(context?.source ?? '')
      ? context?.source
      : value,
  );

describe('parse', () => {
  const BIG = '{"x_big":9007199254740993123,"x_small":5,"x_float":2.5}';
  const KEPT = { x_big: '9007199254740993123', x_small: 5, x_float: 2.5 };

  test('reads answers, so that big ids stay what they are', async () => {
    const world = await openClient();
    const portico = createClient({ url: world.gateway.url, token: world.token, parse });
    world.upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1).replace('{', `{"x":${BIG},`)));
    expect(await portico.getSubscription()).toMatchObject({ x: KEPT });
    expect(await world.portico.getSubscription()).not.toMatchObject({ x: KEPT });
  });

  test('reads the lines of streams', async () => {
    const { gateway, clientWith } = await openStandIn();
    gateway.on(
      () => true,
      json(200, `{"section":"subscription","state":"fresh","data":${BIG}}\n{"complete":true}\n`, {
        'content-type': 'application/x-ndjson',
      }),
    );
    const lines: unknown[] = [];
    for await (const line of streamOverview(clientWith({ parse }), 'getAccountOverview')) lines.push(line);
    expect(lines).toEqual([{ section: 'subscription', state: 'fresh', data: KEPT }]);
  });
});
