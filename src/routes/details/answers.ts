import { type ErrorCode, GatewayError, type Problem, PROBLEM_TYPE, problemOf } from '../../core/errors.ts';
import type { Table } from '../../upstream/table.ts';
import { SCHEMAS } from './schemas.ts';

type HeaderTexts = Record<string, { description: string; schema: { type: 'string' | 'integer' }; example: unknown }>;

export const header = (description: string, example: string) =>
  ({ description, schema: { type: 'string' }, example }) as const;

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
  outcome_unknown: { outcome: 'unknown' },
  validation_failed: { errors: [BAD_PAGE] },
  rate_limited: { retryAfter: 12 },
};

const REQUEST_ID = '01981f0e-7d2c-7000-8000-5f3b9c0d1e2f';

/** A problem as a client gets it. `instance`: the path of its request. */
export const problemExample = (code: ErrorCode, instance: string): Problem =>
  problemOf(GatewayError.of(code, PARTICULARS[code]), { instance, mount: '', requestId: REQUEST_ID });

/** An answer with any of some problems, as a request of this path gets them. */
function anyOf(description: string, path: string, codes: readonly ErrorCode[], headers?: HeaderTexts) {
  const examples = Object.fromEntries(codes.map((code) => [code, { value: problemExample(code, path) }]));
  const content = { [PROBLEM_TYPE]: { schema: { $ref: `${SCHEMAS}Problem` }, examples } };
  return { description, ...(headers && { headers }), content };
}

/** Answers that many calls share, by the names of their components. */
export function answersOf({ operations }: Table) {
  const list = operations.find(({ paged }) => paged)?.path ?? '/';
  const write = operations.find(({ exclusive }) => exclusive)?.path ?? '/';
  return {
    RateLimited: anyOf('Too many requests, or the upstream wants fewer.', list, ['rate_limited'], LIMIT),
    NotTwice: anyOf(
      'The first request with this key is under way, or nobody knows how it ended; or the upstream refused.',
      write,
      ['idempotency_in_progress', 'outcome_unknown', 'conflict'],
    ),
    NoOutcome: anyOf('No write with this key is known.', '/bff/v1/outcome', ['outcome_not_found']),
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

export const shared = (name: keyof ReturnType<typeof answersOf>) => ({ $ref: `#/components/responses/${name}` });

export const LIMITED = { 429: shared('RateLimited') };
