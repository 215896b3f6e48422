/** Trace context as it goes upstream (W3C Trace Context). */
export interface Trace {
  readonly traceId: string;
  readonly traceparent: string;
  readonly tracestate: string | undefined;
}

const TRACEPARENT = /^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(?:-|$)/;
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The client's request id where it is usable, else a new one. */
export function requestIdOf(header: string | undefined): string {
  return header !== undefined && REQUEST_ID.test(header) ? header : crypto.randomUUID();
}

/** Continues the client's trace with a span of ours, or begins one. */
export function traceOf(traceparent: string | undefined, tracestate: string | undefined): Trace {
  const spanId = hexId().slice(0, 16);
  const known = traceparent === undefined ? null : TRACEPARENT.exec(traceparent);
  if (!known) {
    const traceId = hexId();
    return { traceId, traceparent: `00-${traceId}-${spanId}-00`, tracestate: undefined };
  }
  const [, traceId = '', flags = '00'] = known;
  const state = tracestate !== undefined && TRACESTATE.test(tracestate) ? tracestate : undefined;
  return { traceId, traceparent: `00-${traceId}-${spanId}-${flags}`, tracestate: state };
}

const hexId = () => crypto.randomUUID().replaceAll('-', '');
