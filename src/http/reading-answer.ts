import { cacheStatusOf, cacheWordOf, type Reading } from '../cache/reading.ts';
import { withOrigin } from '../upstream/links.ts';
import { type Answer, NO_STORE } from './answer.ts';
import { noneMatch } from './conditional.ts';
import type { Exchange } from './exchange.ts';

/** What a client's own cache may do with a cacheable answer: keep it for itself, and ask before each use. */
export const REVALIDATE = { 'Cache-Control': 'private, no-cache' } as const;

/** A read as the client gets it: whole, or 304 where it has that already (`contract.md` section 5). */
export function readingAnswer(exchange: Exchange, reading: Reading): Answer {
  const { entry, outcome, status } = reading;
  exchange.notes = { ...exchange.notes, cache: cacheWordOf(outcome) };
  const headers = { 'Cache-Status': cacheStatusOf(outcome), Vary: 'Authorization' };
  const timing = timingOf('upstream', exchange.tally.upstreamMs, outcome.hit ? 'hit' : undefined);
  if (entry === null) return { status, headers: { ...headers, ...NO_STORE }, body: null, timing };
  if (!reading.cacheable || status !== 200) {
    const body = withOrigin(entry, exchange.origin);
    return { status, headers: { ...headers, ...NO_STORE, 'Content-Type': 'application/json' }, body, timing };
  }
  const validated = { ...headers, ...REVALIDATE, ETag: entry.etag, Age: String(reading.age) };
  if (noneMatch(exchange.header('if-none-match'), entry.etag))
    return { status: 304, headers: validated, body: null, timing };
  const body = withOrigin(entry, exchange.origin);
  return { status, headers: { ...validated, 'Content-Type': 'application/json' }, body, timing };
}

/** One `Server-Timing` entry; `ms` in milliseconds. */
export function timingOf(name: string, ms: number, description?: string): string {
  return `${name};dur=${ms.toFixed(1)}${description ? `;desc="${description}"` : ''}`;
}
