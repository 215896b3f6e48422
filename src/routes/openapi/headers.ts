import type { RouteConfig } from '@hono/zod-openapi';
import * as z from 'zod';

const text = (description: string, example: string) => ({ description, schema: { type: 'string' }, example }) as const;

const CACHE_STATUS = text('Where the answer came from (RFC 9211).', 'portico; hit; ttl=12');

const VALIDATED = {
  ETag: text('Strong; for `If-None-Match`.', '"5f2b8c61d0e94a37"'),
  Age: { description: 'Seconds since the upstream sent it.', schema: { type: 'integer', minimum: 0 }, example: 18 },
  'Cache-Control': text('Yours to keep, but ask before each use.', 'private, no-cache'),
  'Cache-Status': CACHE_STATUS,
} as const;

/** On every answer to a request that is counted (draft-ietf-httpapi-ratelimit-headers). */
export const LIMITED = {
  RateLimit: text('Requests left, and seconds until the count begins anew.', '"account";r=588;t=41'),
  'RateLimit-Policy': text('Requests in so many seconds.', '"account";q=600;w=60'),
} as const;

/** On the answer to a write with a key that was answered before. */
export const REPLAYED = { 'Idempotency-Replayed': text('This is the first answer again.', 'true') } as const;

/** Headers of an answer that nobody may keep. */
export const UNSTORED = { 'Cache-Control': text('Not to be kept.', 'no-store') };

/** What a client may ask of the cache. */
export const conditionalHeaders = z.object({
  'If-None-Match': z.string().optional().meta({ description: 'ETag of the copy that you have; 304 if it still holds' }),
  'Cache-Control': z
    .string()
    .optional()
    .meta({ description: '`no-cache`: a fresh copy; `no-store`: neither from the cache nor into it' }),
});

type Content = NonNullable<Extract<RouteConfig['responses'][string], { content?: unknown }>['content']>;

/** The answers of a read that the gateway may hold. */
export function cachedAnswers(content: Content, description = 'As the upstream sent it.'): RouteConfig['responses'] {
  return {
    200: { description, headers: VALIDATED, content },
    304: { description: 'The copy that `If-None-Match` names still holds. No body.', headers: VALIDATED },
  };
}
