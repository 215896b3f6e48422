import type { Entry } from '../store/store.ts';
import type { UpstreamCall } from './client.ts';
import type { Operation } from './operation.ts';

/** What a client asked of an operation. */
export interface OperationInput {
  /** The `<ID>` of the path, already of the operation's form. */
  readonly id?: string | undefined;
  /** Query as the client sent it, without the question mark. */
  readonly query: string;
  /** JSON text of the body. */
  readonly body?: string | undefined;
  /** Text of a body that the operation does not take. Requests are compared by it, but it is not sent. */
  readonly unsent?: string | undefined;
}

/** A GET, with what the client asked of it. */
export interface Read {
  readonly operation: Operation;
  readonly input: OperationInput;
}

/** The copy that this instance has of a read, valid or not. */
export type CopyOf = (read: Read) => Entry | undefined;

/** What an earlier answer said it can be revalidated with (RFC 9110, section 13.1). */
export interface Validators {
  readonly etag?: string;
  readonly lastModified?: string;
}

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
