import {
  type Attributes,
  type Context,
  context,
  createTraceState,
  isSpanContextValid,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import { type AttemptSpan, BACKGROUND, type Phase, type RequestSpan, type Sent } from '../../../core/timeline.ts';
import type { Trace, TracedRequest, Tracing } from '../../../core/tracing.ts';

/**
 * Spans of requests, by OpenTelemetry's conventions for HTTP. They have no raw path, query, header, body or address of a client;
 * an account is its keyed hash.
 */
export class Spans implements Tracing {
  /** Absent where nobody wants spans. */
  tracer: Tracer | undefined;
  readonly #upstream: Attributes;

  constructor({ protocol, hostname, port }: URL) {
    const usual = protocol === 'https:' ? 443 : 80;
    this.#upstream = { 'server.address': hostname, 'server.port': port === '' ? usual : Number(port) };
  }

  begin(request: TracedRequest): { readonly trace: Trace; readonly span: RequestSpan | undefined } | undefined {
    const { tracer } = this;
    if (!tracer) return undefined;
    const parent = parentOf(request);
    // The process's clock does not follow where the machine's is set; the spans of others do.
    const shiftMs = Math.trunc(Date.now() - request.startedAt);
    const startTime = request.startedAt + shiftMs;
    const attributes = factsOf(request);
    const span = tracer.startSpan(nameOf(request), { kind: SpanKind.SERVER, startTime, attributes }, parent);
    const ids = span.spanContext();
    if (!isSpanContextValid(ids)) return undefined; // a host has turned traces off for what is served here
    const { traceId, traceFlags, traceState } = ids;
    const told = { traceId, flags: flagsOf(traceFlags), tracestate: traceState?.serialize() || undefined };
    if (!span.isRecording()) return { trace: told, span: undefined };
    return { trace: told, span: new Served({ request, tracer, span, parent, shiftMs, upstream: this.#upstream }) };
  }
}

/** The span that the host is in; else the client's. */
function parentOf(request: TracedRequest): Context {
  const around = context.active();
  const ids = trace.getSpanContext(around);
  if (ids && isSpanContextValid(ids)) return around;
  const { traceId, parentId, flags, tracestate } = request.trace;
  if (parentId === undefined) return around;
  const client = { traceId, spanId: parentId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  const state = tracestate === undefined ? {} : { traceState: createTraceState(tracestate) };
  return trace.setSpanContext(around, { ...client, ...state });
}

const flagsOf = (flags: number) => flags.toString(16).padStart(2, '0');

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** A method or a path that is none of ours may be any text, and is not told. */
function nameOf({ method, route: { name } }: TracedRequest): string {
  const known = METHODS.has(method) ? method : 'HTTP';
  return isPath(name) ? `${known} ${name}` : known;
}

const isPath = (route: string) => route.startsWith('/');

/** What is known of a request when it begins, for the sampler too. A raw path may have ids of an account in it. */
function factsOf({ method, route: { name, operation }, hostOrigin, requestId }: TracedRequest): Attributes {
  return {
    'http.request.method': METHODS.has(method) ? method : '_OTHER',
    'url.scheme': hostOrigin.slice(0, hostOrigin.indexOf(':')),
    ...routeFacts(name),
    'portico.request_id': requestId,
    ...(operation !== undefined && { 'portico.operation': operation }),
  };
}

const routeFacts = (name: string): Attributes => (isPath(name) ? { 'http.route': name, 'url.path': name } : {});

interface Begun {
  readonly request: TracedRequest;
  readonly tracer: Tracer;
  readonly span: Span;
  /** What the span is in. */
  readonly parent: Context;
  /** From the process's clock to the machine's. */
  readonly shiftMs: number;
  readonly upstream: Attributes;
}

/** A span, and what is in it. */
interface Within {
  readonly span: Span;
  readonly inside: Context;
}

const within = (parent: Context, span: Span): Within => ({ span, inside: trace.setSpan(parent, span) });

/** The span of a request that is sampled. */
class Served implements RequestSpan {
  readonly #begun: Begun;
  readonly #whole: Within;
  /** Each begins with the first thing in it that has a span, as of its first phase. */
  readonly #legs = new Map<string, Within>();
  #isOver = false;

  constructor(begun: Begun) {
    this.#begun = begun;
    this.#whole = within(begun.parent, begun.span);
  }

  get ids(): SpanContext {
    return this.#begun.span.spanContext();
  }

  attempt({ leg, start }: Phase, { operation: { id, method, path }, resends }: Sent): AttemptSpan {
    const { tracer, upstream } = this.#begun;
    const attributes = {
      'http.request.method': method,
      'url.template': path,
      ...upstream,
      ...(resends > 0 && { 'http.request.resend_count': resends }),
      'portico.operation': id,
    };
    const options = { kind: SpanKind.CLIENT, startTime: this.#at(start), attributes };
    const span = tracer.startSpan(`${method} ${path}`, options, this.#around(leg));
    const { traceId, spanId, traceFlags } = span.spanContext();
    return {
      traceparent: `00-${traceId}-${spanId}-${flagsOf(traceFlags)}`,
      end: (phase) => {
        span.setAttributes(outcomeOf(phase));
        if (phase.outcome === 'failed' || phase.outcome === 'refused') span.setStatus(FAILED);
        span.end(this.#at(phase.end ?? start));
      },
    };
  }

  end(status: number, endedAt: number): void {
    const { request, span } = this.#begun;
    const { phases = [], route, account, cache, code, reason } = request;
    const endOf = ({ end = endedAt }: Phase) => this.#at(Math.min(end, endedAt));
    for (const phase of phases) if (phase.phase !== 'attempt') this.#tell(phase, endOf(phase));
    for (const [name, leg] of this.#legs)
      leg.span.end(Math.max(...phases.filter((phase) => phase.leg === name).map(endOf)));
    this.#isOver = true;
    span.updateName(nameOf(request)); // a host's route is known only now
    span.setAttributes({
      ...routeFacts(route.name),
      'http.response.status_code': status,
      'error.type': status < 500 ? undefined : (reason ?? code ?? String(status)),
      'portico.account': account,
      'portico.cache': cache,
      'portico.code': code,
      'portico.reason': reason,
    });
    if (status >= 500) span.setStatus(FAILED);
    span.end(this.#at(endedAt));
  }

  /** The span of a phase that is over. */
  #tell({ phase, leg, start, joined }: Phase, endTime: number): void {
    const links = joined?.span ? [{ context: joined.span as SpanContext }] : [];
    this.#begun.tracer.startSpan(phase, { startTime: this.#at(start), links }, this.#around(leg)).end(endTime);
  }

  /** What goes on when the request is over is in no leg that has not begun before. */
  #around(name: string | undefined): Context {
    if (name === undefined || name === BACKGROUND) return this.#whole.inside;
    const begun = this.#legs.get(name);
    if (begun || this.#isOver) return (begun ?? this.#whole).inside;
    const { request, tracer } = this.#begun;
    const first = request.phases?.find(({ leg }) => leg === name);
    const startTime = this.#at(first?.start ?? request.startedAt);
    const options = { startTime, attributes: { 'portico.leg': name } };
    const leg = within(this.#whole.inside, tracer.startSpan(name, options, this.#whole.inside));
    this.#legs.set(name, leg);
    return leg.inside;
  }

  #at(ms: number): number {
    return ms + this.#begun.shiftMs;
  }
}

const FAILED = { code: SpanStatusCode.ERROR };

const outcomeOf = ({ status, outcome, reason }: Phase): Attributes => ({
  'http.response.status_code': status,
  'error.type': outcome === 'good' ? undefined : (reason ?? (outcome === 'abandoned' ? outcome : String(status))),
  'portico.outcome': outcome,
});
