interface ErrorKind {
  readonly status: number;
  readonly title: string;
  /** Whether the same request may succeed later without any change. */
  readonly retryable: boolean;
  readonly description: string;
}

const kind = (status: number, title: string, description: string, retryable = false): ErrorKind => ({
  status,
  title,
  retryable,
  description,
});

/** Every code of ours, once: status, title, retryable (`contract.md` section 4). */
export const ERRORS = {
  bad_request: kind(400, 'Bad request', 'The request is not one that this server understands.'),
  malformed_json: kind(400, 'Malformed JSON', 'The request body is not valid JSON.'),
  validation_failed: kind(400, 'Validation failed', 'Parts of the request are not as documented; `errors` names each.'),
  unauthenticated: kind(
    401,
    'Unauthenticated',
    'No usable credential came with the request, or the upstream refused it.',
  ),
  payment_required: kind(402, 'Payment required', 'The upstream asks for a payment.'),
  forbidden: kind(403, 'Forbidden', 'The upstream refuses this to the account.'),
  origin_rejected: kind(
    403,
    'Origin rejected',
    'A request by cookie, or a session call, came from an origin that is not allowed.',
  ),
  not_found: kind(404, 'Not found', 'The upstream has no such thing.'),
  unknown_endpoint: kind(404, 'Unknown endpoint', 'There is nothing at this path.'),
  method_not_allowed: kind(405, 'Method not allowed', 'The path exists, but not with this method; see `Allow`.'),
  not_acceptable: kind(406, 'Not acceptable', 'The upstream cannot answer in the form asked for.'),
  request_timeout: kind(408, 'Request timeout', 'The request did not arrive in time.', true),
  conflict: kind(409, 'Conflict', 'The upstream says that this clashes with the state of the account.'),
  idempotency_in_progress: kind(
    409,
    'Still in progress',
    'The first request with this key, or an equal purchase, is under way.',
    true,
  ),
  outcome_unknown: kind(
    409,
    'Outcome unknown',
    'The first request with this key, or an equal purchase, was sent, and its outcome is not known: the write may have happened.',
  ),
  gone: kind(410, 'Gone', 'The upstream no longer has it.'),
  precondition_failed: kind(
    412,
    'Precondition failed',
    'The upstream says that a condition of the request does not hold.',
  ),
  payload_too_large: kind(413, 'Payload too large', 'The request body is larger than this server takes.'),
  unsupported_media_type: kind(415, 'Unsupported media type', 'A body has to be sent as `application/json`.'),
  im_a_teapot: kind(418, 'I’m a teapot', 'The upstream refuses to brew coffee.'),
  unprocessable_content: kind(422, 'Unprocessable content', 'The upstream understood the request and refused it.'),
  idempotency_key_reused: kind(
    422,
    'Idempotency key reused',
    'The key was used before, with another body or at another endpoint.',
  ),
  locked: kind(423, 'Locked', 'The upstream says that it is locked.'),
  failed_dependency: kind(424, 'Failed dependency', 'The upstream says that what it depends on failed.'),
  too_early: kind(425, 'Too early', 'The upstream does not want to act on this yet.', true),
  upgrade_required: kind(426, 'Upgrade required', 'The upstream wants another protocol.'),
  precondition_required: kind(428, 'Precondition required', 'The upstream wants a conditional request.'),
  rate_limited: kind(429, 'Rate limited', 'Too many requests; wait as long as `Retry-After` says.', true),
  request_header_fields_too_large: kind(
    431,
    'Request header fields too large',
    'The head of the request is too large.',
  ),
  unavailable_for_legal_reasons: kind(451, 'Unavailable for legal reasons', 'The upstream may not show this.'),
  internal_error: kind(500, 'Internal error', 'A fault in the gateway.'),
  method_not_implemented: kind(501, 'Method not implemented', 'No path here knows this method.'),
  upstream_bad_response: kind(
    502,
    'Bad response from upstream',
    'The upstream answered with something unusable.',
    true,
  ),
  upstream_unreachable: kind(502, 'Upstream unreachable', 'No connection to the upstream, or it broke.', true),
  upstream_unavailable: kind(503, 'Upstream unavailable', 'The upstream is out of service for now.', true),
  overloaded: kind(
    503,
    'Overloaded',
    'More requests than this instance can serve; wait as long as `Retry-After` says.',
    true,
  ),
  store_unavailable: kind(503, 'Store unavailable', 'The shared store is needed for this and does not answer.', true),
  not_ready: kind(503, 'Not ready', 'This instance is shutting down.', true),
  upstream_timeout: kind(504, 'Upstream timeout', 'The upstream gave no full answer in time.', true),
  paid_plan_active: kind(
    400,
    'A paid plan is active',
    'The card cannot be removed while a paid plan is active. Cancel auto-renewal instead, which removes the card.',
  ),
  '2fa_needed': kind(
    403,
    'Two-factor authentication needed',
    'The upstream wants a second factor from the account holder.',
  ),
  account_suspended: kind(403, 'Account suspended', 'The upstream has suspended the account.'),
  api_key_not_allowed: kind(403, 'API key not allowed', 'The upstream does not allow this with an API key.'),
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERRORS;

/** One entry of `errors`: `field` is a dotted path, or null when it is about the whole. */
export interface ErrorItem {
  readonly code: string;
  readonly message: string;
  readonly field: string | null;
}

/** How an upstream call failed, for retries, circuit and idempotency; clients never see it. */
export type Fault =
  /** A gate of ours did not let it through. */
  | 'not_sent'
  /** No connection: refused, or none in time. */
  | 'refused'
  | 'unconnected'
  /** The connection went away before an answer. */
  | 'broken'
  | 'timeout'
  /** The upstream said 502, 503 or 504. */
  | 'unavailable'
  /** It said another 5xx, broke off in the middle of its answer, or what came is not HTTP. */
  | 'failed'
  /** It answered with something unusable. */
  | 'unusable';

/** Faults which prove that the upstream never saw the call. */
const UNSENT: ReadonlySet<Fault> = new Set(['not_sent', 'refused', 'unconnected']);

interface Particulars {
  readonly detail?: string;
  readonly errors?: readonly ErrorItem[];
  /** Seconds. */
  readonly retryAfter?: number;
  /** A write that went out and got no readable answer. */
  readonly outcome?: 'unknown';
  readonly headers?: Readonly<Record<string, string>>;
  readonly fault?: Fault;
  readonly cause?: unknown;
}

const RETRYABLE_REFUSALS = new Set([408, 425, 429]);

/** Anything that ends a request without an answer. Turned into a problem by `problem.ts`, and nowhere else. */
export class GatewayError extends Error {
  readonly code: string;
  readonly status: number;
  readonly title: string;
  readonly retryable: boolean;
  readonly particulars: Particulars;

  private constructor(code: string, of: Omit<ErrorKind, 'description'>, particulars: Particulars) {
    super(code, particulars.cause === undefined ? undefined : { cause: particulars.cause });
    this.name = 'GatewayError';
    this.code = code;
    this.status = of.status;
    this.title = of.title;
    this.retryable = of.retryable;
    this.particulars = particulars;
  }

  static of(code: ErrorCode, particulars: Particulars = {}): GatewayError {
    return new GatewayError(code, ERRORS[code], particulars);
  }

  /** An upstream 4xx, under the upstream's own code and status. */
  static refusal(code: string, status: number, particulars: Particulars): GatewayError {
    // A code of ours with another status is the upstream's own code, with its own meaning.
    const known = isErrorCode(code) && ERRORS[code].status === status ? ERRORS[code] : undefined;
    const retryable = RETRYABLE_REFUSALS.has(status);
    return new GatewayError(code, { status, title: known?.title ?? titleOf(code), retryable }, particulars);
  }

  /** Whether nothing was sent to the upstream. */
  get isUnsent(): boolean {
    const { fault } = this.particulars;
    return fault !== undefined && UNSENT.has(fault);
  }

  /** Seconds; undefined if a write may have happened, since that must not be repeated. */
  get retryAfter(): number | undefined {
    return this.particulars.outcome === undefined ? this.particulars.retryAfter : undefined;
  }

  with(particulars: Particulars): GatewayError {
    return new GatewayError(this.code, this, { ...this.particulars, ...particulars });
  }
}

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}

const CODE = /^(\d{1,2})?[a-z]{1,20}([_-][a-z]{1,20})*$/;

/**
 * Whether a text of the upstream's looks like a code: words of lower-case letters, the first may begin with one or two
 * digits (`2fa_needed`). Any other may be a token, a card or an address, and is neither passed on nor logged.
 */
export const isCode = (text: string) => text.length <= 64 && CODE.test(text);

/** `card_declined` becomes `Card declined`. */
export function titleOf(code: string): string {
  const words = code.replaceAll(/[_-]/g, ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
