import type { OperationInput, UpstreamCall } from './call.ts';
import type { Operation } from './operation.ts';

/** Path and query below `{base_url}`, from the template alone, so that no raw path ever gets upstream. */
export function targetOf(operation: Operation, { id, query }: OperationInput): string {
  const path = operation.path.replace('{id}', id ?? '');
  return query === '' ? path : `${path}?${query}`;
}

/**
 * The allow-list of `contract.md` section 2, names and values in turn; nothing else that the client sent is passed on.
 */
export function headersOf({ operation, input, context, validators }: UpstreamCall): string[] {
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
