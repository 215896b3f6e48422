/* oxlint-disable max-lines -- what one document says, in its order */
import { OpenAPIHono, type RouteConfig } from '@hono/zod-openapi';
import * as z from 'zod/mini';
import {
  CODE,
  ERROR_CODES,
  type ErrorCode,
  ERRORS,
  GatewayError,
  type Problem,
  PROBLEM_TYPE,
  problemOf,
} from '../core/errors.ts';
import { COMPUTED, type Overview, parametersOf, sourcesOf } from '../gateway/overview.ts';
import { choicesOf } from '../gateway/plan.ts';
import { EXPOSED } from '../http/cors.ts';
import { documented, exampleOf, flag, integer, model, text, textLike, timestamp } from '../upstream/fields.ts';
import { isExploded } from '../upstream/input.ts';
import type { Operation } from '../upstream/operation.ts';
import { type Form, formOf, sourceOf } from '../upstream/path.ts';
import type { Table } from '../upstream/table.ts';

// Makes the OpenAPI document. This module is loaded when a client first asks for the document.

/** Describes a route, for the app, which mounts it, and for the document. */
export interface Description extends Pick<RouteConfig, 'method' | 'path' | 'operationId' | 'summary' | 'security'> {
  readonly tags: string[];
  /** Called for the document only. */
  readonly details: (doc: Doc) => Pick<RouteConfig, 'description' | 'parameters' | 'request' | 'responses'>;
}

type Schema = z.core.$ZodType;
type Fields = Readonly<Record<string, Schema>>;
type Content = Record<string, { schema?: { $ref: string }; example?: unknown; examples?: Record<string, object> }>;
type Headers = Record<string, ReturnType<typeof header>>;

const SCHEMAS = '#/components/schemas/';

/** The schemas to which the document under construction refers. Each has a name. */
const referred = new Set<Schema>();

function reference(schema: Schema) {
  referred.add(schema);
  return { $ref: `${SCHEMAS}${z.globalRegistry.get(schema)?.id}` };
}

/** zod itself makes the schema: zod-to-openapi reads none of zod/mini. */
function jsonSchemaOf(schema: Schema): { readonly $defs?: Readonly<Record<string, object>> } {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    override: ({ jsonSchema }) => {
      if (jsonSchema.type === 'integer' || jsonSchema.type === 'number') delete jsonSchema.pattern; // of its text in a query
      delete jsonSchema['explode'];
    },
  });
  return JSON.parse(JSON.stringify(rest).replaceAll('#/$defs/', SCHEMAS)) as object;
}

const told = (description: string) => documented(z.string(), { description });

function header(description: string, example?: string | number) {
  const type = typeof example === 'number' ? ('integer' as const) : ('string' as const);
  return { description, schema: { type }, example };
}

const json = (schema: Schema, example: unknown = exampleOf(schema)) => ({
  'application/json': { schema: reference(schema), example },
});

/** A list in a query is `a,b` in one parameter, or with `explode` one parameter for each. */
const parameters = (place: 'path' | 'query' | 'header', fields: Fields, required = place === 'path') =>
  Object.entries(fields).map(([name, field]) => ({
    name,
    in: place,
    required,
    description: z.globalRegistry.get(field)?.description ?? '',
    ...(field instanceof z.ZodMiniArray && { style: 'form' as const, explode: isExploded(field) }),
    schema: jsonSchemaOf(field),
  }));

// Problems

const REQUEST_ID = '01981f0e-7d2c-7000-8000-5f3b9c0d1e2f';

const errorItem = z.object({
  code: text('what is wrong', 'invalid_format'),
  message: text('the same for people', 'expected an integer of 1 or more'),
  field: z.nullable(text('dotted path; null: the whole', 'page')),
});

/** A name of its own: TypeScript takes `'a' | string` for `string`, so that in a union the codes would be lost. */
const ownCode = documented(z.enum(ERROR_CODES), {
  id: 'ProblemCode',
  description: 'Codes that the gateway describes at `/problems/{code}`; a later version may have more.',
});

const otherCode = z.string().check(z.maxLength(64), z.regex(new RegExp(String.raw`${CODE.source}|^status_\d{3}$`)));

const problemSchema = model(
  'Problem',
  {
    type: text('path of a description of the code', '/problems/upstream_unavailable'),
    title: text('the same for every problem of the code', 'Upstream unavailable'),
    status: integer('its HTTP status', 503),
    code: documented(z.union([ownCode, otherCode]), {
      description:
        "the gateway's, or any other that the upstream has sent with a 4xx; `status_<status>` for a 4xx without a name",
      examples: ['upstream_unavailable'],
    }),
    detail: text('what happened, for people', 'The upstream is not available right now.'),
    instance: text('path of the request', '/path/'),
    request_id: text('as in `X-Request-Id`', REQUEST_ID),
    retryable: flag('whether the same request may succeed later', true),
    retry_after: z.optional(integer('seconds, as in `Retry-After`', 5)),
    outcome: documented(z.optional(z.literal('unknown')), {
      description: 'the write was sent and got no readable answer: it may have happened',
    }),
    section: z.optional(text('section of the overview that failed', 'profile')),
    errors: documented(z.array(errorItem), { description: 'details; often none' }),
  } satisfies Record<keyof Problem, Schema>,
  'RFC 9457.',
);

const PARTICULARS: Partial<Record<ErrorCode, object>> = {
  outcome_unknown: { outcome: 'unknown' },
  validation_failed: { errors: [exampleOf(errorItem)] },
  rate_limited: { retryAfter: 12 },
};

/** A problem as a client gets it. `instance`: the path of its request. */
const problemExample = (code: ErrorCode, instance: string) =>
  problemOf(GatewayError.of(code, PARTICULARS[code]), { instance, mount: '', requestId: REQUEST_ID });

const ofMeaning = { type: true, title: true, status: true, code: true, detail: true, retryable: true } as const;

const meaning = documented(z.partial(z.pick(problemSchema, ofMeaning), { status: true }), {
  id: 'ProblemDescription',
  description: 'A code of the upstream’s own has no status here.',
});

const meanings = model('ProblemList', { problems: z.array(meaning) });

// Answers that calls share

const RETRY_AFTER = { 'Retry-After': header('Seconds; where waiting helps.', 12) };
const LIMIT = {
  ...RETRY_AFTER,
  RateLimit: header('Requests left, and seconds until the count begins anew.', '"account";r=588;t=41'),
  'RateLimit-Policy': header('Requests in so many seconds.', '"account";q=600;w=60'),
};
const CHALLENGE = { 'WWW-Authenticate': header('The scheme to use.', 'Token') };

const answered = (description: string, content: Content, headers?: Headers) => ({
  description,
  ...(headers && { headers }),
  content,
});

/** An answer with any of some problems, as a request of this path gets them. */
function anyOf(description: string, path: string, codes: readonly ErrorCode[], headers?: Headers) {
  const examples = Object.fromEntries(codes.map((code) => [code, { value: problemExample(code, path) }]));
  return answered(description, { [PROBLEM_TYPE]: { schema: { $ref: `${SCHEMAS}Problem` }, examples } }, headers);
}

/** Responses by the names of their components. */
function answersOf({ operations }: Table) {
  const list = operations.find(({ page }) => page)?.path ?? '/';
  const write = operations.find(({ exclusive }) => exclusive)?.path ?? '/';
  const notTwice =
    'The first request with this key is under way, or nobody knows how it ended; or the upstream refused.';
  const reused = 'The key was used with another body; or the upstream refused.';
  // Some generators take a default answer whose description has the word "success" for a good one too.
  const other = 'Any other problem (RFC 9457). `/problems/{code}` describes each code.';
  return {
    RateLimited: anyOf('Too many requests, or the upstream wants fewer.', list, ['rate_limited'], LIMIT),
    NotTwice: anyOf(notTwice, write, ['idempotency_in_progress', 'outcome_unknown', 'conflict']),
    NoOutcome: anyOf('No write with this key is known.', '/bff/v1/outcome', ['outcome_not_found']),
    KeyReused: anyOf(reused, write, ['idempotency_key_reused', 'unprocessable_content']),
    Problem: anyOf(other, list, ['validation_failed', 'rate_limited', 'upstream_timeout'], RETRY_AFTER),
    Unauthenticated: anyOf('No usable credential, or the upstream refused it.', list, ['unauthenticated'], CHALLENGE),
  };
}

const shared = (name: keyof ReturnType<typeof answersOf>) => ({ $ref: `#/components/responses/${name}` });

/** The problems of any call that is counted, and those of any call that takes a credential. */
const LIMITED = { 429: shared('RateLimited') };
const REFUSED = { 401: shared('Unauthenticated'), ...LIMITED };

/** Headers of an answer that nobody may keep, of such an answer of the upstream's, and of one that the gateway may hold. */
const UNSTORED = { 'Cache-Control': header('Not to be kept.', 'no-store') };
const sentOn = (method: string) => ({
  ...UNSTORED,
  'Cache-Status': header(
    'The upstream was asked (RFC 9211).',
    `portico; fwd=${method === 'GET' ? 'bypass' : 'method'}`,
  ),
});
const CONDITIONED = {
  ETag: header('For `If-None-Match`, as it is.', '"5f2b8c61d0e94a37"'),
  'Preference-Applied': header('What `Prefer` asked for and got.', 'wait=30'),
};
const VALIDATED = {
  ...CONDITIONED,
  Age: header('Seconds since the upstream sent it.', 18),
  'Cache-Control': header('Yours to keep, but ask before each use.', 'private, no-cache'),
  'Cache-Status': header('Where the answer came from (RFC 9211).', 'portico; hit; ttl=12'),
};

/** The answers of a read that the client may have a copy of. */
const validated = (description: string, content: Content, headers: Headers = VALIDATED) => ({
  200: answered(description, content, headers),
  304: { description: 'The copy that `If-None-Match` names still holds. No body.', headers },
});

const FRESH = {
  'Cache-Control': told('`no-cache`: a fresh copy; `no-store`: neither from the cache nor into it'),
};
const CONDITIONAL = { 'If-None-Match': told('ETag of the copy that you have; 304 if it still holds'), ...FRESH };
const WAIT = '`wait=30`: the answer comes once it is no 304, or as one after so many seconds (30 at most)';

// Pass-through

const KEY = {
  'Idempotency-Key': textLike(/^[\x21-\x7e]{1,255}$/, {
    description: 'new for each thing that the user does; sent again within 24 hours, it gets the first answer again',
  }),
};

/** A parameter of a path. `answer`: its member of that name is the example. */
function paramSchema(name: string, form: Form, answer: Operation['answer'] = null) {
  const { [name]: own } =
    answer instanceof z.ZodMiniObject ? (exampleOf(answer) as Readonly<Record<string, unknown>>) : {};
  const example = [own ?? 1091, 1091, REQUEST_ID].map(String).find((one) => formOf(form).test(one));
  return textLike(new RegExp(`^${sourceOf(form)}$`), {
    description: 'identifier, digit for digit as it came',
    ...(example !== undefined && { examples: [example] }),
    type: ['string', 'integer'], // so that the id in a body fits
  });
}

function passthrough(operation: Operation) {
  const { method, description, cache, polled, exclusive, credential, answer, body, params, query = {} } = operation;
  const isPost = method === 'POST';
  const held = cache
    ? `Held for the account: fresh for ${cache.fresh} s, then up to ${cache.stale} s while it is refreshed and up to ` +
      `${cache.onError} s while the upstream fails, unless the operator has set other times.`
    : method === 'GET' && 'Never held in the cache.';
  const once = exclusive && 'Without a key, the second of two equal ones at the same moment is refused with 409.';
  const asking = { ...CONDITIONAL, Prefer: told(`with \`If-None-Match\`: ${WAIT}`) };
  return {
    description: [description, held, once].filter(Boolean).join(' '),
    parameters: [
      ...parameters('query', query),
      ...parameters(
        'path',
        mapped(params, (form, name) => paramSchema(name, form, answer)),
      ),
      ...parameters('header', isPost ? KEY : cache || polled ? asking : {}),
    ],
    ...(body && { request: { body: { required: !body.optional, content: json(body.schema) } } }),
    responses: {
      ...goodAnswers(operation),
      ...(credential === 'none' ? LIMITED : REFUSED),
      ...(isPost && { 409: shared('NotTwice'), 422: shared('KeyReused') }),
    },
  };
}

/** An object of the same names, with other values. */
const mapped = <T, U>(all: Readonly<Record<string, T>>, make: (value: T, name: string) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(all).map(([name, value]) => [name, make(value, name)]));

function goodAnswers({ method, path, answer, cache, polled, page }: Operation) {
  const replayed = { 'Idempotency-Replayed': header('This is the first answer again.', 'true') };
  const headers = { ...sentOn(method), ...(method === 'POST' && replayed) };
  if (answer === null) return { 204: { description: 'Done. No body.', headers } };
  const asSent = 'As the upstream sent it.';
  const links = page?.items === '' && { Link: header('Other pages (RFC 8288).', `<${path}?page=2>; rel="next"`) };
  if (cache) return validated(asSent, json(answer), { ...VALIDATED, ...links });
  if (polled) return validated(asSent, json(answer), { ...CONDITIONED, ...sentOn(method) });
  // Which 2xx status a write has is the upstream's to say; its documentation does not.
  return { [method === 'GET' ? '200' : '2XX']: answered(asSent, json(answer), { ...headers, ...links }) };
}

// Overviews

const state = documented(z.enum(['fresh', 'stale', 'failed', 'skipped', 'not_applicable']), {
  description: '`skipped`: what it depends on failed; `not_applicable`: there is none, which is no error',
});
const code = z.optional(text('why the upstream did not give a newer one, of a stale section', 'upstream_timeout'));
const age = z.optional(integer('seconds since the upstream sent it', 0));
const sectionMeta = model('SectionMeta', { state, age, code });
const why = z.pick(problemSchema, { code: true, status: true, detail: true, retryable: true, retry_after: true }).shape;
const section = text('its name', 'section');
const sectionError = model('SectionError', { section, ...why }, 'A section that failed.');
const ANY = documented(z.unknown(), { description: 'JSON that is made of the other sections', examples: [{}] });
const UNCHANGED = documented(z.array(z.string()), {
  description: 'sections that are as in your copy, and so not in `data`; only with `Prefer: changed-sections`',
  examples: [[]],
});

const DATA =
  'Every section asked for. One that is not required is null when it failed, or where what it depends on has none. Only with ' +
  '`sections` or `fields` may sections, or fields of them, be missing that are required here.';

/** One line of NDJSON, of any section of any overview. */
const lineSchema = documented(
  z.union([
    z.object({
      section,
      state,
      code,
      data: z.optional(documented(z.unknown(), { description: 'as in `data` of the JSON', examples: [{}] })),
      unchanged: z.optional(z.literal(true)),
      error: z.optional(model('LineError', why, 'Why a section failed.')),
    }),
    z.object({ complete: z.literal(true), etag: z.optional(text('of the whole, where it may be kept', '"5f2b8c61"')) }),
  ]),
  {
    id: 'OverviewLine',
    description:
      'One line: of a section, the moment it is there, or the last one, without which the answer was cut off. OpenAPI 3.1 has ' +
      'no words for a sequence of lines.',
  },
);

const LINES = {
  section: { value: { section: 'section', state: 'fresh', data: {} } },
  failed: { value: { section: 'section', state: 'failed', error: exampleOf(z.object(why)) } },
  last: { value: { complete: true, etag: '"5f2b8c61"' } },
};

/** A type knows nothing of the query: it tells of an answer that has all the required sections. */
function answerSchema({ id, sections, compute, computed = ANY }: Overview) {
  const data: Record<string, Schema> = {};
  const metas: Record<string, Schema> = {};
  for (const [name, one] of Object.entries(sections)) {
    const answer = one.read.answer ?? z.null();
    const orNull = one.required && sourcesOf(one).length === 0 ? answer : z.nullable(answer);
    data[name] = one.required ? orNull : z.optional(orNull);
    metas[name] = one.required ? sectionMeta : z.optional(sectionMeta);
  }
  if (compute) {
    data[COMPUTED] = z.optional(z.nullable(computed));
    metas[COMPUTED] = z.optional(sectionMeta);
  }
  return model(id.replace(/^get/, ''), {
    data: documented(z.object(data), { description: DATA }),
    errors: documented(z.array(sectionError), { examples: [[]] }),
    meta: z.object({
      complete: flag('no section failed', true),
      unchanged: z.optional(UNCHANGED),
      sections: documented(z.object(metas), { description: 'the same sections as in `data`' }),
    }),
  });
}

const SECTIONS =
  'Sections are read at the same time and answered from the same cache as the calls behind them. One that fails is ' +
  'null and named in `errors`, unless it is required: then the whole fails.';
const IN_PARTS =
  'The sections, as lines where `Accept` prefers `application/x-ndjson`. `no-store` and without `ETag` as lines or ' +
  'when a section failed.';
const CHOICE =
  'the names of what to answer; all when left out. Nothing else is answered, even where the schema requires it. ' +
  'Of a list, name fields of its items';
const PREFER =
  '`handling=strict`: any section that fails fails the whole; with `If-None-Match`: `changed-sections`: only those that ' +
  `differ; ${WAIT}`;

/** An answer of an overview, and one whose last section has failed. */
function examplesOf(schema: ReturnType<typeof answerSchema>) {
  const complete = exampleOf(schema) as z.infer<typeof schema>;
  const last = Object.keys(complete.data).at(-1) ?? '';
  const partial = {
    data: { ...complete.data, [last]: null },
    errors: [{ ...(exampleOf(sectionError) as object), section: last }],
    meta: { complete: false, sections: { ...complete.meta.sections, [last]: { state: 'failed' } } },
  };
  return { complete: { value: complete }, partial: { value: partial } };
}

function overview(one: Overview) {
  const schema = answerSchema(one);
  const content = {
    'application/json': { schema: reference(schema), examples: examplesOf(schema) },
    'application/x-ndjson': { schema: reference(lineSchema), examples: LINES },
  };
  const sections = Object.entries(one.sections);
  const needed = sections.flatMap(([name, { required }]) => (required ? [name] : [])).join(', ');
  const made = one.compute && `\`${COMPUTED}\` is made of the other sections, without those that were not asked for.`;
  const path = parametersOf(one).map(({ name, forms: [form], own, read }) => [
    name,
    paramSchema(own, form, read?.answer),
  ]);
  const { names, sized } = choicesOf(one);
  const query: Record<string, Schema> = {};
  for (const [name, all] of names) query[name] = documented(z.array(z.enum([...all])), { description: CHOICE });
  for (const name of sized.keys())
    query[name] = documented(z.int().check(z.minimum(1), z.maximum(100)), {
      description: 'how many items the page of this section has',
      examples: [5],
    });
  return {
    description: [SECTIONS, needed && `Required here: ${needed}.`, made].filter(Boolean).join(' '),
    parameters: [
      ...parameters('path', Object.fromEntries(path) as Fields),
      ...parameters('query', query),
      ...parameters('header', { ...CONDITIONAL, Prefer: told(PREFER) }),
    ],
    responses: { ...validated(IN_PARTS, content), ...REFUSED },
  };
}

// Batch

/** Every status that a problem may have. One by one, so that in generated types `status` tells the two answers apart. */
const FAILURES = new Set(Array.from({ length: 100 }, (_, index) => 400 + index));
for (const { status } of Object.values(ERRORS)) FAILURES.add(status);

function batch({ operations }: Table, requestBody: z.ZodMiniType) {
  const reads = operations.filter(({ method, answer }) => method === 'GET' && answer);
  const bodies = [...new Set(reads.flatMap(({ answer }) => answer ?? []))];
  const id = text('as in the request', 'a');
  const body = documented(z.union(bodies.length > 0 ? bodies : [z.unknown()]), { description: 'that of the path' });
  const ok = documented(z.literal(200), { type: 'integer' });
  const read = model('BatchRead', { id, status: ok, body }, 'What the call by itself would answer.');
  const status = documented(z.literal([...FAILURES]), { type: 'integer', description: 'that of the problem' });
  const meant = 'The problem that the call by itself would get, or that its answer is too large here.';
  const failed = model('BatchProblem', { id, status, body: problemSchema }, meant);
  const responses = documented(z.array(z.union([read, failed])), { description: 'in the order of the request' });
  const { path = '/', answer } = reads[0] ?? {};
  const problem = problemExample('not_found', path);
  const example = [
    { id: 'a', status: 200, body: answer ? exampleOf(answer) : null },
    { id: 'b', status: problem.status, body: problem },
  ];
  const asked = json(documented(requestBody, { id: 'BatchRequest' }), { requests: [{ id: 'a', path }] });
  const content = json(model('BatchAnswer', { responses }), { responses: example });
  return {
    description:
      '1 to 20 pass-through GETs with distinct ids, answered in order. Equal ones share a call. A body beyond what all may ' +
      'have together is a problem, `payload_too_large`: ask for it alone. Sent one by one until the upstream has accepted ' +
      'the credential; after a 401 or 403 the others get that problem, unsent.',
    parameters: parameters('header', FRESH),
    request: { body: { required: true, content: asked } },
    responses: { 200: answered('One answer for each; problems stand as they are.', content, UNSTORED), ...REFUSED },
  };
}

// Outcomes and sessions

const done = model('WriteDone', {
  state: z.literal('done'),
  status: integer('of the answer that the key gets again', 201),
  at: z.optional(timestamp('when that was recorded; absent if an earlier release did it', '2026-11-22T18:09:43.000Z')),
});

const open = model('WriteOpen', {
  state: documented(z.enum(['under_way', 'unknown']), {
    description: '`unknown`: the write was sent, and may have happened',
    examples: ['unknown'],
  }),
});

function outcome() {
  const content = json(documented(z.union([done, open]), { id: 'WriteOutcome' }));
  const known = answered('What is known of the write. Nothing is sent to the upstream.', content, UNSTORED);
  return {
    parameters: parameters('header', KEY, true),
    responses: { 200: known, 404: shared('NoOutcome'), ...REFUSED },
  };
}

const session = model('Session', {
  authenticated: z.literal(true),
  expires_at: timestamp('when the cookie expires unless it is used', '2026-11-29T18:09:43.000Z'),
  account: text('the same for every session of a key', 'V-64kLo1mift-T1IVWdr9SMDAe4rIjpOFrOy0tkUS-A'),
});

const SET_COOKIE = { 'Set-Cookie': header('The session, for browsers only.') };

function look() {
  const either = documented(z.union([session, z.object({ authenticated: z.literal(false) })]), { id: 'SessionState' });
  return {
    responses: { 200: answered('Whether it is.', json(either, { authenticated: false }), UNSTORED), ...REFUSED },
  };
}

function end(query: Fields) {
  const dropped = { 'Clear-Site-Data': header('What the browser drops besides.', '"cache"') };
  const gone = {
    description: 'Signed out. The cookie is cleared.',
    headers: { ...UNSTORED, ...SET_COOKIE, ...dropped },
  };
  return { parameters: parameters('query', query), responses: { 204: gone, ...REFUSED } };
}

function begin(body: Schema) {
  const headers = { ...UNSTORED, ...SET_COOKIE };
  const begun = answered('Signed in. The key is in the cookie and nowhere else.', json(session), headers);
  return { request: { body: { required: true, content: json(body) } }, responses: { 201: begun, ...REFUSED } };
}

// About

const good = (description: string, content: Content, headers?: Headers) => ({
  responses: { 200: answered(description, content, headers) },
});

const problems = (all: readonly object[]) =>
  good('All codes, each with its title, status and description.', json(meanings, { problems: all }));

const problem = (one: { readonly code: string }) => ({
  description: "Codes of the upstream's own share one description.",
  parameters: parameters('path', { code: text('`code` of a problem', one.code) }),
  ...good('Its title, status and description.', json(meaning, one)),
});

/** The functions with which routes describe themselves. */
const doc = { good, json, passthrough, overview, batch, outcome, look, end, begin, problems, problem, UNSTORED };
type Doc = typeof doc;

// The whole

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

const CREDENTIALS = {
  Token: { type: 'apiKey', in: 'header', name: 'Authorization', description: '`Token <key>`, the word included.' },
  Bearer: { type: 'http', scheme: 'bearer', description: 'The key.' },
  Session: { type: 'apiKey', in: 'cookie', name: '__Host-Http-portico', description: 'Where `SESSIONS` is on.' },
} as const;

/** The OpenAPI 3.1 document of all that the gateway answers. */
export function documentOf(routes: readonly Description[], table: Table): object {
  const api = new OpenAPIHono();
  const registry = api.openAPIRegistry;
  referred.clear();
  for (const { details, ...head } of routes) {
    const { responses, ...rest } = details(doc);
    registry.registerPath({ ...head, ...rest, responses: { ...responses, default: shared('Problem') } });
  }
  const made = jsonSchemaOf(z.union([...referred])).$defs ?? {};
  const codes = [...new Set([...ERROR_CODES, ...table.refusals.keys()])]; // an enum has each once
  const schemas = { ...made, ProblemCode: { ...made['ProblemCode'], enum: codes } };
  for (const [name, scheme] of Object.entries(CREDENTIALS)) registry.registerComponent('securitySchemes', name, scheme);
  for (const [name, answer] of Object.entries(answersOf(table))) registry.registerComponent('responses', name, answer);
  for (const [name, schema] of Object.entries(schemas)) registry.registerComponent('schemas', name, schema);
  const tags = new Map([
    ['Composed', 'Several reads in one answer.'],
    ['Writes', 'What became of them.'],
    ['Session', 'Cookies for browsers: no script ever sees the key. Without `SESSIONS=true` these calls are 404.'],
    ...table.operations.map(({ tag }) => [tag.name, tag.description] as const),
    ['About', 'The gateway itself. No credential.'],
  ]);
  return api.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'Portico', version: '1', description: DESCRIPTION },
    servers: [{ url: '/' }],
    security: [{ Token: [] }, { Bearer: [] }, { Session: [] }],
    tags: Array.from(tags, ([name, description]) => ({ name, description })),
  });
}
