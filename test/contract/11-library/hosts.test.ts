import { getEventListeners, once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fromEnv } from '../../../src/entry/node/index.ts';
import { proxyAccount } from '../../../src/proxy-account/index.ts';
import { tableOf } from '../../../src/upstream/table.ts';
import manifest from '../../../package.json' with { type: 'json' };
import type { OperationId } from '../../support/account-api.ts';
import { says } from '../../support/contract.ts';
import { exampleRequest } from '../../support/examples.ts';
import { answerOf, type Answer, checkComplaints } from '../../support/gateway.ts';
import { json as good, startUpstream } from '../../support/scripted-upstream.ts';
import { secret } from '../../support/secrets.ts';
import { answer, Upstream } from '../../support/upstream.ts';
import { startWorkerd } from '../../support/workerd.ts';
import { hostOf, ODYSSEY, rows } from './library.ts';
import { rows as orgRows } from './orgs.ts';

const READ = '/api/v2/subscription/';
const LISTED = 'https://app.example';
const upstream = new Upstream(tableOf({ ...proxyAccount, ...rows, ...orgRows }));

type Ask = (path: string, init?: RequestInit & { readonly token?: string }) => Promise<Answer>;

const asking =
  (fetched: (path: string, init: RequestInit) => Response | Promise<Response>): Ask =>
  async (path, { token, headers, ...init } = {}) => {
    const credential = token === undefined ? {} : { authorization: `Token ${token}` };
    return answerOf(await fetched(path, { ...init, headers: { ...credential, ...(headers as object) } }));
  };

/** The same host, in this process without a server, on a server of its own, and on Workers. */
const hosts: Record<'process' | 'node' | 'workerd', Ask> = {} as never;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  const behind = await upstream.listen();
  const variables = {
    UPSTREAM_BASE_URL: behind.url,
    RATE_LIMIT_PER_MINUTE: '0',
    SESSIONS: 'true',
    SECRETS: secret('of-the-host-of-gateways'),
    ALLOWED_ORIGINS: LISTED,
  };
  const { app, drain } = hostOf(fromEnv({ ...variables, LOG_LEVEL: 'silent' }));
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
  await once(server, 'listening');
  const served = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const workerd = await startWorkerd(variables, { entry: 'test/contract/11-library/worker.ts' });
  hosts.process = asking((path, init) => app.request(path, init));
  hosts.node = asking((path, init) => fetch(served + path, init));
  hosts.workerd = asking((path, init) => fetch(workerd.url + path, init));
  closing.push(
    drain,
    async () => server.close(),
    () => workerd.kill(),
    () => behind.close(),
  );
}, 60_000);

afterAll(async () => {
  for (const close of closing) await close();
});

const inHosts = (name: string, body: (ask: Ask) => Promise<void>) =>
  test.each(['process', 'node', 'workerd'] as const)(`${name} [%s]`, async (host) => {
    await body(hosts[host]);
    checkComplaints(upstream);
  });

inHosts(says('gives `app`, a Hono app to be mounted with `route` under any path'), async (ask) => {
  const token = secret();
  upstream.next('listTransactions', answer(200, { count: 2, next: '?page=2', previous: null, results: [] }));
  const page = await ask('/host/api/v2/payment/transaction/', { token });
  expect(page.json.next).toMatch(/^http:\/\/[^/]+\/host\/api\/v2\/payment\/transaction\/\?page=2$/);
  const overview = await ask('/host/bff/v1/account-overview', { token });
  expect(overview.json).toMatchObject({ data: { subscription: {} }, meta: { complete: true } });
  const method = 'POST';
  const headers = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };
  const begun = await ask('/host/bff/v1/session', { method, headers, body: JSON.stringify({ token }) });
  expect(begun.status).toBe(201);
  const cookie = begun.headers.getSetCookie()[0]!.split(';')[0]!;
  expect((await ask(`/host${READ}`, { headers: { cookie } })).status).toBe(200);
});

inHosts(says('what is below `/api/` and `/bff/` is its own, 404 included, and so are its pages'), async (ask) => {
  for (const path of ['/api/v2/nothing', '/bff/v1/nothing/', '/api/v2/%73ubscription/']) {
    const { status, json, headers } = await ask(`/host${path}`);
    expect([status, headers.has('x-request-id')]).toEqual([404, true]);
    expect(json).toMatchObject({ type: '/host/problems/unknown_endpoint', instance: `/host${path}` });
  }
  for (const path of ['/docs', '/problems', '/problems/not_found', '/livez', '/openapi.json'])
    expect([path, (await ask(`/host${path}`)).status]).toEqual([path, 200]);
  expect((await ask('/host/docs/start.js')).text).toContain("url: '/host/openapi.json'");
  expect((await ask('/host/openapi.json')).json).toMatchObject({ servers: [{ url: '/host' }] });
});

inHosts(says("all else is the host's."), async (ask) => {
  for (const [path, status, text] of [
    ['/own/file', 200, 'file'],
    ['/own/my%20doc.pdf', 200, 'my doc.pdf'],
    ...['/', '/own/a/', '/host', '/host/nothing', '/livez', '/bff/v1/nothing'].map(
      (one) => [one, 404, 'not here'] as const,
    ),
  ] as const) {
    const got = await ask(path, { headers: { origin: LISTED } });
    expect([path, got.status, got.text, got.headers.get('x-host')]).toEqual([path, status, text, 'the host']);
    for (const name of ['x-request-id', 'x-content-type-options', 'vary', 'access-control-allow-origin'])
      expect(got.headers.has(name)).toBe(false);
  }
});

inHosts(says("A host's middleware runs before it for every request."), async (ask) => {
  const token = secret();
  const refused = await ask(`/host${READ}`, { token, headers: { 'x-busy': '1' } });
  expect([refused.status, refused.text, refused.headers.has('x-request-id')]).toEqual([503, 'busy', false]);
  expect(upstream.calls).toEqual([]);
  const preflight = { origin: LISTED, 'access-control-request-method': 'GET' };
  const all: readonly [string, (RequestInit & { token?: string })?][] = [
    [READ, { token }],
    [READ],
    [READ, { token, method: 'DELETE' }],
    [READ, { method: 'OPTIONS', headers: preflight }],
    ['/bff/v1/account-overview', { token, headers: { accept: 'application/x-ndjson' } }],
    ['/docs'],
  ];
  for (const [path, init] of all) expect((await ask(`/host${path}`, init)).headers.get('x-host')).toBe('the host');
});

inHosts(says("another upstream's table needs none of ours"), async (ask) => {
  const token = secret();
  expect((await ask(`/books/v1/books/${ODYSSEY}/`, { token })).json).toMatchObject({ x_version: 1 });
  const lend = { token, method: 'POST', body: '{"weeks":3}', headers: { 'content-type': 'application/json' } };
  expect((await ask(`/books/v1/books/${ODYSSEY}/loans`, lend)).status).toBe(200);
  expect((await ask(`/books/v1/books/${ODYSSEY}`, { token })).json).toMatchObject({ x_version: 2 });
  expect((await ask('/books/bff/v1/shelf', { token })).json).toMatchObject({
    data: { of_the_month: { x_version: 2 }, computed: { lent: 0, is_there: true } },
  });
  expect((await ask('/books/v1/films')).text).toBe('not here');
  expect((await ask(`/books${READ}`)).code).toBe('unknown_endpoint');
  expect((await ask('/books/v1/books', { method: 'DELETE' })).headers.get('allow')).toBe('GET, HEAD');
  const { text } = await ask('/books/openapi.json');
  expect([text.includes('"operationId":"lendBook"'), /subscription|referral|paid_plan/.test(text)]).toEqual([
    true,
    false,
  ]);
});

inHosts(
  says('any of GET, POST, PUT, PATCH, DELETE, several parameters in a path, pages of another shape'),
  async (ask) => {
    const token = secret();
    const member = '/at/host/v1/orgs/acme/members/5'; // the host's own parameter is called as one of the row's
    expect((await ask(member, { token })).version).toBe(1);
    const put = { token, method: 'PUT', body: '{"name":"new"}', headers: { 'content-type': 'application/json' } };
    expect((await ask(member, put)).status).toBe(200);
    expect((await ask(member, { token })).version).toBe(2);
    expect((await ask('/own/members/5', { token, method: 'PUT' })).status).toBe(200);
    expect((await ask(member, { token })).version).toBe(3);
    const { json } = await ask('/at/host/bff/v1/orgs/acme/member-overview/5', { token });
    expect(json).toMatchObject({ data: { member: { x_version: 3 }, manager: {}, kept: {} }, meta: { complete: true } });
    upstream.next('listMembers' as OperationId, answer(200, '{"data":[],"links":{"next":"?page=2","prev":null}}'));
    const page = await ask('/at/host/v1/orgs/acme/members?limit=1', { token });
    expect(page.json.links.next).toMatch(/^http:\/\/[^/]+\/at\/host\/v1\/orgs\/acme\/members\?page=2$/);
    const link = ['<?page=2>; rel="next"', '<?page=9,9>; rel="last"'];
    upstream.next('listHosts' as OperationId, answer(200, '[]', { link }));
    for (const _ of ['from the upstream', 'from a copy'])
      expect((await ask('/at/host/v1/hosts', { token })).headers.get('link')).toMatch(
        /^<http:\/\/[^/]+\/at\/host\/v1\/hosts\?page=2>; rel="next", <[^>]+\?page=9,9>; rel="last"$/,
      );
  },
);

inHosts('`mcp: true` in code turns tools on, whose links lead through the mount', async (ask) => {
  const name = 'listMembers';
  upstream.next(name as OperationId, answer(200, '{"data":[],"links":{"next":"?page=3","prev":null}}'));
  const params = { name, arguments: { org: 'acme' } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const call = (path: string) => ask(path, { token: secret(), method: 'POST', body, headers });
  const { links } = (await call('/at/host/mcp')).json.result.structuredContent;
  expect(links.next).toMatch(/^http:\/\/[^/]+\/at\/host\/v1\/orgs\/acme\/members\?page=3$/);
  expect((await call('/books/mcp')).text).toBe('not here');
});

inHosts(says("A handler of the host reads and writes through the gateway's cache, limits and errors"), async (ask) => {
  const token = secret();
  const { plan } = (await ask(`/host${READ}`, { token })).json;
  const got = await ask('/own/plan', { token });
  expect([got.json, got.headers.get('cache-control')]).toEqual([{ plan }, 'no-store']);
  expect(got.headers.has('x-request-id')).toBe(true);
  expect(await ask('/own/plan')).toMatchObject({ status: 401, code: 'unauthenticated' });
});

inHosts(says('gives a record of headers, or a promise of one, that goes to the upstream'), async (ask) => {
  const token = secret();
  await ask(`/host${exampleRequest('getApiKey').path}`, { token });
  const [{ headers } = { headers: {} }] = upstream.calls;
  expect(headers).toMatchObject({ 'x-key': token, 'x-operation': 'getApiKey', accept: 'application/json' });
  expect(headers).not.toHaveProperty('authorization');
  const failed = await ask(`/host${READ}`, { token: `broken-${token}` });
  expect([failed.status, failed.code, upstream.calls.length]).toEqual([500, 'internal_error', 1]);
  expect(failed.text).not.toContain('hunter2');
});

inHosts(says('`onProblem(problem, { operation })` may add members or change `title` and `detail`'), async (ask) => {
  const got = await ask(`/host${READ}`);
  expect([got.status, got.json]).toMatchObject([401, { title: 'Oh', status: 401, operation: 'getSubscription' }]);
  expect((await ask('/books/v1/books')).json.title).not.toBe('Oh');
});

test(says("On another server of the host's the app works too, without the guards of `portico/node`."), async () => {
  const { app, drain } = hostOf(fromEnv({ UPSTREAM_BASE_URL: 'http://127.0.0.1:9', LOG_LEVEL: 'silent' }));
  expect((await app.request('/host/readyz')).status).toBe(200);
  await drain();
  expect((await app.request('/host/readyz')).status).toBe(503);
});

test("a host's request has no listener any more when it is answered: Node keeps some signals as long as they have one", async () => {
  const behind = await startUpstream();
  behind.on(() => true, good(200, '{}'));
  const { app, drain } = hostOf(fromEnv({ UPSTREAM_BASE_URL: behind.url, LOG_LEVEL: 'silent' }));
  const asked = new Request(`http://host.test/host${READ}`, { headers: { authorization: `Token ${secret()}` } });
  expect(await (await app.fetch(asked)).text()).toBe('{}');
  await drain();
  expect(behind.calls).toHaveLength(1);
  expect(getEventListeners(asked.signal, 'abort')).toEqual([]);
});

test(says('`portico`, `portico/proxy-account`, `portico/node` and `portico/worker` are public'), () => {
  const named = ['.', './proxy-account', './node', './worker', './package.json'];
  expect(Object.keys(manifest.exports)).toEqual(named);
  expect(manifest.version).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
});
