import { expect, it } from 'vitest';
import { VERSION } from '../../src/core/version.ts';
import { barrier, hang, hold, json, perCall, reply } from '../support/scripted-upstream.ts';
import { bodyOf, callOf, goodAnswer } from '../support/marked.ts';
import { manualClock } from '../support/clock.ts';
import { call } from '../support/http.ts';
import { rawRequest } from '../support/raw-client.ts';
import { secret } from '../support/secrets.ts';
import { memoryStore } from '../support/stores.ts';
import { watchedStore } from '../support/watched-store.ts';
import { childrenOf, idsTold, only, openTraced } from './helpers.ts';

const PATH = '/api/v2/subscription/';
const READ = `GET ${PATH}`;
const SUBSCRIPTION = { id: 1, plan: 2, payment_method: null };

it('a miss is a span of the request with one of its attempt, whose id the upstream is told', async () => {
  const { upstream, gateway, call: ask, told } = await openTraced();
  upstream.on(READ, json(200, SUBSCRIPTION));
  const { headers } = await ask({ path: PATH });
  const spans = await told();
  const server = only(spans, { kind: 'server' });
  const attempt = only(spans, { kind: 'client' });
  expect(spans).toHaveLength(2);
  const line = gateway.lines.find(({ msg }) => msg === 'request');
  expect(server).toMatchObject({ name: READ, parentId: undefined, isError: false, traceId: line?.trace_id });
  expect(server.facts).toEqual({
    'http.request.method': 'GET',
    'http.response.status_code': 200,
    'http.route': PATH,
    'url.path': PATH,
    'url.scheme': 'http',
    'portico.account': line?.account,
    'portico.cache': 'miss',
    'portico.operation': 'getSubscription',
    'portico.request_id': headers['x-request-id'],
  });
  expect(attempt).toMatchObject({ name: READ, parentId: server.id, traceId: server.traceId, isError: false });
  expect(attempt.facts).toEqual({
    'http.request.method': 'GET',
    'http.response.status_code': 200,
    'server.address': '127.0.0.1',
    'server.port': Number(new URL(upstream.url).port),
    'url.template': PATH,
    'portico.operation': 'getSubscription',
    'portico.outcome': 'good',
  });
  expect(upstream.calls.map(idsTold)).toEqual([{ traceId: server.traceId, id: attempt.id, flags: '01' }]);
  expect(server.resource).toMatchObject({ 'service.name': 'portico', 'service.version': VERSION });
});

it('spans have the time of day, however far the clock of the process is from it', async () => {
  const { upstream, call: ask, told } = await openTraced({ clock: manualClock(Date.now() - 3_600_000) });
  upstream.on(READ, json(200, SUBSCRIPTION));
  const from = Date.now();
  await ask({ path: PATH });
  const until = Date.now();
  for (const { startedAt, endedAt } of await told())
    for (const at of [startedAt, endedAt]) expect([at >= from, at <= until]).toEqual([true, true]);
});

it('a hit is one span', async () => {
  const { upstream, call: ask, told } = await openTraced();
  upstream.on(READ, json(200, SUBSCRIPTION));
  await ask({ path: PATH });
  await ask({ path: PATH });
  const spans = await told();
  const hit = spans.find(({ facts }) => facts['portico.cache'] === 'hit');
  expect(hit?.name).toBe(READ);
  expect(spans.filter(({ traceId }) => traceId === hit?.traceId)).toHaveLength(1);
});

it('retries are attempts of their own, with the back-off between them', async () => {
  const { upstream, call: ask, told } = await openTraced();
  upstream.on(READ, json(503), json(200, SUBSCRIPTION));
  await ask({ path: PATH });
  const spans = await told();
  const inside = childrenOf(spans, only(spans, { kind: 'server' }));
  expect(inside.map(({ name }) => name)).toEqual([READ, 'back-off', READ]);
  const [first, pause, second] = inside;
  expect(first).toMatchObject({ isError: true, facts: { 'error.type': 'status', 'http.response.status_code': 503 } });
  expect(second).toMatchObject({ isError: false, facts: { 'http.request.resend_count': 1 } });
  expect(first?.facts).not.toHaveProperty('http.request.resend_count');
  expect(pause!.startedAt).toBeGreaterThanOrEqual(first!.endedAt);
  expect(second!.startedAt).toBeGreaterThanOrEqual(pause!.endedAt);
  expect(upstream.calls.map((sent) => idsTold(sent).id)).toEqual([first?.id, second?.id]);
});

it('a failure is named alike in the span of the request, in that of its attempt and in the log', async () => {
  const { upstream, gateway, call: ask, told } = await openTraced({ env: { UPSTREAM_TIMEOUT_MS: '50' } });
  upstream.on(READ, hang());
  expect((await ask({ path: PATH })).status).toBe(504);
  const spans = await told();
  const server = only(spans, { kind: 'server' });
  expect(server).toMatchObject({
    isError: true,
    facts: { 'error.type': 'timeout', 'portico.code': 'upstream_timeout', 'portico.reason': 'timeout' },
  });
  expect(only(spans, { kind: 'client' })).toMatchObject({ isError: true, facts: { 'error.type': 'timeout' } });
  expect(gateway.lines.find(({ msg }) => msg === 'request')?.reason).toBe('timeout');
});

it('what the client did wrong is no error of the request, but one of the attempt that the upstream refused', async () => {
  const { upstream, call: ask, told } = await openTraced();
  upstream.on(READ, json(404, { code: 'no_plan' }));
  expect((await ask({ path: PATH })).status).toBe(404);
  const spans = await told();
  expect(only(spans, { kind: 'server' })).toMatchObject({ isError: false, facts: { 'portico.code': 'no_plan' } });
  const { isError, facts } = only(spans, { kind: 'client' });
  expect([isError, facts['error.type'], facts['portico.outcome']]).toEqual([true, '404', 'refused']);
});

it('legs have spans, with what each waited for in them, and all are within the request', async () => {
  const { upstream, call: ask, told } = await openTraced();
  const held = barrier();
  upstream.on(callOf('getSubscription'), reply(hold(held), json(200, bodyOf('getSubscription', 1))));
  upstream.on(callOf('listTransactions'), json(503), json(200, bodyOf('listTransactions', 1)));
  const asked = ask({ path: '/bff/v1/billing-overview?sections=subscription,transactions' });
  await upstream.waitForCalls(2, callOf('listTransactions'));
  held.release();
  expect((await asked).status).toBe(200);
  const spans = await told();
  const server = only(spans, { kind: 'server' });
  const legs = childrenOf(spans, server);
  expect(legs.map(({ name, kind, facts }) => [name, kind, facts])).toEqual([
    ['subscription', 'internal', { 'portico.leg': 'subscription' }],
    ['transactions', 'internal', { 'portico.leg': 'transactions' }],
  ]);
  const [subscription, transactions] = legs.map((leg) => childrenOf(spans, leg).map(({ name }) => name));
  expect(subscription).toEqual([callOf('getSubscription')]);
  expect(transactions).toEqual([callOf('listTransactions'), 'back-off', callOf('listTransactions')]);
  const byId = new Map(spans.map((span) => [span.id, span]));
  for (const { parentId, startedAt, endedAt } of spans) {
    const parent = byId.get(parentId ?? '') ?? server;
    expect(startedAt).toBeGreaterThanOrEqual(parent.startedAt);
    expect(endedAt).toBeLessThanOrEqual(parent.endedAt);
    expect(endedAt).toBeGreaterThanOrEqual(startedAt);
  }
});

it('the wait for a slot is a span', async () => {
  const store = watchedStore(memoryStore(manualClock()));
  const { upstream, call: ask, told } = await openTraced({ store, slots: 1 });
  const held = barrier();
  upstream.on(READ, reply(hold(held), json(200, SUBSCRIPTION)));
  const first = ask({ path: PATH });
  await held.reached;
  const passed = store.lookups.next();
  const second = ask({ path: PATH, token: secret() });
  await passed;
  held.release();
  await Promise.all([first, second]);
  const spans = await told();
  const waited = only(spans, { name: 'slot' });
  const beside = spans.filter(({ parentId }) => parentId === waited.parentId);
  const attempt = only(beside, { kind: 'client' });
  expect(attempt.startedAt).toBeGreaterThanOrEqual(waited.endedAt);
});

it('what the shared store is asked, and the session’s first reads, are in the trace', async () => {
  const store = watchedStore(memoryStore(manualClock()));
  const env = { SESSIONS: 'true', SECRETS: 'for-development-only-and-known-to-all' };
  const { upstream, call: ask, told } = await openTraced({ store, env });
  upstream.on(
    () => true,
    perCall((to) => goodAnswer(to, 1)),
  );
  const headers = { 'sec-fetch-site': 'same-origin' };
  const { status } = await ask({ path: '/bff/v1/session', body: { token: secret() }, headers });
  expect(status).toBe(201);
  await upstream.waitForCalls(4);
  const spans = await told();
  const server = only(spans, { kind: 'server' });
  expect(spans.filter(({ name }) => name === 'store').every(({ parentId }) => parentId === server.id)).toBe(true);
  expect(spans.some(({ name }) => name === 'store')).toBe(true);
  const attempts = spans.filter(({ kind }) => kind === 'client');
  expect(attempts.map(({ parentId }) => parentId)).toEqual(Array(4).fill(server.id));
  expect(new Set(upstream.calls.map((sent) => idsTold(sent).id))).toEqual(new Set(attempts.map(({ id }) => id)));
});

it('who joins a call is told with a link to the request whose call it is', async () => {
  const store = watchedStore(memoryStore(manualClock()));
  const { upstream, call: ask, told } = await openTraced({ store });
  const held = barrier();
  upstream.on(READ, reply(hold(held), json(200, SUBSCRIPTION)));
  const first = ask({ path: PATH, headers: { 'x-request-id': 'first' } });
  await held.reached;
  const passed = store.lookups.next();
  const second = ask({ path: PATH, headers: { 'x-request-id': 'second' } });
  await passed;
  held.release();
  await Promise.all([first, second]);
  const spans = await told();
  const joined = only(spans, { name: 'joined' });
  const by = (id: string) => spans.find(({ facts }) => facts['portico.request_id'] === id);
  expect(joined.parentId).toBe(by('second')?.id);
  expect(joined.links).toEqual([{ traceId: by('first')?.traceId, id: by('first')?.id }]);
  expect(by('second')?.traceId).not.toBe(by('first')?.traceId);
});

it('a refresh behind a stale answer is in the trace of the request that began it', async () => {
  const policy = JSON.stringify({ getSubscription: { fresh: 0, stale: 60, on_error: 60 } });
  const {
    upstream,
    collector,
    call: ask,
    told,
  } = await openTraced({
    env: { CACHE_POLICY: policy },
    variables: { OTEL_BSP_SCHEDULE_DELAY: '10' },
  });
  const held = barrier();
  upstream.on(READ, json(200, SUBSCRIPTION), reply(hold(held), json(200, SUBSCRIPTION)));
  await ask({ path: PATH });
  await ask({ path: PATH, headers: { 'x-request-id': 'stale' } });
  const [server] = await collector.until(({ facts }) => facts['portico.request_id'] === 'stale');
  held.release();
  const spans = await told();
  const [attempt] = childrenOf(spans, server!);
  expect(attempt).toMatchObject({ kind: 'client', traceId: server?.traceId, facts: { 'portico.outcome': 'good' } });
  expect(attempt!.endedAt).toBeGreaterThan(server!.endedAt);
  expect(idsTold(upstream.calls[1]!).id).toBe(attempt?.id);
});

it('a client that leaves ends its spans', async () => {
  const { upstream, collector, call: ask } = await openTraced({ variables: { OTEL_BSP_SCHEDULE_DELAY: '10' } });
  upstream.on(READ, hang());
  const leaving = new AbortController();
  const asked = ask({ path: PATH, signal: leaving.signal }).catch(() => undefined);
  await upstream.waitForCalls(1);
  leaving.abort();
  await asked;
  const [server] = await collector.until(({ kind }) => kind === 'server');
  const [attempt] = await collector.until(({ kind }) => kind === 'client');
  expect(server).toMatchObject({ isError: false, facts: { 'portico.code': 'client_left' } });
  expect(attempt).toMatchObject({
    isError: false,
    facts: { 'portico.outcome': 'abandoned', 'error.type': 'abandoned' },
  });
});

it('probes, scrapes and what a guard refuses are in no trace', async () => {
  const { gateway, call: ask, told } = await openTraced({ admin: true });
  await ask({ path: '/livez' });
  expect((await call(gateway.adminUrl ?? '', { path: '/metrics' })).status).toBe(200);
  const refused = await rawRequest(
    gateway.port,
    'GET /problems HTTP/1.1\r\nHost: two words\r\nConnection: close\r\n\r\n',
  );
  expect(refused.status).toBe(400);
  await ask({ path: '/no/such/path' });
  expect((await told()).map(({ name }) => name)).toEqual(['GET']); // the last one alone
});
