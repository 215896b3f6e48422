import { context, propagation, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { describe, expect, onTestFinished, test } from 'vitest';
import { VERSION } from '../../src/core/version.ts';
import { openTraces } from '../../src/entry/node/tracing/index.ts';
import { allOperations } from '../support/account-api.ts';
import { openCollector } from '../support/collector.ts';
import { says } from '../support/contract.ts';
import { exampleRequest } from '../support/examples.ts';
import { type Env, openGateway, keepingLogger, type LogLine } from '../support/gateway.ts';
import { cardHolder, cardLast4, email, LEAK_MARK, leaksIn, secret, SECRET_FORMS } from '../support/secrets.ts';
import { answer, type Call, hang, reset } from '../support/upstream.ts';

const READ = 'getSubscription';
const NAME = 'GET /api/v2/subscription/';
const UPSTREAM = new URL('http://upstream.test:8080');
const GOOD_GET = { 'http.request.method': 'GET', 'http.response.status_code': 200, 'portico.operation': READ };
const KINDS: readonly string[] = ['internal', 'server', 'client'];

/** What a test looks at. */
const seen = (span: ReadableSpan) => ({
  name: span.name,
  kind: KINDS[span.kind] ?? 'other',
  facts: span.attributes,
  isError: span.status.code === SpanStatusCode.ERROR,
  id: span.spanContext().spanId,
  traceId: span.spanContext().traceId,
  parentId: span.parentSpanContext?.spanId,
  links: span.links.map((link) => link.context.spanId),
  startedAt: span.startTime[0] * 1e3 + span.startTime[1] / 1e6,
  endedAt: span.endTime[0] * 1e3 + span.endTime[1] / 1e6,
});

type Seen = ReturnType<typeof seen>;

/** A gateway in an app that has OpenTelemetry of its own. */
function open(env: Env = {}) {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager());
  trace.setGlobalTracerProvider(provider);
  onTestFinished(() => {
    trace.disable();
    context.disable();
    propagation.disable();
  });
  const { tracing } = openTraces(UPSTREAM, keepingLogger([]));
  const gateway = openGateway(env, { tracing });
  const spans = async () => {
    await gateway.idle();
    await gateway.pass(0);
    return exporter.getFinishedSpans().map(seen);
  };
  const tracer: Tracer = provider.getTracer('host');
  return { ...gateway, tracer, spans };
}

/** The one of that kind or name. */
function only(spans: readonly Seen[], is: Partial<Pick<Seen, 'name' | 'kind'>>): Seen {
  const found = spans.filter((span) => Object.entries(is).every(([key, value]) => span[key as 'name'] === value));
  expect(found).toHaveLength(1);
  return found[0]!;
}

const childrenOf = (spans: readonly Seen[], { id }: Seen) =>
  spans.filter(({ parentId }) => parentId === id).toSorted((one, other) => one.startedAt - other.startedAt);

/** Trace and span that the upstream was told. */
function told({ headers }: Pick<Call, 'headers'>) {
  const [, traceId, id, flags] = headers['traceparent']?.split('-') ?? [];
  return { traceId, id, flags };
}

test('a miss is a span of the request with one of its attempt, whose id the upstream is told; a hit is one span', async () => {
  const { ask, upstream, lines, spans } = open();
  const from = Date.now();
  const { headers } = await ask(READ);
  const until = Date.now();
  const all = await spans();
  for (const { startedAt, endedAt } of all)
    // in the time of day, however far the clock of the process is from it
    expect([startedAt >= from, endedAt <= until]).toEqual([true, true]);
  const [server, attempt] = [only(all, { kind: 'server' }), only(all, { kind: 'client' })];
  const [line] = lines;
  expect(server).toMatchObject({ name: NAME, parentId: undefined, isError: false, traceId: line?.trace_id });
  expect(server.facts).toEqual({
    ...GOOD_GET,
    'http.route': '/api/v2/subscription/',
    'url.path': '/api/v2/subscription/',
    'url.scheme': 'http',
    'portico.account': line?.account,
    'portico.cache': 'miss',
    'portico.request_id': headers.get('x-request-id'),
  });
  expect(attempt).toMatchObject({ name: NAME, parentId: server.id, traceId: server.traceId, isError: false });
  expect(attempt.facts).toEqual({
    ...GOOD_GET,
    'server.address': 'upstream.test',
    'server.port': 8080,
    'url.template': '/api/v2/subscription/',
    'portico.outcome': 'good',
  });
  expect(upstream.calls.map(told)).toEqual([{ traceId: server.traceId, id: attempt.id, flags: '01' }]);
  await ask(READ);
  expect((await spans()).slice(all.length)).toMatchObject([{ name: NAME, facts: { 'portico.cache': 'hit' } }]);
});

test('retries are attempts of their own, with the back-off between them', async () => {
  const { ask, upstream, spans } = open();
  upstream.next(READ, answer(503));
  await ask(READ);
  const all = await spans();
  const inside = childrenOf(all, only(all, { kind: 'server' }));
  const [first, second] = inside.filter(({ kind }) => kind === 'client');
  expect(inside.map(({ name }) => name).toSorted()).toEqual([NAME, NAME, 'back-off']);
  expect(first).toMatchObject({ isError: true, facts: { 'error.type': 'status', 'http.response.status_code': 503 } });
  expect(second).toMatchObject({ isError: false, facts: { 'http.request.resend_count': 1 } });
  expect(first?.facts).not.toHaveProperty('http.request.resend_count');
  expect(upstream.calls.map((call) => told(call).id)).toEqual([first?.id, second?.id]);
});

describe('what went wrong', () => {
  test('is named alike in the span of the request, in that of its attempt and in the log', async () => {
    const { ask, upstream, pass, lines, spans } = open();
    upstream.next(READ, hang());
    const asked = ask(READ);
    await pass(5);
    expect((await asked).status).toBe(504);
    const all = await spans();
    const facts = { 'error.type': 'timeout', 'portico.code': 'upstream_timeout', 'portico.reason': 'timeout' };
    expect(only(all, { kind: 'server' })).toMatchObject({ isError: true, facts });
    expect(only(all, { kind: 'client' })).toMatchObject({ isError: true, facts: { 'error.type': 'timeout' } });
    expect(lines.find(({ msg }) => msg === 'request')?.reason).toBe('timeout');
  });
});

describe('what a request waits for', () => {
  test('legs have spans, with what each waited for in them, and all are within the request', async () => {
    const { call, upstream, spans } = open();
    upstream.next('listTransactions', answer(503));
    await call('/bff/v1/billing-overview?sections=subscription,transactions');
    const all = await spans();
    const server = only(all, { kind: 'server' });
    const legs = childrenOf(all, server).toSorted((a, b) => (a.name < b.name ? -1 : 1));
    expect(legs.map(({ name, kind, facts }) => [name, kind, facts])).toEqual([
      ['subscription', 'internal', { 'portico.leg': 'subscription' }],
      ['transactions', 'internal', { 'portico.leg': 'transactions' }],
    ]);
    const [subscription, transactions] = legs.map((leg) => childrenOf(all, leg).map(({ kind }) => kind));
    expect([subscription, transactions?.toSorted()]).toEqual([['client'], ['client', 'client', 'internal']]);
    const byId = new Map(all.map((span) => [span.id, span]));
    for (const { parentId, startedAt, endedAt } of all) {
      const parent = byId.get(parentId ?? '') ?? server;
      expect([startedAt >= parent.startedAt, endedAt <= parent.endedAt]).toEqual([true, true]);
    }
  });

  test('the wait for a slot is a span; who joins a call has a link to the request whose call it is', async () => {
    const { ask, upstream, pass, spans } = open({ UPSTREAM_MAX_CONNECTIONS: '1' });
    const held = upstream.hold(READ);
    const first = ask(READ, { headers: { 'x-request-id': 'first' } });
    await held.call;
    const others = [ask(READ, { headers: { 'x-request-id': 'second' } }), ask(READ, { token: secret() })];
    await pass(0);
    held.release();
    await Promise.all([first, ...others]);
    const all = await spans();
    const by = (id: string) => all.find(({ facts }) => facts['portico.request_id'] === id);
    const joined = only(all, { name: 'joined' });
    expect([joined.parentId, joined.links]).toEqual([by('second')?.id, [by('first')?.id]]);
    expect(by('second')?.traceId).not.toBe(by('first')?.traceId);
    const waited = only(all, { name: 'slot' });
    expect(all.filter(({ parentId, kind }) => kind === 'client' && parentId === waited.parentId)).toHaveLength(1);
  });

  test('a refresh behind a stale answer is in the trace of the request that began it', async () => {
    const { ask, pass, spans } = open();
    await ask(READ);
    await pass(40);
    await ask(READ, { headers: { 'x-request-id': 'stale' } });
    const all = await spans();
    const server = all.find(({ facts }) => facts['portico.request_id'] === 'stale');
    const attempts = all.filter(({ kind, traceId }) => kind === 'client' && traceId === server?.traceId);
    expect(attempts).toMatchObject([{ facts: { 'portico.outcome': 'good' } }]);
  });
});

test('within a span of the host’s they are its children; else the client’s trace is continued', async () => {
  const { ask, tracer, upstream, spans } = open();
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const headers = { traceparent, tracestate: 'vendor=a' };
  await tracer.startActiveSpan('of the host', async (span) => {
    await ask(READ, { headers });
    span.end();
  });
  await ask(READ, { headers, token: secret() });
  const all = await spans();
  const [inside, outside] = all.filter(({ kind }) => kind === 'server');
  expect(inside?.parentId).toBe(only(all, { name: 'of the host' }).id);
  expect(outside).toMatchObject({ traceId: '0af7651916cd43dd8448eb211c80319c', parentId: 'b7ad6b7169203331' });
  expect(upstream.calls.map((call) => told(call).traceId)).toEqual([inside?.traceId, outside?.traceId]);
  expect(upstream.calls[1]?.headers['tracestate']).toBe('vendor=a');
});

test('no span holds a key, card, e-mail address, query, path or body, whatever became of its request', async () => {
  const { ask, call, upstream, spans } = open();
  const failure = { code: LEAK_MARK, message: `${email()} ${cardHolder} ${cardLast4}` };
  const headers = { 'user-agent': LEAK_MARK, cookie: `a=${secret('cookie')}`, 'x-made-up': secret() };
  for (const { id } of allOperations)
    for (const reply of [answer(200, failure), answer(409, [failure]), answer(500, failure), reset()]) {
      upstream.next(id, () => reply);
      await ask(id, { token: secret(), headers, path: `${exampleRequest(id).path}?x=${LEAK_MARK}` });
      upstream.clear();
    }
  await call(`/no/such/${LEAK_MARK}?${email()}`, { headers });
  for (const path of ['/livez', '/readyz']) await call(path);
  await call('/bff/v1/batch', { body: { requests: [{ id: LEAK_MARK, path: `/api/v2/apikey/${LEAK_MARK}/` }] } });
  const all = await spans();
  expect(all.filter(({ name }) => name === 'GET')).toHaveLength(1); // of an unknown path no name, of a probe nothing
  expect(new Set(all.map(({ facts }) => facts['portico.operation'])).size).toBeGreaterThan(allOperations.length);
  const text = JSON.stringify(all);
  expect(leaksIn(text)).toEqual([]);
  for (const [what, form] of Object.entries(SECRET_FORMS))
    expect([what, form.exec(text)?.[0]]).toEqual([what, undefined]);
  expect(text).not.toMatch(/auth_91-a|\/12345/); // the ids in paths
});

/** The SDK reads its variables from the process. */
async function sdkWith(variables: Env, status = 200) {
  const collector = await openCollector(status);
  onTestFinished(() => collector.close());
  const troubles: LogLine[] = [];
  const warned = Promise.withResolvers<void>();
  const logger = keepingLogger(troubles);
  const warn: typeof logger.warn = (...said) => {
    logger.warn(...said);
    warned.resolve();
  };
  const given: Env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '10', ...variables };
  Object.assign(process.env, given);
  const traces = openTraces(UPSTREAM, { ...logger, warn });
  await traces.opened().finally(() => {
    for (const name of Object.keys(given)) delete process.env[name];
  });
  onTestFinished(() => traces.close());
  return { ...openGateway({}, { tracing: traces.tracing }), collector, troubles, warned: warned.promise };
}

const FROM = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-' };

describe(says("OpenTelemetry's own; with an endpoint, traces go there"), () => {
  test.each([
    ['parentbased_always_on', '00', false, '1'],
    ['parentbased_always_on', undefined, true, '1'],
    ['always_on', '00', true, '1'],
    ['traceidratio', '01', false, '0'],
    ['parentbased_traceidratio', '01', true, '0'],
  ] as const)(
    '%s, with flags %s of the client: the upstream hears whether there are spans: %s',
    async (name, flags, is, share) => {
      const sampler = { OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: share };
      const { ask, upstream, collector } = await sdkWith(sampler);
      await ask(READ, { headers: flags === undefined ? {} : { traceparent: FROM.traceparent + flags } });
      const [sent] = upstream.calls.map(told);
      expect(sent?.flags).toBe(is ? '01' : '00');
      if (is) await collector.until(({ kind, traceId }) => kind === 'server' && traceId === sent?.traceId);
      else expect(collector.spans).toEqual([]);
    },
  );

  test('the variables of the exporter and of the resource hold', async () => {
    const { ask, collector } = await sdkWith({
      OTEL_SERVICE_NAME: 'front door',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=not this',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-of=the%20collector, ,',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_TRACES_SAMPLER: 'Always_On',
      OTEL_TRACES_EXPORTER: 'otlp',
    });
    await ask(READ);
    const [span] = await collector.until(({ kind }) => kind === 'server');
    expect(span?.resource).toMatchObject({ 'service.name': 'front door', 'deployment.environment.name': 'test' });
    expect(span?.resource).toMatchObject({ 'service.version': VERSION });
    const headers = { 'x-of': 'the collector', 'content-encoding': 'gzip', 'content-type': 'application/json' };
    expect(collector.heads[0]).toMatchObject({ url: '/v1/traces', headers });
  });

  test.each([{ OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'None' }, { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }])(
    'there are none with %o',
    async (variables) => {
      const { ask, upstream, troubles } = await sdkWith(variables);
      await ask(READ);
      expect(upstream.calls.map((call) => told(call).flags)).toEqual(['00']);
      expect(troubles).toEqual([]);
    },
  );

  test('a collector that refuses is told of with its status, and not with what it said; answers do not wait', async () => {
    const { ask, collector, troubles, warned } = await sdkWith({}, 401);
    for (let times = 0; times < 3; times++) expect((await ask(READ)).status).toBe(200);
    await warned;
    const host = new URL(collector.url).host;
    expect(troubles).toEqual([{ level: 'warn', msg: 'trouble with traces', reason: '401', host }]);
  });
});

test('the call of a tool is in the span of the request that it came in', async () => {
  const { call, spans } = open({ MCP: 'true' });
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: READ } };
  await call('/mcp', { body: message, headers: { accept: 'application/json, text/event-stream' } });
  const all = await spans();
  const [outer, inner] = [only(all, { name: 'POST /mcp' }), only(all, { name: NAME, kind: 'server' })];
  expect(inner).toMatchObject({ parentId: outer.id, traceId: outer.traceId, facts: GOOD_GET });
  expect(only(all, { kind: 'client' }).parentId).toBe(inner.id);
});
