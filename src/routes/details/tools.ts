import * as z from 'zod/mini';
import { documented, exampleOf } from '../../upstream/fields.ts';
import { header, LIMITED, problemExample, shared } from './answers.ts';
import { jsonSchemaOf, reference, type Schema } from './schemas.ts';

const VALIDATED = {
  ETag: header('For `If-None-Match`, as it is.', '"5f2b8c61d0e94a37"'),
  Age: { description: 'Seconds since the upstream sent it.', schema: { type: 'integer', minimum: 0 }, example: 18 },
  'Cache-Control': header('Yours to keep, but ask before each use.', 'private, no-cache'),
  'Cache-Status': header('Where the answer came from (RFC 9211).', 'portico; hit; ttl=12'),
} as const;

const told = (description: string) => documented(z.string(), { description });

/** What details are written with. */
export const tools = {
  header,
  reference,
  problem: problemExample,
  /** Headers of an answer that nobody may keep. */
  unstored: { 'Cache-Control': header('Not to be kept.', 'no-store') },
  /** What any call whose requests are counted may answer. */
  limited: LIMITED,
  /** What any call that takes a credential may answer. */
  refused: { 401: shared('Unauthenticated'), ...LIMITED },
  /** What a write with an idempotency key may answer. */
  keyed: { 409: shared('NotTwice'), 422: shared('KeyReused') },
  /** What a client may ask of the cache. */
  conditional: {
    'If-None-Match': told('ETag of the copy that you have; 304 if it still holds'),
    'Cache-Control': told('`no-cache`: a fresh copy; `no-store`: neither from the cache nor into it'),
  },
  /** What a client may ask that waits for a change of a read. */
  awaited: {
    Prefer: told(
      'with `If-None-Match`: `wait=30`: the answer comes once it is no 304, or as one after so many seconds (30 at most)',
    ),
  },

  json(schema: Schema, example: unknown = exampleOf(schema)) {
    return { 'application/json': { schema: reference(schema), example } };
  },

  good(description: string, content: Record<string, object>) {
    return { responses: { 200: { description, content } } };
  },

  /** The answers of a read that the gateway may hold. */
  cached(content: Record<string, object>, description = 'As the upstream sent it.') {
    const gone = 'The copy that `If-None-Match` names still holds. No body.';
    return { 200: { description, headers: VALIDATED, content }, 304: { description: gone, headers: VALIDATED } };
  },

  /** The answers of a read that is never held, but may be waited for. */
  polled(content: Record<string, object>) {
    const headers = { ETag: VALIDATED.ETag, ...this.unstored };
    return {
      200: { description: 'As the upstream sent it.', headers, content },
      304: { description: 'It is as `If-None-Match` says. No body.', headers },
    };
  },

  /** A list in a query is `a,b` in one parameter. */
  parameters(place: 'path' | 'query' | 'header', fields: Readonly<Record<string, Schema>>) {
    return Object.entries(fields).map(([name, field]) => ({
      name,
      in: place,
      required: place === 'path',
      description: z.globalRegistry.get(field)?.description ?? '',
      ...(field instanceof z.ZodMiniArray && ({ style: 'form', explode: false } as const)),
      schema: jsonSchemaOf(field),
    }));
  },
};
