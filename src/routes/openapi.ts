import { OpenAPIHono, type RouteConfig } from '@hono/zod-openapi';
import * as z from 'zod/mini';
import { ERROR_CODES, type ErrorCode, GatewayError, type Problem, PROBLEM_TYPE, problemOf } from '../core/errors.ts';
import { EXPOSED } from '../middleware/cors.ts';
import { documented, exampleOf } from '../upstream/fields.ts';
import type { Table } from '../upstream/table.ts';

/** A route: what the app mounts it by, and what the document tells of it besides. */
export interface Description extends Pick<RouteConfig, 'method' | 'path' | 'operationId' | 'summary' | 'security'> {
  readonly tags: string[];
  /** Called for the document only. */
  readonly details: (doc: Doc) => Pick<RouteConfig, 'description' | 'parameters' | 'request' | 'responses'>;
}

/** How JavaScript keeps integers that it would round. */
const KEEPING_IDS =
  'JSON.parse(text, (_, value, { source }) => (/^-?\\d+$/.test(source) && !Number.isSafeInteger(value) ? source : value))';

const DESCRIPTION = `A backend-for-frontend gateway. Every endpoint of the upstream is here at its own path, with or
without the trailing slash, and its answers are the upstream's, digit for digit. Combinations of several are under \`/bff/v1\`.

**Writes** are sent to the upstream once. A POST with an \`Idempotency-Key\` may be repeated for 24 hours, and gets
its first answer again. A write whose outcome nobody knows is a problem with \`"outcome":"unknown"\`. It is not sent again.

**Ids** that are integers may go beyond 2^53 (\`format: int64\`). The gateway passes them on digit for digit, in answers and in
paths. JavaScript keeps 53 bits: \`JSON.parse\`, \`response.json()\` and clients generated from this document round longer ones,
and their types say \`number\`. If yours can be that large, read the text of the answer with
\`${KEEPING_IDS}\`
(or json-bigint), which leaves them as text.

**Browsers.** Pages of the origins that the operator has listed may call from there (CORS), problems and 304s included, and read
these headers: ${EXPOSED.replaceAll(/[\w-]+/g, '`$&`')}. A preflight needs no
credential and names all methods and headers that the gateway takes. Without listed origins there is no CORS.

**Every answer** has an \`X-Request-Id\`, yours if you send one, \`Server-Timing\`, and \`RateLimit\` where a limit applies. HEAD works
where GET does. Query parameters that are not documented go to the upstream as they are.`;

/** In the order of the document, each once. */
const tagsOf = ({ operations }: Table) =>
  [
    ...new Map([
      ['Composed', 'Several reads in one answer.'],
      ['Session', 'Cookies for browsers, where `SESSIONS` is on: no script ever sees the key.'],
      ...operations.map(({ tag }) => [tag.name, tag.description] as const),
      ['About', 'The gateway itself. No credential.'],
    ] as const),
  ].map(([name, description]) => ({ name, description }));

const CREDENTIALS = {
  Token: { type: 'apiKey', in: 'header', name: 'Authorization', description: '`Token <key>`, the word included.' },
  Bearer: { type: 'http', scheme: 'bearer', description: 'The key.' },
  Session: { type: 'apiKey', in: 'cookie', name: '__Host-Http-portico', description: 'Where `SESSIONS` is on.' },
} as const;

/** The OpenAPI 3.1 document of all that the gateway answers. Loaded when it is first asked for. */
export function documentOf(routes: readonly Description[], table: Table): object {
  const api = new OpenAPIHono();
  const registry = api.openAPIRegistry;
  named.clear();
  for (const { details, ...head } of routes) {
    const { responses, ...about } = details(doc);
    registry.registerPath({ ...head, ...about, responses: { ...responses, default: shared('Problem') } });
  }
  for (const [name, scheme] of Object.entries(CREDENTIALS)) registry.registerComponent('securitySchemes', name, scheme);
  for (const [name, answer] of Object.entries(answersOf(table))) registry.registerComponent('responses', name, answer);
  const schemas = namedSchemas();
  const codes = [...new Set([...ERROR_CODES, ...table.refusals.keys()])]; // an enum has each once
  for (const [name, schema] of Object.entries(schemas))
    registry.registerComponent('schemas', name, name === 'ProblemCode' ? { ...schema, enum: codes } : schema);
  return api.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'Portico', version: '1', description: DESCRIPTION },
    servers: [{ url: '/' }],
    security: [{ Token: [] }, { Bearer: [] }, { Session: [] }],
    tags: tagsOf(table),
  });
}

type HeaderTexts = Record<string, { description: string; schema: { type: 'string' | 'integer' }; example: unknown }>;

const header = (description: string, example: string) =>
  ({ description, schema: { type: 'string' }, example }) as const;

const VALIDATED = {
  ETag: header('For `If-None-Match`, as it is.', '"5f2b8c61d0e94a37"'),
  Age: { description: 'Seconds since the upstream sent it.', schema: { type: 'integer', minimum: 0 }, example: 18 },
  'Cache-Control': header('Yours to keep, but ask before each use.', 'private, no-cache'),
  'Cache-Status': header('Where the answer came from (RFC 9211).', 'portico; hit; ttl=12'),
} as const;

const told = (description: string) => documented(z.string(), { description });

const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds; where waiting helps.', schema: { type: 'integer' }, example: 12 },
} as const;
const LIMIT = {
  ...RETRY_AFTER,
  RateLimit: header('Requests left, and seconds until the count begins anew.', '"account";r=588;t=41'),
  'RateLimit-Policy': header('Requests in so many seconds.', '"account";q=600;w=60'),
};
const CHALLENGE = { 'WWW-Authenticate': header('The scheme to use.', 'Token') };

const BAD_PAGE = { code: 'invalid_format', message: 'expected an integer of 1 or more', field: 'page' };
const PARTICULARS: Partial<Record<ErrorCode, object>> = {
  validation_failed: { errors: [BAD_PAGE] },
  rate_limited: { retryAfter: 12 },
};

const REQUEST_ID = '01981f0e-7d2c-7000-8000-5f3b9c0d1e2f';

/** A problem as a client gets it. `instance`: the path of its request. */
const problemExample = (code: ErrorCode, instance: string): Problem =>
  problemOf(GatewayError.of(code, PARTICULARS[code]), { instance, mount: '', requestId: REQUEST_ID });

const SCHEMAS = '#/components/schemas/';

/** An answer with any of some problems, as a request of this path gets them. */
function anyOf(description: string, path: string, codes: readonly ErrorCode[], headers?: HeaderTexts) {
  const examples = Object.fromEntries(codes.map((code) => [code, { value: problemExample(code, path) }]));
  const content = { [PROBLEM_TYPE]: { schema: { $ref: `${SCHEMAS}Problem` }, examples } };
  return { description, ...(headers && { headers }), content };
}

/** Answers that many calls share, by the names of their components. */
function answersOf({ operations }: Table) {
  const list = operations.find(({ paged }) => paged)?.path ?? '/';
  const write = operations.find(({ exclusive }) => exclusive)?.path ?? '/';
  return {
    RateLimited: anyOf('Too many requests, or the upstream wants fewer.', list, ['rate_limited'], LIMIT),
    NotTwice: anyOf(
      'The first request with this key is under way, or nobody knows how it ended; or the upstream refused.',
      write,
      ['idempotency_in_progress', 'outcome_unknown', 'conflict'],
    ),
    KeyReused: anyOf('The key was used with another body; or the upstream refused.', write, [
      'idempotency_key_reused',
      'unprocessable_content',
    ]),
    // Some generators take a default answer whose description has the word "success" for a good one too.
    Problem: anyOf(
      'Any other problem (RFC 9457). `/problems/{code}` describes each code.',
      list,
      ['validation_failed', 'rate_limited', 'upstream_timeout'],
      RETRY_AFTER,
    ),
    Unauthenticated: anyOf('No usable credential, or the upstream refused it.', list, ['unauthenticated'], CHALLENGE),
  };
}

const shared = (name: keyof ReturnType<typeof answersOf>) => ({ $ref: `#/components/responses/${name}` });

const LIMITED = { 429: shared('RateLimited') };

type Schema = z.core.$ZodType;

/** What the document that is being made refers to. */
const named = new Set<Schema>();

/** @throws Error for a schema without a name */
function reference(schema: Schema): { $ref: string } {
  const name = z.globalRegistry.get(schema)?.id;
  if (name === undefined) throw new Error('a schema in the document needs a name: documented(schema, { id })');
  named.add(schema);
  return { $ref: SCHEMAS + name };
}

/** What descriptions are written with. */
const doc = {
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

export type Doc = typeof doc;

/** All that was referred to, and what it is made of. By zod itself: zod-to-openapi reads no schema of zod/mini. */
const namedSchemas = (): Readonly<Record<string, object>> => jsonSchemaOf(z.union([...named])).$defs ?? {};

type JsonSchema = Readonly<Partial<Record<'type' | 'pattern' | 'enum', unknown>>> & { readonly anyOf?: JsonSchema[] };

function jsonSchemaOf(schema: Schema): { readonly $defs?: Record<string, object> } {
  const text = JSON.stringify(z.toJSONSchema(schema, { io: 'input' }));
  return JSON.parse(text.replaceAll('#/$defs/', SCHEMAS), tidied) as object;
}

/** Writes `anyOf: [{type: 'string'}, {type: 'null'}]` as `type: ['string', 'null']`; leaves out what OpenAPI implies. */
function tidied(key: string, value: JsonSchema | null): unknown {
  if (key === '$schema') return undefined;
  if (value?.type === 'integer') return { ...value, pattern: undefined }; // that of its text in a query
  const [first, second, ...more] = value?.anyOf ?? [];
  const isPlain = typeof first?.type === 'string' && first.enum === undefined;
  if (!isPlain || second?.type !== 'null' || more.length > 0) return value;
  const { anyOf: _, ...rest } = value ?? {};
  return { ...first, ...rest, type: [first.type, 'null'] };
}
