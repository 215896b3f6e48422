import { createHash } from 'node:crypto';
import { Hono } from 'hono';
import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';
import { cookieIn } from '../08-sessions/browser.ts';
import { callTool, contentOf, env, LISTED, post, rpc } from './agent.ts';

const READ = 'getSubscription';
const SAME = says('by the same credential, limits, cache and log');
const gateway = openGateway(env);

const of = (token: string) => createHash('sha1').update(token).digest('hex');

everywhere(
  `${SAME}: one copy for HTTP and for tools`,
  async (stage) => {
    const { text } = await stage.ask(READ);
    expect(contentOf(await callTool(stage, READ))).toBe(text);
    await callTool(stage, 'getAccountOverview', { sections: ['subscription'] });
    expect(stage.upstream.callsTo(READ)).toHaveLength(1);
    const token = secret();
    await callTool(stage, READ, {}, { token });
    expect(stage.upstream.callsOf(token, READ)).toHaveLength(1);
  },
  { env },
);

test(`${SAME}: the upstream is called as by HTTP`, async () => {
  const { upstream, me, ask } = gateway;
  const headers = { 'user-agent': 'agent/1', 'x-request-id': 'of-the-agent', cookie: 'a=1', 'mcp-name': READ };
  const asking = { headers: { ...headers, 'cache-control': 'no-cache' } };
  await callTool(gateway, READ, {}, asking);
  await ask(READ, asking);
  const [tool, http] = upstream.calls.map((sent) => ({ ...sent.headers, traceparent: '' }));
  expect(tool).toEqual(http);
  expect(tool).toMatchObject({ authorization: `Token ${me}`, 'x-request-id': 'of-the-agent', 'user-agent': 'agent/1' });
});

test(`${SAME}: what the headers of the message say of its own answer is not for the tool`, async () => {
  const { upstream, call } = gateway;
  const path = '/bff/v1/account-overview';
  const etag = (await call(path)).headers.get('etag')!;
  const headers = { 'if-none-match': etag, prefer: 'wait=30, handling=strict', 'x-request-id': '' };
  const accept = 'application/json;q=0.5, text/event-stream;q=0.5, application/x-ndjson';
  const whole = await callTool(gateway, 'getAccountOverview', {}, { headers: { ...headers, accept } });
  expect(whole.json.result.structuredContent.meta).toMatchObject({ complete: true });
  const token = secret();
  upstream.next('listNotifications', answer(404, '{}'));
  const part = await callTool(gateway, 'getAccountOverview', {}, { token, headers });
  expect(part.json.result.structuredContent.meta).toMatchObject({ complete: false });
  const sent = upstream.callsOf(token).map((one) => one.headers['x-request-id']);
  expect(new Set(sent)).toEqual(new Set([part.headers.get('x-request-id')]));
});

test(`${SAME}: every message counts one`, async () => {
  const { call, ask, me } = openGateway({ ...env, RATE_LIMIT_PER_MINUTE: '7' });
  const asked = { call, me };
  expect((await rpc(asked, 'tools/list')).headers.get('ratelimit')).toMatch(/^"account";r=6;/);
  for (const [text, left] of [
    ['{', 5],
    ['[]', 4],
  ] as const)
    expect((await post(asked, text)).headers.get('ratelimit')).toMatch(`r=${left};`);
  expect((await rpc(asked, 'ping')).headers.get('ratelimit')).toMatch(/^"account";r=3;/);
  const first = await callTool(asked, READ);
  expect(first.headers.get('ratelimit')).toMatch(/^"account";r=2;/);
  await callTool(asked, 'getAccountOverview');
  expect((await ask(READ)).headers.get('ratelimit')).toMatch(/^"account";r=0;/);
  const { result } = (await callTool(asked, READ)).json;
  expect(result).toMatchObject({ isError: true, structuredContent: { code: 'rate_limited', retry_after: 60 } });
  expect((await rpc(asked, 'ping')).json).toMatchObject({ status: 429, code: 'rate_limited' });
});

test.each([
  ['another version', { jsonrpc: '1.0' }],
  ['no id', { id: undefined }],
  ['a name that is no text', { params: { name: [READ] } }],
  ['arguments that are no object', { params: { name: READ, arguments: 'x' } }],
])(`${SAME}: a call of a tool with %s counts one`, async (_, wrong) => {
  const { call, me } = openGateway({ ...env, RATE_LIMIT_PER_MINUTE: '5' });
  const headers = { accept: 'application/json, text/event-stream' };
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: READ }, ...wrong };
  const sent = await call('/mcp', { body, headers, token: me });
  expect(sent.headers.get('ratelimit')).toMatch(/^"account";r=4;/);
});

test(`${SAME}: one line, of the request that the tool stands for`, async () => {
  const { lines, upstream, idle } = gateway;
  const from = lines.length;
  await callTool(gateway, 'listTransactions', { page: 7_700_077 }, { headers: { 'x-request-id': 'of-the-agent' } });
  upstream.next('getTransaction', answer(503, '', { 'retry-after': '5' }));
  await callTool(gateway, 'getTransaction', { id: 1_234_512_345 });
  await rpc(gateway, 'tools/list');
  await idle();
  const logged = lines.slice(from).filter(({ msg }) => msg === 'request');
  const list = { method: 'GET', route: '/api/v2/payment/transaction/', operation: 'listTransactions', status: 200 };
  expect(logged).toMatchObject([
    { ...list, via: 'mcp', level: 'info', request_id: 'of-the-agent', cache: 'miss', upstream_calls: 1 },
    { operation: 'getTransaction', via: 'mcp', level: 'error', status: 503, code: 'upstream_unavailable' },
    { method: 'POST', route: '/mcp', operation: 'mcp', status: 200 },
  ]);
  expect(JSON.stringify(logged)).not.toMatch(/7700077|1234512345/);
  expect(logged[2]).not.toHaveProperty('via');
});

test(`${SAME}: metrics count the request that the tool stands for, once`, async () => {
  const { call, scrape, me } = openGateway(env);
  await callTool({ call }, READ, {}, { token: me });
  const counted = (await scrape()).split('\n').filter((line) => /^portico_requests_total.* 1$/.test(line));
  expect(counted).toEqual([expect.stringContaining(`operation="${READ}"`)]);
});

test(`${SAME}: what leaves cancels the call that only it waited for`, async () => {
  const { upstream, request, lines, idle } = gateway;
  const held = upstream.hold('listEarnOuts');
  const controller = new AbortController();
  const headers = { accept: 'application/json, text/event-stream' };
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'listEarnOuts' } };
  const gone = request('/mcp', { body, headers, signal: controller.signal });
  const { left } = await held.call;
  controller.abort();
  await left;
  expect((await gone).status).toBe(499);
  await idle();
  expect(lines.at(-1)).toMatchObject({ operation: 'listEarnOuts', via: 'mcp', status: 499, code: 'client_left' });
});

test(`${SAME}: links to pages are those of HTTP, below a path of a host too`, async () => {
  const { app, upstream } = gateway;
  const host = new Hono().route('/below', app as never);
  const next = 'http://upstream.test/api/v2/payment/transaction/?page=2';
  const page = JSON.stringify({ count: 2, next, previous: null, results: [] });
  upstream.next('listTransactions', answer(200, page));
  const call = async (path: string, init: RequestInit) => (await host.request(`/below${path}`, init)).text();
  const headers = { authorization: 'Token of-the-host', 'content-type': 'application/json' };
  const http = await call('/api/v2/payment/transaction/', { headers });
  const params = { name: 'listTransactions' };
  const tool = await call('/mcp', {
    method: 'POST',
    headers: { ...headers, accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  });
  expect(http).toContain('http://localhost/below/api/v2/payment/transaction/?page=2');
  expect(tool).toContain(http);
});

test(`${SAME}: nothing of another account, however often they ask at once`, async () => {
  const tokens = Array.from({ length: 20 }, () => secret());
  const asks = tokens.flatMap((token) => Array.from({ length: 20 }, () => token));
  for (const token of tokens)
    gateway.upstream.next('getReferralConfig', ({ token: by }) => answer(200, { owner: of(by), for: token.length }));
  const got = await Promise.all(asks.map((token) => callTool(gateway, 'getReferralConfig', {}, { token })));
  got.forEach(({ json }, at) => expect(json.result.structuredContent.owner).toBe(of(asks[at]!)));
});

describe(says('`Origin` as in section 8.'), () => {
  everywhere(
    'from a foreign page nothing is answered',
    async (stage) => {
      const status = async (headers: Record<string, string>) => (await rpc(stage, 'ping', {}, { headers })).status;
      for (const origin of ['https://evil.example', 'null']) expect(await status({ origin })).toBe(403);
      expect(await status({ origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' })).toBe(403);
      expect(await status({ origin: LISTED })).toBe(200);
      expect(await status({})).toBe(200);
    },
    { env },
  );

  test('a cookie is a credential, and its page is looked at as for any POST', async () => {
    const SECRETS = secret('of-these-sessions-and-no-others');
    const { call, upstream } = openGateway({ ...env, SESSIONS: 'true', SECRETS });
    const own = { 'sec-fetch-site': 'same-origin' };
    const token = secret();
    const signedIn = await call('/bff/v1/session', { token: null, body: { token }, headers: own });
    const cookie = cookieIn(signedIn);
    const by = (headers: Record<string, string>) =>
      callTool({ call }, READ, {}, { token: null, headers: { cookie, ...headers } });
    expect((await by(own)).json.result.isError).toBeUndefined();
    for (const headers of [{}, { 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }])
      expect(await by(headers)).toMatchObject({ status: 403, code: 'origin_rejected' });
    expect(upstream.callsOf(token).length).toBeGreaterThan(0);
  });

  test('a preflight allows the headers of the protocol', async () => {
    const headers = { origin: LISTED, 'access-control-request-method': 'POST' };
    const allowed = async (more: Record<string, string>) => {
      const { call } = openGateway({ ALLOWED_ORIGINS: LISTED, ...more });
      return (await call('/mcp', { method: 'OPTIONS', headers })).headers.get('access-control-allow-headers');
    };
    expect(await allowed(env)).toContain('MCP-Protocol-Version');
    expect(await allowed({})).not.toContain('MCP');
  });
});
