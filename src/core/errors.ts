export interface ErrorKind {
  readonly status: number;
  readonly description: string;
  readonly title?: string | undefined;
}

/** One kind of error. By default its title is its code in words. */
const kind = (status: number, description: string, title?: string): ErrorKind => ({ status, description, title });

/** Every code of ours (`contract.md` section 4). The first code of a status names the upstream's refusals without a code. */
export const ERRORS = {
  bad_request: kind(400, 'The request cannot be understood.'),
  malformed_json: kind(400, 'The request body is not valid JSON.', 'Malformed JSON'),
  validation_failed: kind(400, 'Parts of the request are not as documented. `errors` names each.'),
  unauthenticated: kind(401, 'The request has no usable key, or the upstream does not accept it.'),
  payment_required: kind(402, 'The upstream asks for a payment.'),
  forbidden: kind(403, 'The upstream does not allow this for the account.'),
  origin_rejected: kind(
    403,
    'The origin of a request by cookie, or of a session call, is not allowed, or is missing: `Origin` or `Sec-Fetch-Site` says it.',
  ),
  not_found: kind(404, 'The upstream does not have it.'),
  unknown_endpoint: kind(404, 'There is nothing at this path.'),
  outcome_not_found: kind(
    404,
    'No write with this idempotency key is known: none came, it was refused or not sent, or it is forgotten.',
  ),
  method_not_allowed: kind(405, 'The path does not take this method. `Allow` names those that it takes.'),
  not_acceptable: kind(406, 'The upstream cannot answer in the form asked for.'),
  request_timeout: kind(408, 'The request did not arrive in time.'),
  conflict: kind(409, 'The upstream says that this does not fit the state of the account.'),
  idempotency_in_progress: kind(409, 'The first request with this key, or an equal purchase, is still under way.'),
  outcome_unknown: kind(
    409,
    'Nobody knows how it ended the first time. The write may have happened, so it is not sent again.',
  ),
  gone: kind(410, 'The upstream no longer has it.'),
  precondition_failed: kind(412, 'The upstream says that a condition of the request does not hold.'),
  payload_too_large: kind(413, 'The request body is too large, or what an item of a batch would add to the answer.'),
  unsupported_media_type: kind(415, 'Send the body as `application/json`.'),
  im_a_teapot: kind(418, 'The upstream refuses to brew coffee.', 'I’m a teapot'),
  unprocessable_content: kind(422, 'The upstream understood the request and refused it.'),
  idempotency_key_reused: kind(422, 'This idempotency key was used before, with another body or at another endpoint.'),
  locked: kind(423, 'The upstream says that it is locked.'),
  failed_dependency: kind(424, 'The upstream says that something this depends on has failed.'),
  too_early: kind(425, 'The upstream does not want to act on this yet.'),
  upgrade_required: kind(426, 'The upstream wants another protocol.'),
  precondition_required: kind(428, 'The upstream wants a conditional request.'),
  rate_limited: kind(429, 'Too many requests. Wait as long as `Retry-After` says.'),
  request_header_fields_too_large: kind(431, 'The head of the request is too large.'),
  unavailable_for_legal_reasons: kind(451, 'The upstream may not show this.'),
  internal_error: kind(500, 'The gateway has failed. Its log says why.'),
  method_not_implemented: kind(501, 'No path takes this method.'),
  upstream_bad_response: kind(502, 'The upstream’s answer cannot be used.', 'Bad response from upstream'),
  upstream_unreachable: kind(502, 'The upstream could not be reached, or the connection was lost.'),
  upstream_unavailable: kind(503, 'The upstream is not available right now.'),
  overloaded: kind(503, 'There are more requests than can be served. Wait as long as `Retry-After` says.'),
  store_unavailable: kind(503, 'This needs the shared store, which does not answer.'),
  not_ready: kind(503, 'This instance takes no requests at the moment.'),
  upstream_timeout: kind(504, 'The upstream did not answer in time.'),
  loop_detected: kind(508, 'The request has been through this gateway before, since its upstream leads back to it.'),
};

export type ErrorCode = keyof typeof ERRORS;

export const ERROR_CODES = Object.keys(ERRORS).filter(isErrorCode);

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}

/** `out_of_stock` becomes `Out of stock`. */
export function titleOf(code: string): string {
  const words = code.replaceAll(/[_-]/g, ' ');
  return (isErrorCode(code) && ERRORS[code].title) || words.charAt(0).toUpperCase() + words.slice(1);
}

const TRANSIENT = new Set([408, 425, 429, 502, 503, 504]);

/** Whether the same request may succeed later without any change. */
export const isTransient = (code: string, status: number) =>
  TRANSIENT.has(status) || (status === 409 && code === 'idempotency_in_progress');

/** One entry of `errors`: `field` is a dotted path, or null when it is about the whole. */
export interface ErrorItem {
  readonly code: string;
  readonly message: string;
  readonly field: string | null;
}

/** How an upstream call failed, for retries, circuit and idempotency; clients never see it. */
export type Fault =
  /** The gateway did not send it: a check, a limit or the store refused it, or its time was up. */
  | 'not_sent'
  /** There was no connection, or none in time. */
  | 'no_connection'
  | 'connect_timeout'
  /** The connection went away before an answer. */
  | 'broken'
  /** What came is not HTTP. */
  | 'malformed'
  | 'timeout'
  /** The upstream answered with 502, 504, or 503 without `Retry-After`: the same call may succeed at once. */
  | 'unavailable'
  /** The upstream answered with another 5xx, or broke off in the middle of its answer. */
  | 'failed'
  /** The upstream answered with something unusable. */
  | 'unusable';

/** Why the upstream gave no good answer, for the log, metrics and traces (`contract.md` section 9). */
export const REASONS = [
  /** The upstream's name has no address. */
  'dns',
  /** Nobody listens there, there is no route to it, or a proxy does not let the call through. */
  'refused',
  /** The upstream's certificate is not trusted, or the upstream does not speak TLS. */
  'tls',
  'reset',
  /** On Workers only: any failure to connect. */
  'unreachable',
  'timeout',
  /** The upstream answered with 5xx, or with a status that is no answer to a call. */
  'status',
  'bad_body',
  'too_large',
] as const;
export type Reason = (typeof REASONS)[number];

/** Faults which prove that the upstream never saw the call. */
const UNSENT: ReadonlySet<Fault> = new Set(['not_sent', 'no_connection', 'connect_timeout']);

interface Particulars {
  readonly detail?: string | undefined;
  /** By default the title of the code. */
  readonly title?: string | undefined;
  readonly errors?: readonly ErrorItem[];
  /** Seconds. */
  readonly retryAfter?: number | undefined;
  /** Set for a write that was sent and got no readable answer. */
  readonly outcome?: 'unknown' | undefined;
  /** The section of an overview that failed, and with it the whole. */
  readonly section?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly fault?: Fault;
  readonly reason?: Reason;
  readonly cause?: unknown;
}

/** Ends a request without the upstream's answer. `http/reply.ts` makes a problem of it. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly code: string;
  readonly status: number;
  readonly particulars: Particulars;
  /** Whether Hono's default `onError` has made an answer of this by `getResponse`. */
  isAnswered = false;

  private constructor(code: string, status: number, particulars: Particulars) {
    super(code, particulars.cause === undefined ? undefined : { cause: particulars.cause });
    this.code = code;
    this.status = status;
    this.particulars = particulars;
  }

  static of(code: ErrorCode, particulars: Particulars = {}): GatewayError {
    return new GatewayError(code, ERRORS[code].status, particulars);
  }

  /** An upstream 4xx, with the upstream's status and, if there is one, the upstream's own code. */
  static refusal(own: string | undefined, status: number, particulars: Particulars): GatewayError {
    const named = ERROR_CODES.find((one) => ERRORS[one].status === status);
    return new GatewayError(own ?? named ?? `status_${status}`, status, particulars);
  }

  /** Whether nothing was sent to the upstream. */
  get isUnsent(): boolean {
    const { fault } = this.particulars;
    return fault !== undefined && UNSENT.has(fault);
  }

  /** What happened, in a sentence for people. */
  get detail(): string {
    return this.particulars.detail ?? (isOwn(this) ? ERRORS[this.code].description : titleOf(this.code));
  }

  get title(): string {
    return this.particulars.title ?? titleOf(this.code);
  }

  /** Seconds; undefined if a write may have happened, since that must not be repeated. */
  get retryAfter(): number | undefined {
    return this.particulars.outcome === undefined ? this.particulars.retryAfter : undefined;
  }

  get isRetryable(): boolean {
    return this.particulars.outcome === undefined && isTransient(this.code, this.status);
  }

  /** Called by Hono's default `onError` if a host's handler throws this. Behind `gateway.request` the whole problem replaces it. */
  getResponse(): Response {
    this.isAnswered = true;
    const { type, title, status, code, detail } = problemOf(this, { instance: '', mount: '', requestId: '' });
    const headers = { 'Content-Type': PROBLEM_TYPE, 'Cache-Control': 'no-store' };
    return new Response(JSON.stringify({ type, title, status, code, detail }), { status, headers });
  }

  /** A copy with these particulars. */
  with(particulars: Particulars): GatewayError {
    return new GatewayError(this.code, this.status, { ...this.particulars, ...particulars });
  }
}

/** Whether the code is ours. One of our codes with another status is the upstream's, with another meaning. */
export const isOwn = (error: GatewayError): error is GatewayError & { readonly code: ErrorCode } =>
  isErrorCode(error.code) && ERRORS[error.code].status === error.status;

/** The client went away before its answer. */
export class ClientLeft extends Error {
  override readonly name = 'ClientLeft';
}

/** The form of a code of the upstream's own. */
export const CODE = /^(\d{1,2})?[a-z]{1,20}([_-][a-z]{1,20})*$/;

/**
 * Whether a text of the upstream's looks like a code: words of lower-case letters, the first may begin with one or two
 * digits (`3ds_failed`). Any other may be a token, a card or an address, and is neither passed on nor logged.
 */
export const isCode = (text: string) => text.length <= 64 && CODE.test(text);

export const PROBLEM_TYPE = 'application/problem+json';

interface ProblemContext {
  /** The path of the request. */
  readonly instance: string;
  /** The path that the app is mounted under. */
  readonly mount: string;
  readonly requestId: string;
}

/** The body, as JSON has it, of every answer that is neither 2xx nor 304 (RFC 9457, `contract.md` section 4). */
export function problemOf(error: GatewayError, { instance, mount, requestId }: ProblemContext) {
  const { code, title, status, detail, retryAfter, isRetryable } = error;
  const { errors = [], outcome, section } = error.particulars;
  return {
    type: `${mount}/problems/${code}`,
    title,
    status,
    code,
    detail,
    instance,
    request_id: requestId,
    retryable: isRetryable,
    retry_after: retryAfter,
    outcome,
    section,
    errors,
  };
}

export type Problem = ReturnType<typeof problemOf>;
