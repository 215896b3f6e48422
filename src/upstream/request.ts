import type { Operation } from './operation.ts';

/** What a client asked of an operation. */
export interface OperationInput {
  /** The `<ID>` of the path, already of the operation's form. */
  readonly id?: string | undefined;
  /** Query as the client sent it, without the question mark. */
  readonly query: string;
  /** JSON text of the body. */
  readonly body?: string | undefined;
  /** Text of one that the operation does not take: another makes it another request, but it goes nowhere. */
  readonly unsent?: string | undefined;
}

/** A GET that somebody wants. */
export interface Read {
  readonly operation: Operation;
  readonly input: OperationInput;
}

/** The JSON of a copy that is at hand, whether or not it still holds. */
export type Held = (read: Read) => string | undefined;

/** The trace that a request belongs to (W3C Trace Context). */
export interface Trace {
  readonly traceId: string;
  readonly flags: string;
  readonly tracestate: string | undefined;
}

/** What the upstream learns of the request behind a call, besides the operation. */
export interface Provenance {
  readonly requestId: string;
  readonly credential?: string | undefined;
  readonly userAgent?: string | undefined;
  readonly trace: Trace;
  readonly idempotencyKey?: string | undefined;
}

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

/** The allow-list of `contract.md` section 2; nothing else that the client sent gets upstream. */
export function headersOf(
  operation: Operation,
  { from, hasBody, validators }: { from: Provenance; hasBody: boolean; validators?: Validators | undefined },
): Record<string, string> {
  const headers: Record<string, string> = {
    accept: 'application/json',
    'user-agent': from.userAgent ?? 'portico',
    'x-request-id': from.requestId,
    traceparent: `00-${from.trace.traceId}-${newSpanId()}-${from.trace.flags}`,
    via: '1.1 portico',
  };
  if (operation.credential !== 'none' && from.credential) headers['authorization'] = `Token ${from.credential}`;
  if (hasBody) headers['content-type'] = 'application/json';
  if (from.trace.tracestate) headers['tracestate'] = from.trace.tracestate;
  if (operation.method === 'POST' && from.idempotencyKey) headers['idempotency-key'] = from.idempotencyKey;
  if (validators?.etag) headers['if-none-match'] = validators.etag;
  if (validators?.lastModified) headers['if-modified-since'] = validators.lastModified;
  return headers;
}

/** Every call is a span of its own. */
const newSpanId = () => crypto.randomUUID().replaceAll('-', '').slice(0, 16);
