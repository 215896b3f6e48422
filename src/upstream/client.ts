import type { Clock } from '../core/runtime.ts';
import { answerOf } from './answer.ts';
import type { CallUpstream, OperationInput, UpstreamCall } from './call.ts';
import type { Transport } from './transport.ts';
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
 * @throws GatewayError see `noAnswer` and `answerOf`
 */
export function upstreamClient({ transport, clock, maxBodyBytes, upstream }: ClientOptions): CallUpstream {
  return async (call) => {
    const { operation, input, controller, beforeFirstByte } = call;
    call.beforeSend?.();
    const raw = await transport({
      method: operation.method,
      path: targetOf(operation, input),
      headers: headersOf(call),
      body: input.body,
      signal: controller.signal,
      maxBodyBytes,
      beforeFirstByte,
    });
    return answerOf(call, raw, { now: clock.now(), upstream });
  };
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
