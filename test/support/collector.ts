import { createServer, type IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { listenLocally } from './ports.ts';
import { LEAK_MARK } from './secrets.ts';

type Value = string | number | boolean | undefined;

/** A span as a collector has it. Times in milliseconds since the epoch. */
interface Span {
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client';
  readonly traceId: string;
  readonly id: string;
  readonly parentId: string | undefined;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly facts: Readonly<Record<string, Value>>;
  readonly links: readonly { readonly traceId: string; readonly id: string }[];
  readonly isError: boolean;
  /** Facts of the process that it comes from. */
  readonly resource: Readonly<Record<string, Value>>;
}

interface OtlpAttribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number | string; readonly doubleValue?: number };
}

interface OtlpSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly OtlpAttribute[];
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code: number };
}

interface Otlp {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

const factsOf = (attributes: readonly OtlpAttribute[]) =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? (value.intValue === undefined ? value.doubleValue : Number(value.intValue)),
    ]),
  );

const KINDS = { 1: 'internal', 2: 'server', 3: 'client' } as const;

const msOf = (nanoseconds: string) => Number(BigInt(nanoseconds) / 1_000n) / 1_000;

function spansIn(text: string): Span[] {
  const { resourceSpans } = JSON.parse(text) as Otlp;
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans
      .flatMap(({ spans }) => spans)
      .map((span) => ({
        name: span.name,
        kind: KINDS[span.kind as 1],
        traceId: span.traceId,
        id: span.spanId,
        parentId: span.parentSpanId,
        startedAt: msOf(span.startTimeUnixNano),
        endedAt: msOf(span.endTimeUnixNano),
        facts: factsOf(span.attributes),
        links: (span.links ?? []).map(({ traceId, spanId }) => ({ traceId, id: spanId })),
        isError: span.status.code === 2,
        resource: factsOf(resource.attributes),
      })),
  );
}

async function textOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  return (message.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString();
}

export interface Collector {
  readonly url: string;
  /** All that has come, as it came. */
  readonly texts: readonly string[];
  readonly spans: readonly Span[];
  /** Heads of the requests that brought them. */
  readonly heads: readonly IncomingMessage[];
  /** Resolves once so many spans have come that `isOne` takes. */
  until(isOne: (span: Span) => boolean, count?: number): Promise<readonly Span[]>;
  close(): Promise<void>;
}

/** A collector of traces that takes OTLP over HTTP, as JSON. `status`: what it answers; 0 is never to answer. */
export async function openCollector(status = 200): Promise<Collector> {
  const [texts, spans, heads]: [string[], Span[], IncomingMessage[]] = [[], [], []];
  const watchers = new Set<() => void>();
  const server = createServer((message, answer) => {
    void textOf(message).then((text) => {
      heads.push(message);
      texts.push(text);
      spans.push(...spansIn(text));
      for (const look of watchers) look();
      const said = status < 400 ? {} : { message: LEAK_MARK };
      if (status > 0) answer.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(said));
    });
  });
  const port = await listenLocally(server);
  return {
    url: `http://127.0.0.1:${port}`,
    texts,
    spans,
    heads,
    until: (isOne, count = 1) =>
      new Promise((resolve) => {
        const look = () => {
          const found = spans.filter(isOne);
          if (found.length < count) return;
          watchers.delete(look);
          resolve(found);
        };
        watchers.add(look);
        look();
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
