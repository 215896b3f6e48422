import type { GatewayError } from '../core/errors.ts';
import type { Outbound } from '../core/inbound.ts';
import { PROBLEM_TYPE, problemOf } from '../core/problem.ts';

/** What a handler returns; the lifecycle adds the headers that every answer has. */
export interface Answer extends Pick<Outbound, 'status' | 'body' | 'isAscii'> {
  readonly headers: Readonly<Record<string, string>>;
  /** `Server-Timing` entries besides the total. */
  readonly timing?: string;
}

export const NO_STORE = { 'Cache-Control': 'no-store' } as const;

export function jsonAnswer(body: unknown, headers: Readonly<Record<string, string>> = NO_STORE): Answer {
  return { status: 200, headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) };
}

/** An error as its client gets it. */
export function problemAnswer(error: GatewayError, where: Parameters<typeof problemOf>[1]): Answer {
  const { status, retryAfter, particulars } = error;
  const waiting = retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) };
  const headers = { ...NO_STORE, 'Content-Type': PROBLEM_TYPE, ...waiting, ...particulars.headers };
  return { status, headers, body: JSON.stringify(problemOf(error, where)) };
}

/** One `Server-Timing` entry; `ms` in milliseconds. */
export function timingOf(name: string, ms: number, description?: string): string {
  return `${name};dur=${tenths(ms)}${description ? `;desc="${description}"` : ''}`;
}

/** With one decimal; five times as fast as `toFixed`. */
export function tenths(ms: number): string {
  const count = Math.round(ms * 10);
  return `${Math.trunc(count / 10)}.${count % 10}`;
}

/** On every answer. Pages have a `Content-Security-Policy` of their own. */
export const SECURITY_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Strict-Transport-Security': 'max-age=31536000',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
} as const;
