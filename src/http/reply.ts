import type { Context, ErrorHandler } from 'hono';
import type { StatusCode } from 'hono/utils/http-status';
import { ClientLeft, GatewayError, PROBLEM_TYPE } from '../core/errors.ts';
import { secondsLeft } from '../store/port.ts';
import { CLIENT_LEFT, endRequest, leftCode } from './access-log.ts';
import { logIfFault, problemFor } from './problem.ts';
import type { Head } from '../core/request.ts';
import { type Env, HonoRequest, type HttpDeps, type Payload } from './request.ts';

type Headers = Readonly<Record<string, string>>;

/** What a handler makes of a request; `reply` adds the headers that every answer has. */
export interface Answer extends Payload {
  readonly headers: Headers;
  /** `Server-Timing` entries besides the total. */
  readonly timing?: string;
}

export const NO_STORE = { 'Cache-Control': 'no-store' } as const;

/** A client's own cache may keep the answer, but has to revalidate it before each use. */
export const REVALIDATE = 'private, no-cache';

export function jsonAnswer(body: unknown, headers: Headers = NO_STORE): Answer {
  return { status: 200, headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) };
}

const ON_ALL = { 'X-Content-Type-Options': 'nosniff' } as const;

/** Not on a 304: the client keeps the headers of its copy. */
const ON_WHOLE = { ...ON_ALL, 'Cross-Origin-Resource-Policy': 'same-origin' } as const;

/** Each page has a `Content-Security-Policy` of its own. */
const ON_PAGES = { ...ON_WHOLE, 'X-Frame-Options': 'DENY', 'Referrer-Policy': 'no-referrer' } as const;

/**
 * Makes the one `Response` of a request. Hono's `newResponse` adds the headers that a host's middleware may have set before.
 * Hono answers HEAD without the body, so the length is set here.
 */
export function reply(c: Context<Env>, request: HonoRequest, answer: Answer): Response {
  const { status } = answer;
  const headers = headersOf(request, answer);
  const isFirst = c.req.routeIndex === 0;
  const body = request.tools.compress?.(request, answer, headers, isFirst) ?? answer.body;
  if (request.method === 'HEAD' && body !== null && !(body instanceof ReadableStream))
    headers['Content-Length'] = String((typeof body === 'string' ? new TextEncoder().encode(body) : body).length);
  if (isFirst) return new Response(body, { status, headers });
  return c.newResponse(body, { status: status as StatusCode, headers });
}

/** The app's `onError`, the one place where errors become answers. It also ends a request whose handler threw. */
export const problem: ErrorHandler<Env> = (error, c) => {
  const request = c.get('porticoRequest');
  const response = reply(c, request, answerTo(error, request));
  endRequest(request, response.status);
  return response;
};

/** The answer to a request whose handler threw. Nobody reads that to a client that has left. */
export function answerTo(error: unknown, request: HonoRequest): Answer {
  if (error instanceof ClientLeft || (!(error instanceof GatewayError) && request.hasLeft)) {
    request.code = leftCode(request);
    return { status: CLIENT_LEFT, headers: {}, body: null };
  }
  const failure = error instanceof GatewayError ? error : GatewayError.of('internal_error', { cause: error });
  logIfFault(request, failure);
  return problemAnswer(request, failure);
}

/** Makes the function by which a server refuses a request before the app sees it: with the same problem, headers and log line. */
export const refuser = (tools: HttpDeps) => (head: Head, error: GatewayError) => {
  const request = new HonoRequest(head, { name: '(none)' }, tools);
  const answer = problemAnswer(request, error);
  endRequest(request, answer.status);
  return { status: answer.status, headers: headersOf(request, answer), body: answer.body };
};

function problemAnswer(request: HonoRequest, error: GatewayError): Answer & { readonly body: string } {
  const { status, code, retryAfter, particulars } = error;
  request.code = code;
  request.reason ??= particulars.reason;
  request.outcome = particulars.outcome;
  if (particulars.section !== undefined && status >= 500) request.failed = [particulars.section];
  const waiting = retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) };
  const challenge = status === 401 && { 'WWW-Authenticate': request.route.challenge ?? 'Token' };
  const headers = { ...NO_STORE, 'Content-Type': PROBLEM_TYPE, ...waiting, ...challenge, ...particulars.headers };
  return { status, headers, body: JSON.stringify(problemFor(request, error)) };
}

/** The headers of an answer, with those that every answer has. */
function headersOf(request: HonoRequest, answer: Answer): Record<string, string> {
  const { status, headers: own } = answer;
  const isPage = own['Content-Type']?.startsWith('text/html');
  const headers: Record<string, string> = { ...(status === 304 ? ON_ALL : isPage ? ON_PAGES : ON_WHOLE), ...own };
  if (status === 304) headers['ETag'] = tagOfCopy(request, own['ETag'] ?? '');
  else if ((request.tools.config.publicUrl ?? request.hostOrigin).startsWith('https:'))
    headers['Strict-Transport-Security'] = 'max-age=31536000'; // RFC 6797: never by http
  // An answer that depends on the credential depends on both places where that may be.
  if (request.tools.config.sessions && own['Vary']?.includes('Authorization')) headers['Vary'] += ', Cookie';
  return addRequestHeaders(headers, request, answer);
}

/** The ETag in the form that the client sent: weak if its copy was compressed, here or on its way. */
function tagOfCopy(request: HonoRequest, etag: string): string {
  const weak = `W/${etag}`;
  return request.header('if-none-match')?.includes(weak) ? weak : etag;
}

/** Adds the headers about the request: its id, its time, its rate limit, CORS. A host's answer gets them too. */
export function addRequestHeaders(
  headers: Record<string, string>,
  request: HonoRequest,
  { status, timing }: Pick<Answer, 'status' | 'timing'>,
): Record<string, string> {
  const { startedAt, limitUse, requestId } = request;
  const { clock, cors } = request.tools;
  const now = clock.now();
  const total = `total;dur=${tenths(now - startedAt)}`;
  headers['X-Request-Id'] = requestId;
  headers['Server-Timing'] = timing ? `${timing}, ${total}` : total;
  if (limitUse) addLimit(headers, limitUse, now, status === 304);
  cors?.add(headers, request);
  return headers;
}

/** Adds `RateLimit` and, unless `isBrief`, `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10). */
function addLimit(
  headers: Record<string, string>,
  { quota: { by, limit, lengthMs }, use }: NonNullable<HonoRequest['limitUse']>,
  now: number,
  isBrief: boolean,
): void {
  const left = Math.max(0, limit - use.used);
  headers['RateLimit'] = `"${by}";r=${left};t=${secondsLeft(use, now)}`;
  if (!isBrief) headers['RateLimit-Policy'] = `"${by}";q=${limit};w=${lengthMs / 1000}`;
}

/** One `Server-Timing` entry; `ms` in milliseconds. */
export function timingOf(name: string, ms: number, description?: string): string {
  return `${name};dur=${tenths(ms)}${description ? `;desc="${description}"` : ''}`;
}

/** The number with one decimal, five times as fast as `toFixed`. */
function tenths(ms: number): string {
  const count = Math.round(ms * 10);
  return `${Math.trunc(count / 10)}.${count % 10}`;
}
