import type { Problem } from './openapi.ts';
import type { CallOptions, Code } from './types.ts';

export type FieldError = Readonly<Record<'code' | 'message', string>>;

/** Everything that goes wrong with a call, but an abort: that rejects with the reason of its signal. */
export class PorticoProblem extends Error {
  override readonly name = 'PorticoProblem';
  /** As the gateway has sent it (RFC 9457), or made here where no problem came. */
  declare readonly problem: Readonly<Problem>;
  declare readonly code: Code;
  declare readonly status: number; // 0 without an answer
  declare readonly title: string;
  declare readonly detail: string;
  /** Whether the same call may succeed later, and in how many seconds. */
  declare readonly retryable: boolean;
  declare readonly retryAfter: number | undefined;
  /** `unknown`: this write, or an equal one before it, was sent, and nobody knows whether it happened. */
  declare readonly outcome: 'unknown' | undefined;
  /** Of the write, if it had one: `outcomeOf` asks the gateway for it. */
  declare readonly idempotencyKey: string | undefined;
  declare readonly section: string | undefined; // of an overview
  declare readonly requestId: string; // empty without an answer
  /** Errors by field, a dotted path; those of the whole are under the empty name. */
  declare readonly errors: Readonly<Record<string, readonly FieldError[]>>;

  constructor(problem: Problem, cause?: unknown) {
    super(problem.detail, { cause });
    const errors = Object.create(null) as Record<string, FieldError[]>; // any name may be a field's
    for (const { field, ...error } of problem.errors) (errors[field ?? ''] ??= []).push(error);
    const outcome = problem.code === 'outcome_unknown' ? 'unknown' : problem.outcome;
    const { retry_after: seconds = -1, request_id: requestId } = problem;
    const read = { outcome, retryAfter: seconds >= 0 ? seconds : undefined, requestId, errors };
    Object.assign(this, problem, { problem, ...read });
  }
}

const TITLES = {
  connection_failed: 'No answer from the gateway',
  unexpected_answer: 'Not an answer from the gateway',
  account_changed: 'The account has changed',
};

/** For a call without an answer of the gateway's that can be read. A write may have happened, whatever else has answered. */
export function problemWithout(code: keyof typeof TITLES, wire: Wire, cause?: unknown, response?: Response) {
  const { isRead, path } = wire;
  const { status = 0, headers } = response ?? {};
  const seconds = Number(headers?.get('Retry-After') ?? NaN);
  const problem: Problem = {
    type: 'about:blank',
    title: TITLES[code],
    status,
    code,
    detail: `${TITLES[code]}.`,
    instance: path,
    request_id: '',
    retryable: isRead && (status < 400 || status === 429 || status >= 500),
    ...(seconds >= 0 && { retry_after: seconds }),
    ...(!isRead && code !== 'account_changed' && { outcome: 'unknown' }), // nothing was sent then
    errors: [],
  };
  return new PorticoProblem(problem, cause);
}

/** What an answer says that is not good. Only the gateway's own problems count: a proxy in between knows nothing of the call. */
export async function problemIn(response: Response, wire: Wire): Promise<PorticoProblem> {
  const text = await response.text();
  try {
    const problem = JSON.parse(text) as Problem;
    const isProblem = /^application\/problem\+json *(;|$)/i.test(response.headers.get('Content-Type') ?? '');
    const isOurs = problem.type.endsWith(`/problems/${problem.code}`) && typeof problem.retryable === 'boolean';
    if (isProblem && isOurs) return new PorticoProblem(problem);
  } catch {
    // no JSON, or not the problem's members
  }
  return problemWithout('unexpected_answer', wire, text, response);
}

/** What goes over the wire, but for the credential. */
export interface Wire {
  readonly method: string;
  readonly path: string; // with the query
  readonly body: string | undefined;
  readonly headers: Readonly<Record<string, string>>; // names in lower case
  /** Whether it changes nothing, so that it may be sent again. */
  readonly isRead: boolean;
}

/**
 * `route` is a method and a path. Input that is not in the path is the query of a GET or DELETE, and the body of a POST or
 * PATCH, unless a `?` at the end says that it takes no body.
 */
export function wireOf(route: string, input?: object, options: CallOptions = {}): Wire {
  const [method = '', template = '', mark] = route.split(/[ ?]/);
  const rest: Record<string, unknown> = { ...input };
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = encodeURIComponent(String(rest[name]));
    delete rest[name];
    return value;
  });
  const takesBody = method.startsWith('P') && mark === undefined;
  const body = takesBody && input ? JSON.stringify(rest) : undefined;
  const { query = {} } = options;
  const pairs = pairsOf(takesBody ? {} : rest).concat(typeof query === 'string' ? query : pairsOf(query));
  const search = pairs.filter(Boolean).join('&');
  const isRead = method === 'GET' || template === '/bff/v1/batch';
  return { method, path: search ? `${path}?${search}` : path, body, headers: headersOf(options, body), isRead };
}

/** A name that stands there in two ways would be two headers, which are sent joined. */
export function headersOf({ fresh, strict, idempotencyKey, headers }: CallOptions, body?: string): Wire['headers'] {
  const all = {
    ...(body && { 'content-type': 'application/json' }),
    ...(fresh && { 'cache-control': 'no-cache' }),
    ...(strict && { prefer: 'handling=strict' }),
    ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
    ...headers,
  };
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [name.toLowerCase(), value]));
}

/** `{ a: [1, 2], b: { c: 3 } }` is `a=1,2` and `b[c]=3`. What is undefined is left out. */
const pairsOf = (values: object, before = '', after = ''): string[] =>
  Object.entries(values).flatMap(([key, value]) => {
    const name = before + key + after;
    if (value && typeof value === 'object' && !Array.isArray(value)) return pairsOf(value as object, `${name}[`, ']');
    return value === undefined ? [] : [name, String(value)].map(encodeURIComponent).join('=');
  });
