import { expect, onTestFinished } from 'vitest';
import { openTraces } from '../../src/entry/node/tracing/index.ts';
import { type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { type Collector, openCollector, type Span } from '../support/collector.ts';
import { keepingLogger, type LogLine, startGateway, type TestGateway } from '../support/gateway.ts';
import { call, type CallOptions, type TextAnswer } from '../support/http.ts';
import { secret } from '../support/secrets.ts';

type GatewayOptions = NonNullable<Parameters<typeof startGateway>[1]>;

export interface Options extends Omit<GatewayOptions, 'tracing'> {
  /** Of OpenTelemetry. */
  readonly variables?: Readonly<Record<string, string>>;
  /** What the collector answers; 0 is never to answer. */
  readonly status?: number;
  /** Where the gateway looks for its upstream, if not at the scripted one. */
  readonly at?: string;
}

export interface Traced {
  readonly upstream: ScriptedUpstream;
  readonly collector: Collector;
  readonly gateway: TestGateway;
  readonly token: string;
  /** What the SDK had to say. */
  readonly lines: readonly LogLine[];
  readonly call: (options: CallOptions) => Promise<TextAnswer>;
  /** All spans, once the gateway is closed. */
  readonly told: () => Promise<readonly Span[]>;
}

/** The SDK reads its variables from the process. */
async function withVariables<T>(variables: Readonly<Record<string, string>>, run: () => Promise<T>): Promise<T> {
  Object.assign(process.env, variables);
  try {
    return await run();
  } finally {
    for (const name of Object.keys(variables)) delete process.env[name];
  }
}

/** A gateway whose traces go to a collector of the test's own, through the SDK, on real sockets and with the real clock. */
export async function openTraced({ variables = {}, status, at, env, ...options }: Options = {}): Promise<Traced> {
  const upstream = await startUpstream();
  const url = at ?? upstream.url;
  const collector = await openCollector(status);
  const lines: LogLine[] = [];
  const given = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...variables };
  const traces = await withVariables(given, async () => {
    const opened = openTraces(new URL(url), keepingLogger(lines));
    await opened.opened();
    return opened;
  });
  const gateway = await startGateway(url, {
    ...options,
    env: { RATE_LIMIT_PER_MINUTE: '0', ...env },
    tracing: traces.tracing,
  });
  let isOpen = true;
  const close = async () => {
    if (!isOpen) return;
    isOpen = false;
    await gateway.close();
    await traces.close();
  };
  onTestFinished(async () => {
    await close();
    await collector.close();
    await upstream.close();
    upstream.assertNoUnexpected();
  });
  const token = secret();
  return {
    upstream,
    collector,
    gateway,
    token,
    lines,
    call: (asked) => call(gateway.url, { token, ...asked }),
    async told() {
      await close();
      return collector.spans;
    },
  };
}

/** The one of that kind or name. */
export function only(spans: readonly Span[], isOne: Partial<Pick<Span, 'name' | 'kind'>>): Span {
  const found = spans.filter((span) => Object.entries(isOne).every(([key, value]) => span[key as 'name'] === value));
  expect(found).toHaveLength(1);
  return found[0]!;
}

export const childrenOf = (spans: readonly Span[], { id }: Span): readonly Span[] =>
  spans.filter(({ parentId }) => parentId === id).toSorted((one, other) => one.startedAt - other.startedAt);

/** Trace and span that the upstream was told. */
export function idsTold({ headers }: { readonly headers: Readonly<Record<string, string>> }) {
  const [, traceId, id, flags] = headers['traceparent']?.split('-') ?? [];
  return { traceId, id, flags };
}
