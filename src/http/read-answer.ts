import { cacheStatusOf, cacheWordOf, type Reading } from '../cache/reading.ts';
import { withOrigin } from '../upstream/links.ts';
import { type Answer, NO_STORE, timingOf } from './answer.ts';
import type { Context } from './context.ts';
import { noneMatch } from './request-headers.ts';

/** A client's own cache may keep the answer, but has to revalidate it before each use. */
export const REVALIDATE = 'private, no-cache';

const JSON_TYPE = 'application/json';
const HIT_TIMING = timingOf('upstream', 0, 'hit');

/** The answer to a read: whole, or 304 if the client has it already (`contract.md` section 5). */
export function readAnswer(context: Context, reading: Reading): Answer {
  const { entry, status, age, ttl } = reading;
  context.cache = cacheWordOf(reading);
  const timing = ttl === undefined ? timingOf('upstream', context.upstreamMs) : HIT_TIMING;
  const headers: Record<string, string> = { 'Cache-Status': cacheStatusOf(reading), Vary: 'Authorization' };
  const isKept = reading.isCacheable && status === 200;
  if (entry === null || !isKept) headers['Cache-Control'] = NO_STORE['Cache-Control'];
  if (entry === null) return { status, headers, body: null, timing };
  if (isKept) {
    headers['Cache-Control'] = REVALIDATE;
    headers['ETag'] = entry.etag;
    headers['Age'] = String(age);
    if (noneMatch(context.inbound.header('if-none-match'), entry.etag))
      return { status: 304, headers, body: null, timing };
  }
  headers['Content-Type'] = JSON_TYPE;
  return { status, headers, body: withOrigin(entry, context.origin), isAscii: entry.isAscii, timing };
}
