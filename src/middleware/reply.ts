import type { Context } from 'hono';
import type { StatusCode } from 'hono/utils/http-status';
import { GatewayError, PROBLEM_TYPE, problemOf } from '../core/errors.ts';
import { secondsLeft } from '../store/store.ts';
import type { ClientRequest, Env } from './request.ts';

type Headers = Readonly<Record<string, string>>;

/** What a handler makes of a request; `reply` adds the headers that every answer has. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
  /** `Server-Timing` entries besides the total. */
  readonly timing?: string;
}

export const NO_STORE = { 'Cache-Control': 'no-store' } as const;

/** A client's own cache may keep the answer, but has to revalidate it before each use. */
export const REVALIDATE = 'private, no-cache';

export function jsonAnswer(body: unknown, headers: Headers = NO_STORE): Answer {
  return { status: 200, headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) };
}

/** On every answer. Pages have a `Content-Security-Policy` of their own. */
const SECURITY_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Strict-Transport-Security': 'max-age=31536000',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
} as const;

const UNREAD = 'Too many answers have not been read by their clients.';

/**
 * The one `Response` of a request.
 * @throws GatewayError `overloaded` in place of a read whose owner has not taken its earlier answers. The answer to a
 *   write is always sent: it says what has happened.
 */
export function reply(c: Context<Env>, answer: Answer): Response {
  const request = c.get('request');
  const { status, body } = answer;
  const { backlog } = request.tools;
  if (request.route.isRead && backlog?.isFull(c.env, request.shareOwner)) {
    if (body instanceof ReadableStream) void body.cancel();
    request.tools.metrics.refused('unsent');
    throw GatewayError.of('overloaded', { retryAfter: 1, detail: UNREAD });
  }
  const sent = body instanceof ReadableStream && backlog ? backlog.counted(c.env, body) : body;
  return responseOf(c, sent, { status, headers: headersOf(request, answer) });
}

/** An error as its client gets it. */
export function problemReply(c: Context<Env>, error: GatewayError): Response {
  const request = c.get('request');
  const answer = problemAnswer(request, error);
  return responseOf(c, answer.body, { status: answer.status, headers: headersOf(request, answer) });
}

/**
 * Where a host's middleware came first it may have set headers for the answer, which Hono adds to those of ours. To HEAD
 * it gives no body, after which nobody knows the length.
 */
function responseOf(c: Context<Env>, body: Answer['body'], init: { status: number; headers: Record<string, string> }) {
  const { isFirst, method } = c.get('request');
  if (method === 'HEAD' && typeof body === 'string')
    init.headers['Content-Length'] = String(new TextEncoder().encode(body).length);
  if (isFirst) return new Response(body, init);
  return c.newResponse(body, { ...init, status: init.status as StatusCode });
}

export function problemAnswer(request: ClientRequest, error: GatewayError): Answer & { readonly body: string } {
  const { status, retryAfter, particulars } = error;
  const waiting = retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) };
  const headers = { ...NO_STORE, 'Content-Type': PROBLEM_TYPE, ...waiting, ...particulars.headers };
  return { status, headers, body: JSON.stringify(problemOf(error, request)) };
}

/** The headers of an answer, with those that every answer has. */
export function headersOf(request: ClientRequest, { headers: own, timing }: Answer): Record<string, string> {
  const { startedAt, limitUse, requestId } = request;
  const { clock, cors, sessions } = request.tools;
  const now = clock.now();
  const total = `total;dur=${tenths(now - startedAt)}`;
  const headers: Record<string, string> = {
    ...SECURITY_HEADERS,
    ...own,
    'X-Request-Id': requestId,
    'Server-Timing': timing ? `${timing}, ${total}` : total,
  };
  if (sessions && own['Vary']?.includes('Authorization')) headers['Vary'] += ', Cookie'; // what depends on one depends on both
  if (limitUse) addLimit(headers, limitUse, now);
  cors?.add(headers, request);
  return headers;
}

/** `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10). */
function addLimit(
  headers: Record<string, string>,
  { quota: { by, limit, lengthMs }, use }: NonNullable<ClientRequest['limitUse']>,
  now: number,
): void {
  const left = Math.max(0, limit - use.used);
  headers['RateLimit'] = `"${by}";r=${left};t=${secondsLeft(use, now)}`;
  headers['RateLimit-Policy'] = `"${by}";q=${limit};w=${lengthMs / 1000}`;
}

/** One `Server-Timing` entry; `ms` in milliseconds. */
export function timingOf(name: string, ms: number, description?: string): string {
  return `${name};dur=${tenths(ms)}${description ? `;desc="${description}"` : ''}`;
}

/** With one decimal; five times as fast as `toFixed`. */
function tenths(ms: number): string {
  const count = Math.round(ms * 10);
  return `${Math.trunc(count / 10)}.${count % 10}`;
}
