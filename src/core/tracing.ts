import type { Reason } from './errors.ts';
import type { RequestSpan, Timed } from './timeline.ts';

/** The trace that a request belongs to (W3C Trace Context). */
export interface Trace {
  readonly traceId: string;
  readonly flags: string;
  readonly tracestate: string | undefined;
  /** The client's span. Absent where the trace does not come from the client. */
  readonly parentId?: string | undefined;
}

/** What the span of a request tells: when it begins, and when it ends. */
export interface TracedRequest extends Timed {
  readonly method: string;
  readonly route: { readonly name: string; readonly operation?: string | undefined };
  /** Scheme and host that the client used. */
  readonly hostOrigin: string;
  readonly startedAt: number;
  readonly trace: Trace;
  readonly account: string | undefined;
  readonly cache: string | undefined;
  readonly code: string | undefined;
  readonly reason?: Reason | undefined;
}

/** Where spans come from: OpenTelemetry on Node. Workers have the platform's. */
export interface Tracing {
  /**
   * Asks the sampler, which is done once, when a request begins. Gives the trace that it is in from then on, and its span if
   * it is sampled; undefined where nobody wants traces.
   */
  begin(request: TracedRequest): { readonly trace: Trace; readonly span: RequestSpan | undefined } | undefined;
}
