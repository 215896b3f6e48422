import { cacheStatusOf, cacheWordOf, type Reading } from '../cache/reader.ts';
import { withOrigin } from '../upstream/links.ts';
import { noneMatch } from './headers.ts';
import { type Answer, NO_STORE, REVALIDATE, timingOf } from './reply.ts';
import type { ClientRequest } from './request.ts';

const JSON_TYPE = 'application/json';
const HIT_TIMING = timingOf('upstream', 0, 'hit');

/** The answer to a read: whole, or 304 if the client has it already (`contract.md` section 5). */
export function readAnswer(request: ClientRequest, reading: Reading): Answer {
  const { entry, status, age, ttl } = reading;
  request.cache = cacheWordOf(reading);
  const timing = ttl === undefined ? timingOf('upstream', request.upstreamMs) : HIT_TIMING;
  const headers: Record<string, string> = { 'Cache-Status': cacheStatusOf(reading), Vary: 'Authorization' };
  const isKept = reading.isCacheable && status === 200;
  if (entry === null || !isKept) headers['Cache-Control'] = NO_STORE['Cache-Control'];
  if (entry === null) return { status, headers, body: null, timing };
  if (isKept) {
    headers['Cache-Control'] = REVALIDATE;
    headers['ETag'] = entry.etag;
    headers['Age'] = String(age);
    if (noneMatch(request.header('if-none-match'), entry.etag)) return { status: 304, headers, body: null, timing };
  }
  headers['Content-Type'] = JSON_TYPE;
  return { status, headers, body: withOrigin(entry, request), timing };
}
