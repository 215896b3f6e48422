import { expect, it } from 'vitest';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { idsTold, only, openTraced } from './helpers.ts';

const PATH = '/api/v2/subscription/';
const READ = `GET ${PATH}`;
const ANSWER = json(200, { id: 1, plan: 2, payment_method: null });

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const SPAN_ID = 'b7ad6b7169203331';
const from = (flags: string) => ({ traceparent: `00-${TRACE_ID}-${SPAN_ID}-${flags}`, tracestate: 'vendor=a' });

const sampler = (name: string, share = '1') => ({
  variables: { OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: share },
});

it('the client’s trace is continued: its span is the parent, its state goes on', async () => {
  const { upstream, gateway, call, told } = await openTraced();
  upstream.on(READ, ANSWER);
  await call({ path: PATH, headers: from('01') });
  const spans = await told();
  const server = only(spans, { kind: 'server' });
  expect(server).toMatchObject({ traceId: TRACE_ID, parentId: SPAN_ID });
  const attempt = only(spans, { kind: 'client' });
  expect(upstream.calls.map(idsTold)).toEqual([{ traceId: TRACE_ID, id: attempt.id, flags: '01' }]);
  expect(upstream.calls[0]?.headers['tracestate']).toBe('vendor=a');
  expect(gateway.lines.find(({ msg }) => msg === 'request')?.trace_id).toBe(TRACE_ID);
});

it.each([
  ['parentbased_always_on', '01', true, '1'],
  ['parentbased_always_on', '00', false, '1'],
  ['parentbased_always_off', '01', true, '1'],
  ['parentbased_always_off', undefined, false, '1'],
  ['parentbased_always_on', undefined, true, '1'],
  ['always_on', '00', true, '1'],
  ['always_off', '01', false, '1'],
  ['traceidratio', '01', true, '1'],
  ['traceidratio', '01', false, '0'],
  ['parentbased_traceidratio', '01', true, '0'],
  ['parentbased_traceidratio', undefined, false, '0'],
] as const)(
  '%s, with flags %s of the client: there are spans, and the upstream hears so: %s',
  async (name, flags, is, share) => {
    const { upstream, gateway, call, told } = await openTraced(sampler(name, share));
    upstream.on(READ, ANSWER);
    await call({ path: PATH, headers: flags === undefined ? {} : from(flags) });
    expect((await told()).map(({ kind }) => kind)).toEqual(is ? ['client', 'server'] : []);
    const [sent] = upstream.calls.map(idsTold);
    const traceId = gateway.lines.find(({ msg }) => msg === 'request')?.trace_id;
    expect(sent).toMatchObject({ flags: is ? '01' : '00', traceId });
    if (flags !== undefined) expect(traceId).toBe(TRACE_ID);
  },
);

it('of a share of traces, those are told whose flags say so to the upstream, and no others', async () => {
  const { upstream, call, told } = await openTraced(sampler('parentbased_traceidratio', '0.5'));
  upstream.on(READ, ANSWER);
  for (let count = 0; count < 60; count++) await call({ path: PATH, token: secret() });
  const spans = await told();
  const sampled = upstream.calls.map(idsTold).filter(({ flags }) => flags === '01');
  expect(sampled.length).toBeGreaterThan(5);
  expect(sampled.length).toBeLessThan(55);
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set(sampled.map(({ traceId }) => traceId)));
});

it('the variables of the exporter and of the resource hold', async () => {
  const { upstream, collector, call, told } = await openTraced({
    variables: {
      OTEL_SERVICE_NAME: 'front door',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=not this',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-of=the%20collector, ,',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_TRACES_SAMPLER: 'Always_On',
      OTEL_TRACES_EXPORTER: 'otlp',
    },
  });
  upstream.on(READ, ANSWER);
  await call({ path: PATH });
  const [span] = await told();
  expect(span?.resource).toMatchObject({ 'service.name': 'front door', 'deployment.environment.name': 'test' });
  expect(collector.heads[0]).toMatchObject({
    url: '/v1/traces',
    headers: { 'x-of': 'the collector', 'content-encoding': 'gzip', 'content-type': 'application/json' },
  });
});

it.each([
  { OTEL_SDK_DISABLED: 'true' },
  { OTEL_TRACES_EXPORTER: 'none' },
  { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
  { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' },
])('there are none with %o', async (variables) => {
  const { upstream, lines, call, told } = await openTraced({ variables });
  upstream.on(READ, ANSWER);
  await call({ path: PATH });
  expect(await told()).toEqual([]);
  expect(upstream.calls.map((sent) => idsTold(sent).flags)).toEqual(['00']);
  expect(lines).toEqual([]);
});
