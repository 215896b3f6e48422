import {
  type Attributes,
  type Context,
  context,
  createTraceState,
  isSpanContextValid,
  type Span,
  type SpanContext,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import { KNOWN_METHODS } from '../../../app.ts';
import { type AttemptSpan, BACKGROUND, type Phase, type RequestSpan, type Sent } from '../../../core/timeline.ts';
import type { ClientRequest } from '../../../core/request.ts';
import type { Tracing } from '../../../core/request.ts';

/**
 * Spans of requests, by OpenTelemetry's conventions for HTTP. They have no raw path, query, header, body or address of a client;
 * an account is its keyed hash.
 */
export class Spans implements Tracing {
  /** Absent where nobody wants spans. */
  tracer: Tracer | undefined;
  readonly #upstream: Attributes;

  constructor({ protocol, hostname, port }: URL) {
    this.#upstream = { 'server.address': hostname, 'server.port': Number(port) || (protocol === 'https:' ? 443 : 80) };
  }

  begin(request: ClientRequest): ReturnType<Tracing['begin']> {
    if (!this.tracer) return undefined;
    const served = new Served(request, this.tracer, this.#upstream);
    if (!isSpanContextValid(served.ids)) return undefined; // a host has turned traces off for what is served here
    const { traceId, traceFlags, traceState } = served.ids;
    const told = { traceId, flags: flagsOf(traceFlags), tracestate: traceState?.serialize() || undefined };
    return { trace: told, span: served.span.isRecording() ? served : undefined };
  }
}

/** The span of a request, and those in it. */
class Served implements RequestSpan {
  readonly #request: ClientRequest;
  readonly #tracer: Tracer;
  readonly #upstream: Attributes;
  readonly span: Span;
  readonly ids: SpanContext;
  /** From the process's clock to the machine's: the first does not follow where that is set, and spans of others do. */
  readonly #shiftMs: number;
  readonly #inside: Context;
  /** What is inside each leg's span. That begins with the first thing in it that has a span, as of its first phase. */
  readonly #legs = new Map<string, Context>();
  #isOver = false;

  constructor(request: ClientRequest, tracer: Tracer, upstream: Attributes) {
    this.#request = request;
    this.#tracer = tracer;
    this.#upstream = upstream;
    this.#shiftMs = Math.trunc(Date.now() - request.startedAt);
    const { method, route, hostOrigin, requestId, startedAt } = request;
    // The sampler is asked with these.
    const attributes = {
      'http.request.method': KNOWN_METHODS.has(method) ? method : '_OTHER',
      'url.scheme': hostOrigin.slice(0, hostOrigin.indexOf(':')),
      ...routeFacts(route.name),
      'portico.request_id': requestId,
      ...(route.operation !== undefined && { 'portico.operation': route.operation }),
    };
    const parent = parentOf(request);
    this.span = this.#start(nameOf(request), startedAt, parent, { kind: SpanKind.SERVER, attributes });
    this.ids = this.span.spanContext();
    this.#inside = trace.setSpan(parent, this.span);
  }

  get traceparent(): string {
    return traceparentOf(this.ids);
  }

  attempt({ leg, start }: Phase, { operation: { id, method, path }, resends }: Sent): AttemptSpan {
    const attributes = {
      'http.request.method': method,
      'url.template': path,
      ...this.#upstream,
      ...(resends > 0 && { 'http.request.resend_count': resends }),
      'portico.operation': id,
    };
    const span = this.#start(`${method} ${path}`, start, this.#around(leg), { kind: SpanKind.CLIENT, attributes });
    return {
      traceparent: traceparentOf(span.spanContext()),
      end: ({ status, outcome, reason, end = start }) => {
        const failure = reason ?? (outcome === 'abandoned' ? outcome : String(status));
        span.setAttributes({
          'http.response.status_code': status,
          'error.type': outcome === 'good' ? undefined : failure,
          'portico.outcome': outcome,
        });
        if (outcome === 'failed' || outcome === 'refused') span.setStatus(FAILED);
        span.end(this.#at(end));
      },
    };
  }

  end(status: number, endedAt: number): void {
    const { phases = [], route, account, cache, code, reason } = this.#request;
    const endOf = ({ end = endedAt }: Phase) => this.#at(Math.min(end, endedAt));
    for (const phase of phases) {
      const { phase: name, start, leg, joined } = phase;
      const links = joined?.span ? [{ context: joined.span as SpanContext }] : [];
      if (name !== 'attempt') this.#start(name, start, this.#around(leg), { links }).end(endOf(phase));
    }
    for (const [name, inside] of this.#legs)
      trace.getSpan(inside)?.end(Math.max(...phases.filter(({ leg }) => leg === name).map(endOf)));
    this.#isOver = true;
    this.span.updateName(nameOf(this.#request)); // a host's route is known only now
    this.span.setAttributes({
      ...routeFacts(route.name),
      'http.response.status_code': status,
      'error.type': status < 500 ? undefined : (reason ?? code ?? String(status)),
      'portico.account': account,
      'portico.cache': cache,
      'portico.code': code,
      'portico.reason': reason,
    });
    if (status >= 500) this.span.setStatus(FAILED);
    this.span.end(this.#at(endedAt));
  }

  /** What a span of that leg is in. What goes on when the request is over begins no leg. */
  #around(name: string | undefined): Context {
    if (name === undefined || name === BACKGROUND) return this.#inside;
    const begun = this.#legs.get(name);
    if (begun || this.#isOver) return begun ?? this.#inside;
    const { phases, startedAt } = this.#request;
    const { start = startedAt } = phases?.find(({ leg }) => leg === name) ?? {};
    const span = this.#start(name, start, this.#inside, { attributes: { 'portico.leg': name } });
    const inside = trace.setSpan(this.#inside, span);
    this.#legs.set(name, inside);
    return inside;
  }

  #start(name: string, start: number, around: Context, options: SpanOptions): Span {
    return this.#tracer.startSpan(name, { startTime: this.#at(start), ...options }, around);
  }

  #at(ms: number): number {
    return ms + this.#shiftMs;
  }
}

const FAILED = { code: SpanStatusCode.ERROR };

/** The span that the host is in; else the client's. */
function parentOf(request: ClientRequest): Context {
  const around = context.active();
  const ids = trace.getSpanContext(around);
  const { traceId, parentId, flags, tracestate } = request.trace;
  if (parentId === undefined || (ids && isSpanContextValid(ids))) return around;
  const client = { traceId, spanId: parentId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  const state = tracestate === undefined ? {} : { traceState: createTraceState(tracestate) };
  return trace.setSpanContext(around, { ...client, ...state });
}

const traceparentOf = ({ traceId, spanId, traceFlags }: SpanContext) =>
  `00-${traceId}-${spanId}-${flagsOf(traceFlags)}`;

const flagsOf = (flags: number) => flags.toString(16).padStart(2, '0');

/** A method or a path that is none of ours may be any text, and is not told. */
function nameOf({ method, route: { name } }: ClientRequest): string {
  const known = KNOWN_METHODS.has(method) ? method : 'HTTP';
  return name.startsWith('/') ? `${known} ${name}` : known;
}

/** The path is the route's: a raw one may have ids of an account in it. */
const routeFacts = (name: string): Attributes => (name.startsWith('/') ? { 'http.route': name, 'url.path': name } : {});
