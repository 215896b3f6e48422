import type { OpenAPIHono } from '@hono/zod-openapi';
import * as z from 'zod';
import { CODE, type ErrorCode, ERROR_CODES, GatewayError } from '../../core/errors.ts';
import { type Problem, PROBLEM_TYPE, problemOf } from '../../core/problem.ts';
import { flag, integer, text } from '../../upstream/fields.ts';
import { LIMITED } from './headers.ts';
import { referenceTo } from './schemas.ts';

const LIST = '/api/v2/payment/transaction/';
const REQUEST_ID = '01981f0e-7d2c-7000-8000-5f3b9c0d1e2f';
const BAD_PAGE = { code: 'invalid_format', message: 'expected an integer of 1 or more', field: 'page' };

const errorItem = z.object({
  code: text('what is wrong', BAD_PAGE.code),
  message: text('the same for people', BAD_PAGE.message),
  field: z.nullable(text('dotted path; null: the whole', BAD_PAGE.field)),
});

/** A name of its own: TypeScript takes `'a' | string` for `string`, so that in a union the codes would be lost. */
const ownCode = z.enum(ERROR_CODES).meta({
  id: 'ProblemCode',
  description: 'Codes that the gateway describes at `/problems/{code}`; a later version may have more.',
});

const OTHERS = new RegExp(String.raw`${CODE.source}|^status_\d{3}$`);

/** `code` of a problem. */
export const problemCode = z.union([ownCode, z.string().max(64).regex(OTHERS)]).meta({
  description:
    "the gateway's, or any other that the upstream has sent with a 4xx; `status_<status>` for a 4xx without a name",
  examples: ['not_found'],
});

/** `core/problem.ts` in the words of the document. */
export const problemSchema = z
  .object({
    type: text('path of a description of the code', '/problems/not_found'),
    title: text('the same for every problem of the code', 'Not found'),
    status: integer('as in the status line', 404),
    code: problemCode,
    detail: text('what happened, for people', 'The upstream has no such thing.'),
    instance: text('path of the request', `${LIST}1201/`),
    request_id: text('as in `X-Request-Id`', REQUEST_ID),
    retryable: flag('whether the same request may succeed later', false),
    retry_after: z.optional(integer('seconds, as in `Retry-After`', 12)),
    outcome: z
      .literal('unknown')
      .optional()
      .meta({ description: 'the write was sent and got no readable answer: it may have happened' }),
    section: z.optional(text('section of the overview that failed', 'subscription')),
    errors: z.array(errorItem).meta({ description: 'details; often none' }),
  } satisfies Record<keyof Problem, z.core.$ZodType>)
  .meta({ id: 'Problem', description: 'RFC 9457.' });

const PARTICULARS: Partial<Record<ErrorCode, Parameters<typeof GatewayError.of>[1]>> = {
  validation_failed: { errors: [BAD_PAGE] },
  rate_limited: { retryAfter: 12 },
};

/** A problem as a client gets it. */
export function problemExample(code: ErrorCode, instance: string): Problem {
  return problemOf(GatewayError.of(code, PARTICULARS[code]), { instance, mount: '', requestId: REQUEST_ID });
}

/** `paths`: of the requests that get the problems. */
function contentOf(paths: Partial<Record<ErrorCode, string>>) {
  const all = Object.entries(paths) as [ErrorCode, string][];
  const examples = Object.fromEntries(all.map(([code, path]) => [code, { value: problemExample(code, path) }]));
  return { [PROBLEM_TYPE]: { schema: referenceTo(problemSchema), examples } };
}

const RETRY_AFTER = { description: 'Seconds; where waiting helps.', schema: { type: 'integer' }, example: 12 } as const;
const CHALLENGE = { description: 'The scheme to use.', schema: { type: 'string' }, example: 'Token' } as const;

const PURCHASE = '/api/v2/subscription/checkout/purchase/';

/** Answers that many calls share, by the names of their components. */
const COMPONENTS = {
  RateLimited: {
    description: 'Too many requests, or the upstream wants fewer.',
    headers: { 'Retry-After': RETRY_AFTER, ...LIMITED },
    content: contentOf({ rate_limited: LIST }),
  },
  NotTwice: {
    description: 'The first request with this key is under way, or nobody knows how it ended; or the upstream refused.',
    content: contentOf({ idempotency_in_progress: PURCHASE, outcome_unknown: PURCHASE, conflict: PURCHASE }),
  },
  KeyReused: {
    description: 'The key was used with another body; or the upstream refused.',
    content: contentOf({ idempotency_key_reused: PURCHASE, unprocessable_content: PURCHASE }),
  },
  Problem: {
    // Some generators take a default answer whose description has the word "success" for a good one too.
    description: 'Any other problem (RFC 9457). `/problems/{code}` describes each code.',
    headers: { 'Retry-After': RETRY_AFTER },
    content: contentOf({
      validation_failed: LIST,
      not_found: `${LIST}1201/`,
      rate_limited: LIST,
      upstream_timeout: LIST,
    }),
  },
  Unauthenticated: {
    description: 'No usable credential, or the upstream refused it.',
    headers: { 'WWW-Authenticate': CHALLENGE },
    content: contentOf({ unauthenticated: LIST }),
  },
};

export function registerProblems(registry: OpenAPIHono['openAPIRegistry']): void {
  for (const [name, answer] of Object.entries(COMPONENTS)) registry.registerComponent('responses', name, answer);
}

const answer = (name: keyof typeof COMPONENTS) => ({ $ref: `#/components/responses/${name}` });

/** What any call may answer instead of its own. */
export const problemAnswers = { default: answer('Problem') };

/** What any call whose requests are counted may answer. */
export const limitedAnswer = { 429: answer('RateLimited') };

/** What any call that takes a credential may answer. */
export const refusedAnswer = { 401: answer('Unauthenticated'), ...limitedAnswer };

/** What a write with an idempotency key may answer. */
export const idempotencyAnswers = { 409: answer('NotTwice'), 422: answer('KeyReused') };
