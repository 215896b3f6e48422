import { Hono, type MiddlewareHandler } from 'hono';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { HostEnv } from '../../../src/index.ts';
import { accountTables, operations } from '../../support/account-api.ts';
import { testClock } from '../../support/clock.ts';
import { says } from '../../support/contract.ts';
import { answerOf, type Asking, headersOf, openGateway, startGateway, textOf } from '../../support/gateway.ts';
import { rawRequest } from '../../support/raw-client.ts';
import { secret } from '../../support/secrets.ts';
import { answer } from '../../support/upstream.ts';

const LISTED = 'https://app.example';
const READ = '/api/v2/subscription/';
const PAGE = '/api/v2/payment/transaction/';
const OVERVIEW = '/bff/v1/account-overview';
const BUY = '/api/v2/subscription/checkout/purchase/';
const json = { 'content-type': 'application/json' };

const of = (token: string, init: RequestInit = {}): RequestInit => ({
  ...init,
  headers: { authorization: `Token ${token}`, ...(init.headers as Record<string, string>) },
});

/** The gateway alone, and another one below `/host` of an app. */
function openBoth() {
  const env = {
    RATE_LIMIT_PER_MINUTE: '6',
    ALLOWED_ORIGINS: LISTED,
    SESSIONS: 'true',
    SECRETS: secret('of-the-gateway-in-a-host'),
  };
  const clock = testClock();
  const [alone, mounted] = [openGateway(env, { clock }), openGateway(env, { clock })];
  const app = new Hono().route('/host', mounted.app as Hono);
  const me = secret();
  const answersOf = async (host: Host, base: string, asked: readonly Case[]) => {
    const answers = [];
    for (const [path, { body, method = body === undefined ? 'GET' : 'POST', ...asking } = {}] of asked) {
      const headers = { 'x-request-id': 'the-same', ...headersOf({ token: me, body, ...asking }) };
      const init = { method, headers, ...(body !== undefined && { body: textOf(body)! }) };
      const { status, headers: got, text } = await answerOf(await host.request(base + path, init));
      const { 'content-length': _length, ...named } = Object.fromEntries(got);
      const steady = { ...named, 'server-timing': named['server-timing']?.replaceAll(/dur=[\d.]+/g, 'dur=…') };
      answers.push({ status, headers: steady, text });
    }
    return answers;
  };
  return { alone, mounted, app, answersOf };
}

type Host = Pick<ReturnType<typeof openGateway>['app'], 'request'>;
type Case = readonly [path: string, asking?: Asking];

const anonymous = { token: null, headers: { 'sec-fetch-site': 'same-origin' } } as const;
const preflight = (origin: string) => ({
  method: 'OPTIONS',
  token: null,
  headers: { origin, 'access-control-request-method': 'GET' },
});
const items = [PAGE, '/api/v2/nothing/', '/api/v2/apikey/'].map((path, at) => ({ id: `${at}`, path }));

const CASES: Readonly<Record<string, readonly Case[]>> = {
  'a miss and a hit': [[READ], [READ], [READ.slice(0, -1)]],
  'pages, which link to others': [[PAGE], [PAGE]],
  overviews: [[OVERVIEW], [OVERVIEW], [`${OVERVIEW}/`, { headers: { accept: 'application/x-ndjson' } }]],
  'a batch': [['/bff/v1/batch', { body: { requests: items } }]],
  'a purchase with a key, once more': [1, 2].map(() => [BUY, { body: { plan_id: 1 }, key: 'k' }] as const),
  sessions: [
    ['/bff/v1/session', anonymous],
    ['/bff/v1/session', { ...anonymous, method: 'DELETE' }],
  ],
  'a 304 and a HEAD': [[READ], [READ, { headers: { 'if-none-match': '*' } }], [READ, { method: 'HEAD' }]],
  'a 401, and 404s': [[READ, { token: null }], ['/api/v2/nothing'], ['/api/v2/%73ubscription/'], ['/bff/v1/nothing']],
  'a 204, and 405s': [
    ['/api/v2/proxy/ipauthorization/1/', { method: 'DELETE' }],
    [READ, { method: 'DELETE' }],
    [OVERVIEW, { body: {} }],
  ],
  'a 429': Array.from({ length: 7 }, () => [READ] as const),
  'what origins are told': [LISTED, 'https://other.example'].flatMap((origin) => [
    [READ, preflight(origin)] as const,
    [READ, { headers: { origin } }] as const,
    ['/api/v2/nothing/', { headers: { origin } }] as const,
  ]),
  'its pages': [['/problems/rate_limited'], ['/problems'], ['/livez']],
};

/** The same text of a gateway below `/host`. */
const below = (text: string) =>
  text.replaceAll('http://localhost/', 'http://localhost/host/').replaceAll(/"(type|instance)":"\//g, '"$1":"/host/');

describe(says('to be mounted with `route` under any path'), () => {
  test.each(Object.entries(CASES))('%s: the same as where it stands alone', async (_, asked) => {
    const { alone, mounted, app, answersOf } = openBoth();
    const wanted = await answersOf(alone.app, '', asked);
    const got = await answersOf(app, '/host', asked);
    expect(got).toEqual(wanted.map((one) => ({ ...one, text: below(one.text) })));
    const targets = (one: typeof alone) => one.upstream.calls.map(({ target }) => target);
    expect(targets(mounted)).toEqual(targets(alone));
  });

  test.each(['@me', 'x%20y', '%C3%A9', '%22,%22count%22:9,%22z%22:%22', '%5C', "'"])(
    'below /own/%s, as a client writes it, links lead back there',
    async (tenant) => {
      const { app: own, handlers, upstream } = openGateway();
      const page = new Hono<HostEnv>()
        .get('/own', handlers, async (c) => c.text((await c.var.portico.read(operations.listNotifications)).text ?? ''))
        .route('/', own as Hono);
      const app = new Hono().route('/own/:tenant', page);
      const [token, path] = [secret(), '/api/v2/notification/'];
      upstream.next('listNotifications', answer(200, { count: 3, next: `${path}?page=2`, results: [] }));
      const next = `http://localhost/own/${tenant}${path}?page=2`;
      for (const at of [path, '/own'])
        expect(await (await app.request(`/own/${tenant}${at}`, of(token))).json()).toEqual({
          count: 3,
          next,
          results: [],
        });
      const problem = (await (await app.request(`/own/${tenant}/api/nothing`)).json()) as object;
      expect(problem).toMatchObject({ type: `/own/${tenant}/problems/unknown_endpoint` });
      expect((await app.request(`/own/${tenant}/api/v2/notificatio%6E/`, of(token))).status).toBe(404);
    },
  );

  test('a parameter of that path is not taken for one of ours', async () => {
    const { app: own, upstream } = openGateway();
    for (const name of ['id', 'code', 'id{[0-9]+}']) {
      const app = new Hono().route(`/of/:${name}`, own as Hono);
      await app.request('/of/77/api/v2/payment/transaction/31/', of(secret()));
      expect(upstream.calls.at(-1)?.path).toBe('/api/v2/payment/transaction/31/');
      expect(await (await app.request('/of/77/problems/not_found')).json()).toMatchObject({ code: 'not_found' });
    }
  });
});

test(`${says("`/livez`, `/readyz`) where the host has none there; all else is the host's")}: mounted at /`, async () => {
  const gateway = openGateway();
  const app = new Hono()
    .get('/livez', (c) => c.text('alive'))
    .route('/', gateway.app as Hono)
    .get('/later', (c) => c.text('later'))
    .get('/broken', () => {
      throw new Error('of the host');
    })
    .onError((error, c) => c.text(error.message, 500));
  for (const [path, text] of [
    ['/livez', 'alive'],
    ['/later', 'later'],
    ['/broken', 'of the host'],
    ['/v', '404 Not Found'],
  ] as const) {
    const got = await app.request(path, { headers: { origin: LISTED } });
    expect([await got.text(), got.headers.has('x-request-id')]).toEqual([text, false]);
  }
  for (const path of ['/docs', '/problems', '/openapi.json', '/readyz'])
    expect((await app.request(path)).status).toBe(200);
  expect((await app.request('/bff/nothing')).headers.get('content-type')).toBe('application/problem+json');
  expect(gateway.lines.map(({ status }) => status)).toEqual([200, 200, 200, 404]); // none of a probe
});

describe(says("host's. A host's middleware runs before it"), () => {
  const gateway = openGateway({ ALLOWED_ORIGINS: LISTED });
  const { upstream } = gateway;
  const behind = (middleware: MiddlewareHandler) => new Hono().use(middleware).route('/', gateway.app as Hono);

  test('it may put another request, or another header of it, in the place of the client’s', async () => {
    const other = secret();
    const ways: readonly ((request: Request) => Request)[] = [
      (request) => new Request(request, { headers: { authorization: `Token ${other}`, ...json } }),
      (request) => (request.headers.set('authorization', `Token ${other}`), request),
    ];
    for (const way of ways) {
      const app = behind((c, next) => ((c.req.raw = way(c.req.raw)), next()));
      const write = { method: 'POST', headers: json, body: '{"label":"x"}' };
      expect((await app.request('/api/v2/apikey/', of(secret(), write))).status).toBe(200);
      expect(upstream.calls.at(-1)).toMatchObject({ token: other, body: write.body });
    }
  });

  test.each<[string, number, string, RequestInit]>([
    ['lines', 200, OVERVIEW, { headers: { accept: 'application/x-ndjson' } }],
    ['a 404', 404, '/api/v2/nothing/', {}],
    ['a preflight', 204, READ, preflight(LISTED)],
  ])('its headers are on %s', async (_, status, path, init) => {
    const app = behind(async (c, next) => {
      c.header('X-Twice', 'a', { append: true });
      c.res.headers.set('X-Early', '0');
      await next();
      c.header('X-Twice', 'b', { append: true });
      c.header('X-Frame-Options', 'SAMEORIGIN');
    });
    const got = await app.request(path, of(secret(), init));
    const { headers } = got;
    const named = ['x-twice', 'x-early', 'x-frame-options', 'x-content-type-options'].map((name) => headers.get(name));
    expect([got.status, ...named]).toEqual([status, 'a, b', '0', 'SAMEORIGIN', 'nosniff']);
    await got.text();
  });

  test('what it throws is the host’s', async () => {
    const app = new Hono()
      .use(async (c, next) => {
        if (c.req.query('when') === 'before') throw new Error('before');
        await next();
        throw new Error('after');
      })
      .route('/', gateway.app as Hono)
      .onError((error, c) => c.text(`the host: ${error.message}`, 500));
    for (const when of ['before', 'after'])
      expect(await (await app.request(`/problems?when=${when}`)).text()).toBe(`the host: ${when}`);
  });

  let times = 0;
  const isIts = () => times++ % 3 === 0;
  const MISCHIEF: Readonly<Record<string, MiddlewareHandler>> = {
    'answers some early': async (c, next) => (isIts() ? c.text('early', 503) : next()),
    'throws after': async (_, next) => next().then(() => (isIts() ? Promise.reject(new Error('after')) : undefined)),
    'changes headers of the answer': async (c, next) => {
      await next();
      c.res.headers.delete('ETag');
      c.header('Cache-Status', 'host');
    },
    'puts another answer in the place of ours': async (c, next) => {
      await next();
      c.res = new Response(await c.res.text(), { status: c.res.status });
    },
    'does not wait': async (_, next) => void next().catch(() => undefined),
  };

  test.each(Object.entries(MISCHIEF))('one that %s gives no account’s data to another', async (_, middleware) => {
    const app = behind(middleware).onError((__, c) => c.text('the host’s', 500));
    const tokens = [secret(), secret(), secret(), secret()];
    // What the upstream says names its account by the hundreds of its version.
    for (const [n, token] of tokens.entries()) for (let m = 0; m < n * 100; m++) upstream.change(token);
    const write = { method: 'PATCH', body: '{"mode":"credits"}', headers: json };
    const asked = Array.from({ length: 60 }, async (__, n) => {
      const init = n % 7 === 0 && n % 2 === 1 ? write : {};
      const got = await app.request([READ, '/api/v2/referral/config/'][n % 2]!, of(tokens[n % 4]!, init));
      return [n % 4, await answerOf(got)] as const;
    });
    for (const [n, { version = n * 100 }] of await Promise.all(asked)) expect(Math.floor(version / 100)).toBe(n);
  });
});

test(`${says("On another server of the host's the app works too")}: an answer that cannot be sent ends its connection alone`, async () => {
  const gateway = await startGateway('http://127.0.0.1:9', {
    ...accountTables,
    around: (app) => new Hono().get('/bad', (c) => c.body('x', 200, { 'X-Name': '\u0100' })).route('/', app),
  });
  onTestFinished(() => gateway.close());
  await expect(rawRequest(gateway.port, 'GET /bad HTTP/1.1\r\nHost: x\r\n\r\n')).rejects.toThrow('closed');
  expect((await fetch(`${gateway.url}/livez`)).status).toBe(200);
});
