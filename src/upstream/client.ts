import { type ErrorCode, type Fault, GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';
import { answerOf } from './answer.ts';
import type { Exchange, OperationInput, UpstreamCall } from './call.ts';
import { type RawAnswer, type Transport, TransportError, type TransportFault } from './transport.ts';
import type { Operation } from './operation.ts';

interface ClientOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly maxBodyBytes: number;
  /** The upstream's `{base_url}`. Clients never see its host. */
  readonly upstream: URL;
}

/**
 * The innermost call: one request, one answer, no policy.
 * @throws GatewayError see `answerOf`; `upstream_unreachable` without a connection
 */
export function upstreamClient({ transport, clock, maxBodyBytes, upstream }: ClientOptions): Exchange {
  return async (call, signal) => {
    const { operation, input, beforeFirstByte } = call;
    call.beforeSend?.();
    let raw: RawAnswer;
    try {
      raw = await transport({
        method: operation.method,
        path: targetOf(operation, input),
        headers: headersOf(call),
        body: input.body,
        signal,
        maxBodyBytes,
        beforeFirstByte,
      });
    } catch (error) {
      throw error instanceof TransportError ? unreached(error) : error;
    }
    return answerOf(call, raw, { now: clock.now(), upstream });
  };
}

const FAULTS = {
  refused: ['upstream_unreachable', 'refused'],
  broken: ['upstream_unreachable', 'broken'],
  malformed: ['upstream_bad_response', 'failed'],
  timeout: ['upstream_timeout', 'unconnected'],
} as const satisfies Record<TransportFault, readonly [ErrorCode, Fault]>;

function unreached(cause: TransportError): GatewayError {
  const [code, fault] = FAULTS[cause.fault];
  return GatewayError.of(code, { fault, cause });
}

/** Path and query below `{base_url}`, from the template alone, so that no raw path ever gets upstream. */
export function targetOf(operation: Operation, { id, query }: OperationInput): string {
  const path = operation.path.replace('{id}', id ?? '');
  return query === '' ? path : `${path}?${query}`;
}

/**
 * The allow-list of `contract.md` section 2, names and values in turn; nothing else that the client sent is passed on.
 */
function headersOf({ operation, input, context, validators }: UpstreamCall): string[] {
  const { trace, requestId, userAgent = 'portico', idempotencyKey } = context;
  const headers = ['accept', 'application/json', 'user-agent', userAgent, 'x-request-id', requestId];
  headers.push('traceparent', `00-${trace.traceId}-${newSpanId()}-${trace.flags}`, 'via', '1.1 portico');
  if (operation.credential !== 'none') headers.push('authorization', `Token ${context.credential}`);
  if (input.body !== undefined) headers.push('content-type', 'application/json');
  if (trace.tracestate) headers.push('tracestate', trace.tracestate);
  if (operation.method === 'POST' && idempotencyKey) headers.push('idempotency-key', idempotencyKey);
  if (validators?.etag) headers.push('if-none-match', validators.etag);
  if (validators?.lastModified) headers.push('if-modified-since', validators.lastModified);
  return headers;
}

/** Every call is a span of its own. */
function newSpanId(): string {
  const random = crypto.randomUUID();
  return random.slice(0, 8) + random.slice(24, 32);
}
