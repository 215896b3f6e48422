import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { createApp } from '../../src/app.ts';
import type { ServeOptions } from '../../src/entry/node/server/serve.ts';
import type { Env } from '../../src/middleware/request.ts';
import { LISTED } from './cors.ts';
import { expectProblem } from './problem.ts';
import { call, type CallOptions } from '../support/http.ts';
import { rawRequest } from '../support/raw-client.ts';
import { secret } from '../support/secrets.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { hostOf } from '../runtime/host-app.ts';
import { HOST_VARIABLES, hostScenarios, type HostStage, scriptUpstream } from '../runtime/scenarios/host.ts';

let upstream: ScriptedUpstream;

beforeAll(async () => {
  upstream = await startUpstream();
  scriptUpstream(upstream);
});

afterAll(() => upstream.close());

describe('in a host app on Node', () => {
  let stage: HostStage;
  let gateways: readonly TestGateway[];

  beforeAll(async () => {
    gateways = [
      await startGateway(upstream.url, { env: HOST_VARIABLES }),
      await startGateway(upstream.url, { env: HOST_VARIABLES, around: hostOf }),
    ];
    stage = { alone: gateways[0]!.url, host: gateways[1]!.url };
  });

  afterAll(() => Promise.all(gateways.map((gateway) => gateway.close())));

  test.for(hostScenarios)('$name', (scenario) => scenario.run(stage));

  test('the pages of the gateway link to each other', async () => {
    const { host } = stage;
    const ask = (path: string) => call(host, { path });
    const page = await ask('/api/docs/');
    const links = Array.from(page.text.matchAll(/(?:src|href)="(\/[^"]*)"/g), ([, target]) => target!);
    expect(links.length).toBeGreaterThan(3);
    for (const path of links) expect([path, (await ask(path)).status]).toEqual([path, 200]);
    expect((await ask('/api/docs/start.js')).text).toContain("url: '/api/openapi.json'");
    expect((await ask('/api/openapi.json')).json).toMatchObject({ servers: [{ url: '/api' }] });
  });
});

type Around = (app: ReturnType<typeof createApp>) => ServeOptions['app'];

/** A gateway in a host of the test's own. */
const openHost = async (around: Around) => {
  const gateway = await startGateway(upstream.url, { env: HOST_VARIABLES, around });
  onTestFinished(() => gateway.close());
  const ask = (path: string, options: Partial<CallOptions> = {}) => call(gateway.url, { path, ...options });
  return { ask, gateway };
};

const READ = '/api/v2/subscription/';
const OURS = ['x-request-id', 'server-timing', 'x-content-type-options', 'access-control-allow-origin', 'vary'];
const fromPage = (cookie = '__Host-Http-portico=x') => ({ headers: { origin: LISTED, cookie } });

const atRoot: Around = (app) =>
  new Hono()
    .get('/before', (c) => c.text('before'))
    .get('/', (c) => c.text('home'))
    .route('/', app)
    .get('/later/:name', (c) => c.text(c.req.param('name')))
    .post('/later', async (c) => c.text(await c.req.text()))
    .get('/broken', () => {
      throw new Error('of the host');
    })
    .onError((error, c) => c.text(error.message, 500));

describe('mounted at /', () => {
  test('routes of the host have nothing of ours, wherever they are', async () => {
    const { ask, gateway } = await openHost(atRoot);
    const expected = [
      ['/before', 200, 'before'],
      ['/', 200, 'home'],
      ['/later/my%20doc.pdf', 200, 'my doc.pdf'],
      ['/later/%61%2e', 200, 'a.'],
      ['/broken', 500, 'of the host'],
      ['/nothing', 404, '404 Not Found'],
    ] as const;
    for (const [path, status, text] of expected) {
      const answer = await ask(path, fromPage());
      expect([path, answer.status, answer.text]).toEqual([path, status, text]);
      for (const name of OURS) expect(answer.headers).not.toHaveProperty(name);
    }
    const large = 'x'.repeat(100_000);
    expect((await ask('/later', { method: 'POST', body: large })).text).toBe(large);
    expect(gateway.lines).toEqual([]);
  });

  test('what is below /api/ and /bff/ is ours, and so are the pages', async () => {
    const { ask, gateway } = await openHost(atRoot);
    const token = secret('of-a-guest');
    expectProblem(await ask('/api/v2/nothing'), { status: 404, code: 'unknown_endpoint', instance: '/api/v2/nothing' });
    expectProblem(await ask('/bff/v1/nothing/'), { status: 404, code: 'unknown_endpoint' });
    expectProblem(await ask(READ, { method: 'PUT' }), { status: 405, code: 'method_not_allowed' });
    expect((await ask(READ, { token })).status).toBe(200);
    for (const path of ['/livez', '/docs', '/problems', '/openapi.json']) expect((await ask(path)).status).toBe(200);
    expect(gateway.lines.map(({ status }) => status)).toEqual([404, 404, 405, 200, 200, 200, 200]); // none of a probe
  });
});

test('a parameter of the host’s path is not taken for one of ours', async () => {
  const token = secret('of-a-guest');
  for (const base of ['/of/:id', '/of/:code', '/of/:id{[0-9]+}']) {
    const { ask } = await openHost((app) => new Hono().route(base, app));
    const asked = upstream.calls.length;
    await ask('/of/77/api/v2/payment/transaction/31/', { token });
    expect(upstream.calls.slice(asked).map(({ path }) => path)).toEqual(['/api/v2/payment/transaction/31/']);
    expect((await ask('/of/77/problems/not_found')).json).toMatchObject({ code: 'not_found' });
  }
});

test('a request that the host puts in the place of the client’s is the one that is answered', async () => {
  const other = secret('of-another-account');
  const around: Around = (app) =>
    new Hono()
      .use((c, next) => {
        const headers = new Headers(c.req.raw.headers);
        headers.set('authorization', `Token ${other}`);
        c.req.raw = new Request(c.req.raw, { headers });
        return next();
      })
      .route('/', app);
  const { ask } = await openHost(around);
  const asked = upstream.calls.length;
  const body = { label: 'x' };
  expect((await ask(READ, { token: secret('of-the-client') })).status).toBe(200);
  expect((await ask(READ)).headers['cache-status']).toContain('hit');
  expect((await ask('/api/v2/apikey/', { body })).status).toBe(200);
  const calls = upstream.calls.slice(asked);
  expect(calls.map(({ method }) => method)).toEqual(['GET', 'POST']);
  for (const { headers } of calls) expect(headers['authorization']).toBe(`Token ${other}`);
  expect(JSON.parse(calls[1]!.body)).toEqual(body);
});

const setting = (token: string | undefined, { headers }: Request) =>
  token === undefined ? headers.delete('authorization') : headers.set('authorization', `Token ${token}`);

/** Ways of a host to change the credential of a request where it is. */
const changing: Readonly<Record<string, (app: ReturnType<typeof createApp>, token?: string) => ReturnType<Around>>> = {
  'in a middleware': (app, token) =>
    new Hono()
      .use((c, next) => {
        setting(token, c.req.raw);
        return next();
      })
      .route('/', app),
  'in a handler that asks the gateway': (app, token) =>
    new Hono<Env>().all('*', (c) => {
      setting(token, c.req.raw);
      return app.fetch(c.req.raw, c.env, c.executionCtx);
    }),
  'in front of the app': (app, token) => ({
    fetch(request, ...rest) {
      setting(token, request);
      return app.fetch(request, ...rest);
    },
  }),
};

test.each(Object.entries(changing))('headers that the host changes where they are count: %s', async (_, change) => {
  const other = secret('of-another-account');
  const asked = upstream.calls.length;
  const client = { token: secret('of-the-client') };
  const setTo = await openHost((app) => change(app, other));
  expect((await setTo.ask(READ, client)).status).toBe(200);
  expect(upstream.calls.slice(asked).map(({ headers }) => headers['authorization'])).toEqual([`Token ${other}`]);
  const { ask } = await openHost((app) => change(app));
  expectProblem(await ask(READ, client), { status: 401, code: 'unauthenticated' });
});

test.each([
  ['with a length', 'Content-Length: 13\r\n\r\n{"label":"x"}'],
  ['in chunks', 'Transfer-Encoding: chunked\r\n\r\nd\r\n{"label":"x"}\r\n0\r\n\r\n'],
])('a body %s that the host has read is still there for us', async (_, rest) => {
  const seen: string[] = [];
  const around: Around = (app) =>
    new Hono()
      .use(async (c, next) => {
        seen.push(await c.req.text());
        await next();
      })
      .route('/', app);
  const { gateway } = await openHost(around);
  const before = upstream.calls.length;
  const lines = `Host: a\r\nAuthorization: Token ${secret('of-a-reader')}\r\nContent-Type: application/json`;
  const answer = await rawRequest(gateway.port, `POST /api/v2/apikey/ HTTP/1.1\r\n${lines}\r\n${rest}`);
  expect(answer.status).toBe(200);
  expect(seen).toEqual(['{"label":"x"}']);
  expect(upstream.calls[before]!.body).toBe('{"label":"x"}');
});

const settingHeaders: Around = (app) =>
  new Hono()
    .use(async (c, next) => {
      c.header('X-Before', '1');
      c.res.headers.set('X-Early', '0');
      c.header('X-Twice', 'a', { append: true });
      await next();
      c.header('X-After', '2');
      c.res.headers.set('X-Set', '3');
      c.header('X-Twice', 'b', { append: true });
      c.header('X-Frame-Options', 'SAMEORIGIN');
    })
    .route('/api', app)
    .route('/', app);

describe('headers that a host sets', () => {
  test.each([
    ['a miss', 200, READ, {}],
    ['a hit', 200, READ, {}],
    ['a 304', 304, READ, { headers: { 'if-none-match': '*' } }],
    ['a HEAD', 200, READ, { method: 'HEAD' }],
    ['lines', 200, '/bff/v1/account-overview', { headers: { accept: 'application/x-ndjson' } }],
    ['a write', 200, '/api/v2/apikey/', { body: {} }],
    ['a 204', 204, '/api/v2/proxy/ipauthorization/1/', { method: 'DELETE' }],
    ['a 401', 401, READ, { headers: { authorization: 'x' } }],
    ['a 404', 404, '/api/v2/nothing/', {}],
    ['a 405', 405, READ, { method: 'PUT' }],
    ['a 413', 413, '/api/v2/apikey/', { body: 'x'.repeat(70_000) }],
    ['a page', 200, '/docs', {}],
    [
      'a preflight',
      204,
      READ,
      { method: 'OPTIONS', headers: { origin: LISTED, 'access-control-request-method': 'GET' } },
    ],
  ] satisfies [string, number, string, Partial<CallOptions>][])('are on %s', async (_, status, path, options) => {
    const { ask, gateway } = await openHost(settingHeaders);
    const token = secret('of-a-guest-with-headers');
    const asked: Partial<CallOptions> = { token, ...options };
    await ask(READ, { token });
    for (const at of [path, `/api${path}`]) {
      const answer = await ask(at, asked);
      expect(answer.status).toBe(status);
      expect(answer.headers).toMatchObject({
        'x-before': '1',
        'x-early': '0',
        'x-after': '2',
        'x-set': '3',
        'x-twice': 'a, b',
        'x-frame-options': 'SAMEORIGIN',
        'x-content-type-options': 'nosniff',
      });
      expect(answer.headers['x-request-id']).toMatch(/^[\w.-]+$/);
    }
    expect(gateway.lines).toHaveLength(3);
  });
});

const throwing: Around = (app) =>
  new Hono()
    .use(async (c, next) => {
      if (c.req.query('when') === 'before') throw new Error('before');
      await next();
      if (c.req.query('when') === 'after') throw new Error('after');
    })
    .route('/api', app)
    .onError((error, c) => c.text(`the host: ${error.message}`, 500));

test('what a middleware of the host throws is the host’s', async () => {
  const { ask, gateway } = await openHost(throwing);
  for (const when of ['before', 'after']) {
    const { status, text } = await ask(`/api/problems?when=${when}`);
    expect([status, text]).toEqual([500, `the host: ${when}`]);
  }
  expect(gateway.lines).toMatchObject([{ route: '/problems', status: 200 }]);
  expectProblem(await ask('/api/api/v2/nothing/'), {
    status: 404,
    code: 'unknown_endpoint',
    instance: '/api/api/v2/nothing/',
    mount: '/api',
  });
});

test('an answer of the host’s that cannot be sent ends its connection and nothing else', async () => {
  const { ask, gateway } = await openHost((app) =>
    new Hono().get('/bad', (c) => c.body('x', 200, { 'X-Name': '\u0100' })).route('/', app),
  );
  await expect(rawRequest(gateway.port, 'GET /bad HTTP/1.1\r\nHost: x\r\n\r\n')).rejects.toThrow('closed');
  expect((await ask('/livez')).status).toBe(200);
});

test('a server of the host’s own works too, without an execution context', async () => {
  let url = '';
  const around: Around = (app) => {
    const server = serve({ fetch: hostOf(app).fetch, port: 0, hostname: '127.0.0.1' });
    onTestFinished(() => void server.close());
    void once(server, 'listening').then(() => (url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`));
    return new Hono();
  };
  const { gateway } = await openHost(around);
  await vi.waitFor(() => expect(url).not.toBe(''));
  const token = secret('of-a-plain-guest');
  const ask = (path: string, options: Partial<CallOptions> = {}) => call(url, { path, token, ...options });
  const keyed = { method: 'POST', body: { plan_id: 1 }, headers: { 'idempotency-key': 'k' } };
  const statuses = [
    (await ask(`/api${READ}`)).status,
    (await ask(`/api${READ}`)).status,
    (await ask('/api/bff/v1/account-overview')).status,
    (await ask('/api/api/v2/subscription/checkout/purchase/', keyed)).status,
    (await ask('/api/api/v2/nothing/')).status,
    (await ask('/own/my%20doc.pdf')).status,
  ];
  expect(statuses).toEqual([200, 200, 200, 200, 404, 200]);
  expect(gateway.lines.map(({ cache }) => cache).slice(0, 2)).toEqual(['miss', 'hit']);
});

test('it may be asked without a server', async () => {
  let app: ReturnType<typeof createApp> | undefined;
  const { gateway } = await openHost((made) => {
    app = made;
    return new Hono();
  });
  const headers = { authorization: `Token ${secret('of-a-call-in-process')}` };
  const statuses = [READ, '/bff/v1/account-overview', '/nothing', '/problems'].map(
    async (path) => (await app!.request(path, { headers })).status,
  );
  expect(await Promise.all(statuses)).toEqual([200, 200, 404, 200]);
  expect(gateway.lines).toHaveLength(4);
});
