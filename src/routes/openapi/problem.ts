import type { OpenAPIHono } from '@hono/zod-openapi';
import * as z from 'zod';
import { type ErrorCode, GatewayError } from '../../core/errors.ts';
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

/** `core/problem.ts` in the words of the document. */
export const problemSchema = z
  .object({
    type: text('path of a description of the code', '/problems/not_found'),
    title: text('the same for every problem of the code', 'Not found'),
    status: integer('as in the status line', 404),
    code: text("the gateway's, or the upstream's own where it has one", 'not_found'),
    detail: text('what happened, for people', 'The upstream has no such thing.'),
    instance: text('path of the request', `${LIST}31/`),
    request_id: text('as in `X-Request-Id`', REQUEST_ID),
    retryable: flag('whether the same request may succeed later', false),
    retry_after: z.optional(integer('seconds, as in `Retry-After`', 12)),
    outcome: z.literal('unknown').optional().meta({ description: 'a write that went out and got no readable answer' }),
    errors: z.array(errorItem).meta({ description: 'details; often none' }),
  } satisfies Record<keyof Problem, z.core.$ZodType>)
  .meta({ id: 'Problem', description: 'RFC 9457.' });

interface Case {
  readonly code: ErrorCode;
  readonly instance: string;
  readonly particulars?: Parameters<typeof GatewayError.of>[1];
}

/** A problem as a client gets it. */
export function problemExample({ code, instance, particulars }: Case): Problem {
  return problemOf(GatewayError.of(code, particulars), { instance, requestId: REQUEST_ID });
}

const CASES: readonly Case[] = [
  { code: 'validation_failed', instance: LIST, particulars: { errors: [BAD_PAGE] } },
  { code: 'not_found', instance: `${LIST}31/` },
  { code: 'rate_limited', instance: LIST, particulars: { retryAfter: 12 } },
  { code: 'upstream_timeout', instance: LIST },
];

const content = (cases: readonly Case[]) => ({
  [PROBLEM_TYPE]: {
    schema: referenceTo(problemSchema),
    examples: Object.fromEntries(cases.map((one) => [one.code, { value: problemExample(one) }])),
  },
});

const RETRY_AFTER = { description: 'Seconds; where waiting helps.', schema: { type: 'integer' }, example: 12 } as const;
const CHALLENGE = { description: 'The scheme to use.', schema: { type: 'string' }, example: 'Token' } as const;

/** What any call may answer instead of its own. */
export const problemAnswers = { default: { $ref: '#/components/responses/Problem' } };

/** What any call whose requests are counted may answer. */
export const limitedAnswer = { 429: { $ref: '#/components/responses/RateLimited' } };

/** What any call that takes a credential may answer. */
export const refusedAnswer = { 401: { $ref: '#/components/responses/Unauthenticated' }, ...limitedAnswer };

/** What a write with an idempotency key may answer. */
export const idempotencyAnswers = {
  409: { $ref: '#/components/responses/NotTwice' },
  422: { $ref: '#/components/responses/KeyReused' },
};

const PURCHASE = '/api/v2/subscription/checkout/purchase/';

export function registerProblems(registry: OpenAPIHono['openAPIRegistry']): void {
  registry.registerComponent('responses', 'RateLimited', {
    description: 'Too many requests, or the upstream wants fewer.',
    headers: { 'Retry-After': RETRY_AFTER, ...LIMITED },
    content: content([{ code: 'rate_limited', instance: LIST, particulars: { retryAfter: 12 } }]),
  });
  registry.registerComponent('responses', 'NotTwice', {
    description: 'The first request with this key is under way, or nobody knows how it ended; or the upstream refused.',
    content: content([
      { code: 'idempotency_in_progress', instance: PURCHASE },
      { code: 'outcome_unknown', instance: PURCHASE },
      { code: 'conflict', instance: PURCHASE },
    ]),
  });
  registry.registerComponent('responses', 'KeyReused', {
    description: 'The key was used with another body; or the upstream refused.',
    content: content([
      { code: 'idempotency_key_reused', instance: PURCHASE },
      { code: 'unprocessable_content', instance: PURCHASE },
    ]),
  });
  registry.registerComponent('responses', 'Problem', {
    description: 'Anything but success (RFC 9457). `/problems/{code}` describes each code.',
    headers: { 'Retry-After': RETRY_AFTER },
    content: content(CASES),
  });
  registry.registerComponent('responses', 'Unauthenticated', {
    description: 'No usable credential, or the upstream refused it.',
    headers: { 'WWW-Authenticate': CHALLENGE },
    content: content([{ code: 'unauthenticated', instance: LIST }]),
  });
}
