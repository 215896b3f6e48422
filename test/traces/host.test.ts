import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Hono } from 'hono';
import { expect, it, onTestFinished } from 'vitest';
import { openTraces } from '../../src/entry/node/tracing/index.ts';
import type { HostEnv } from '../../src/middleware/calls.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { idsTold, openTraced } from './helpers.ts';

const PATH = '/api/v2/subscription/';
const READ = `GET ${PATH}`;
const ANSWER = json(200, { id: 1, plan: 2, payment_method: null });

/** As an app does that has OpenTelemetry of its own. */
function registerHost() {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager());
  trace.setGlobalTracerProvider(provider);
  onTestFinished(() => {
    trace.disable();
    context.disable();
    propagation.disable();
  });
  return { exporter, tracer: provider.getTracer('host') };
}

it('where the host has a provider, spans go there, as children of its active one, and the SDK is not started', async () => {
  const { exporter, tracer } = registerHost();
  const host = new Hono<HostEnv>().use((_, next) =>
    tracer.startActiveSpan('of the host', async (span) => {
      await next();
      span.end();
    }),
  );
  const { upstream, collector, call, told } = await openTraced({ around: (app) => host.route('/', app) });
  upstream.on(READ, ANSWER);
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  await call({ path: PATH, headers: { traceparent } });
  await told();
  const [attempt, server, outer] = exporter.getFinishedSpans();
  expect([attempt?.name, server?.name, outer?.name]).toEqual([READ, READ, 'of the host']);
  expect(server?.parentSpanContext?.spanId).toBe(outer?.spanContext().spanId);
  expect(attempt?.parentSpanContext?.spanId).toBe(server?.spanContext().spanId);
  expect(upstream.calls.map(idsTold)).toEqual([
    { traceId: outer?.spanContext().traceId, id: attempt?.spanContext().spanId, flags: '01' },
  ]);
  expect(collector.spans).toEqual([]);
});

it('what instruments undici for the host tells of no attempt once more', async () => {
  const { exporter, tracer } = registerHost();
  const seen: boolean[] = [];
  const instrument = () => {
    const span = tracer.startSpan('instrumented');
    seen.push(span.isRecording());
    span.end();
  };
  subscribe('undici:request:create', instrument);
  onTestFinished(() => void unsubscribe('undici:request:create', instrument));
  const { upstream, gateway, told } = await openTraced();
  upstream.on(READ, ANSWER);
  const answer = await fetch(gateway.url + PATH, { headers: { authorization: `Token ${secret()}` } });
  expect(answer.status).toBe(200);
  await told();
  expect(seen).toEqual([true, false]); // the test's own call is seen
  expect(exporter.getFinishedSpans().filter(({ name }) => name === 'instrumented')).toHaveLength(1);
});

it('a handler of the host’s behind gateway.request has a span with the name of its route', async () => {
  const { exporter } = registerHost();
  const { upstream, call, told } = await openTraced({
    around: (app, request) =>
      new Hono<HostEnv>()
        .use('/own/*', request)
        .get('/own/:id', (c) => c.text('mine'))
        .route('/', app),
  });
  expect((await call({ path: '/own/4711' })).text).toBe('mine');
  await told();
  expect(upstream.calls).toEqual([]);
  const [span] = exporter.getFinishedSpans();
  expect([span?.name, span?.attributes['http.route']]).toEqual(['GET /own/:id', '/own/:id']);
  expect(JSON.stringify(span?.attributes)).not.toContain('4711');
});

it('a provider that is registered between making the gateway and serving it is found', async () => {
  const traces = openTraces(new URL('http://127.0.0.1:9'), { info() {}, warn() {}, error() {}, request() {} });
  expect(traces.tracing.tracer).toBeUndefined();
  registerHost();
  await traces.opened();
  expect(traces.tracing.tracer).toBeDefined();
});
