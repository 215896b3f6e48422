import * as z from 'zod/mini';
import {
  CODE,
  ERROR_CODES,
  type ErrorKind,
  ERRORS,
  GatewayError,
  isErrorCode,
  isTransient,
  type Problem,
  titleOf,
} from '../core/errors.ts';
import { jsonAnswer, reply } from '../middleware/reply.ts';
import { documented, flag, integer, model, text } from '../upstream/fields.ts';
import type { Table } from '../upstream/table.ts';
import { about, pageAt, type Route, routeOf } from './route.ts';

const CACHED = { 'Cache-Control': 'public, max-age=3600' } as const;

/**
 * `GET /problems/<code>`: the page that a problem's `type` names. `GET /problems`: all of them.
 * @param upstreamCodes codes of the upstream's own that this instance has seen
 */
export const problemsRoutes = (upstreamCodes: ReadonlySet<string>, { refusals }: Table): readonly Route[] => [
  pageAt(list.path, async ({ mount }) => {
    const codes = new Set([...ERROR_CODES, ...refusals.keys(), ...upstreamCodes]);
    const problems = Array.from(codes, (code) => descriptionOf(code, refusals.get(code), mount));
    return jsonAnswer({ problems }, { 'Cache-Control': 'no-cache' });
  }),
  routeOf(one, {
    operation: undefined,
    handle(c) {
      const code = c.req.param('portico_code') ?? '';
      const isKnown = isErrorCode(code) || refusals.has(code) || upstreamCodes.has(code);
      if (!isKnown) throw GatewayError.of('not_found', { detail: 'There is no such problem.' });
      return reply(c, jsonAnswer(descriptionOf(code, refusals.get(code), c.get('porticoRequest').mount), CACHED));
    },
  }),
];

const OF_UPSTREAM = 'A code of the upstream’s own, sent on as it came; the `detail` of the problem says what it means.';

/** `mount`: the path that the app is mounted under. */
function descriptionOf(code: string, known: ErrorKind | undefined, mount = '') {
  const kind: Partial<ErrorKind> = known ?? (isErrorCode(code) ? ERRORS[code] : {});
  const { status, title = titleOf(code), description = OF_UPSTREAM } = kind;
  const retryable = status !== undefined && isTransient(code, status);
  return { type: `${mount}/problems/${code}`, title, status, code, detail: description, retryable };
}

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

const OTHERS = new RegExp(String.raw`${CODE.source}|^status_\d{3}$`);

/** `code` of a problem. */
const problemCode = documented(z.union([ownCode, z.string().check(z.maxLength(64), z.regex(OTHERS))]), {
  description:
    "the gateway's, or any other that the upstream has sent with a 4xx; `status_<status>` for a 4xx without a name",
  examples: ['upstream_unavailable'],
});

/** What `problemOf` makes, in the words of the document. */
export const problemSchema = model(
  'Problem',
  {
    type: text('path of a description of the code', '/problems/upstream_unavailable'),
    title: text('the same for every problem of the code', 'Upstream unavailable'),
    status: integer('its HTTP status', 503),
    code: problemCode,
    detail: text('what happened, for people', 'The upstream is not available right now.'),
    instance: text('path of the request', '/path/'),
    request_id: text('as in `X-Request-Id`', '01981f0e-7d2c-7000-8000-5f3b9c0d1e2f'),
    retryable: flag('whether the same request may succeed later', true),
    retry_after: z.optional(integer('seconds, as in `Retry-After`', 5)),
    outcome: documented(z.optional(z.literal('unknown')), {
      description: 'the write was sent and got no readable answer: it may have happened',
    }),
    section: z.optional(text('section of the overview that failed', 'profile')),
    errors: documented(z.array(errorItem), { description: 'details; often none' }),
  } satisfies Record<keyof Problem, z.core.$ZodType>,
  'RFC 9457.',
);

const ofDescription = { type: true, title: true, status: true, code: true, detail: true, retryable: true } as const;

const descriptionSchema = documented(z.partial(z.pick(problemSchema, ofDescription), { status: true }), {
  id: 'ProblemDescription',
  description: 'A code of the upstream’s own has no status here.',
});

const listSchema = model('ProblemList', { problems: z.array(descriptionSchema) });

const list = about('/problems', 'listProblems', 'All problem codes of the gateway', (doc) => {
  const content = doc.json(listSchema, { problems: ERROR_CODES.map((code) => descriptionOf(code, undefined)) });
  return doc.good('All codes, each with its title, status and description.', content);
});

const EXAMPLE = 'upstream_unavailable';
const codeSchema = documented(z.string(), { description: '`code` of a problem', examples: [EXAMPLE] });

const one = about('/problems/{code}', 'getProblem', 'What a problem code means', (doc) => ({
  description: "A code of the upstream's own is described once this instance has sent it, and is a 404 before.",
  parameters: doc.parameters('path', { code: codeSchema }),
  ...doc.good('Its title, status and description.', doc.json(descriptionSchema, descriptionOf(EXAMPLE, undefined))),
}));

export const problemsDescriptions = [list, one];
