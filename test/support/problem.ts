import { expect } from 'vitest';
import { leaksIn } from './secrets.ts';

/** What every client comes back with, that of bytes too. */
interface AnyAnswer {
  readonly status: number;
  readonly headers: Headers | Readonly<Record<string, string>>;
  readonly text?: string;
  readonly body?: string;
}

/** Of either kind, by name. */
const plainHeaders = ({ headers }: Pick<AnyAnswer, 'headers'>): Readonly<Record<string, string>> =>
  headers instanceof Headers ? Object.fromEntries(headers) : headers;

export interface Problem {
  readonly type: string;
  readonly code: string;
  readonly detail: string;
  readonly instance: string;
  readonly retryable: boolean;
  readonly retry_after?: number;
  readonly outcome?: string;
  readonly errors: readonly { readonly code: string; readonly message: string; readonly field: string | null }[];
}

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Headers that an answer may have; any other has come through from somewhere. */
const KNOWN_HEADERS = new Set(
  `age allow cache-control cache-status connection content-length content-type date etag keep-alive transfer-encoding
  vary retry-after www-authenticate server-timing x-request-id content-security-policy cross-origin-resource-policy
  referrer-policy strict-transport-security x-content-type-options x-frame-options ratelimit ratelimit-policy
  idempotency-replayed content-encoding x-accel-buffering`.split(/\s+/),
);

const textOf = ({ text, body }: AnyAnswer): string => text ?? body ?? '';

/** What browsers do with a document, with any answer that has a body of its own, and with any answer at all. */
const OF_PAGES = {
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': expect.stringContaining("default-src 'none'"),
};
const OF_WHOLE = { 'cross-origin-resource-policy': 'same-origin' };
const OF_ALL = { 'x-content-type-options': 'nosniff', 'x-request-id': expect.stringMatching(REQUEST_ID) };

/** Every answer, whatever its status, has the headers of its kind and no other than known ones. */
export function expectCommonHeaders(answer: AnyAnswer): void {
  const headers = plainHeaders(answer);
  expect(Object.keys(headers).filter((name) => !KNOWN_HEADERS.has(name))).toEqual([]);
  const isPage = headers['content-type']?.startsWith('text/html') === true;
  const expected = { ...OF_ALL, ...(answer.status !== 304 && OF_WHOLE), ...(isPage && OF_PAGES) };
  const names = Object.keys({ ...OF_PAGES, ...OF_WHOLE, ...OF_ALL });
  expect(Object.fromEntries(names.filter((name) => name in headers).map((name) => [name, headers[name]]))).toEqual(
    expected,
  );
}

interface Expected {
  readonly status: number;
  readonly code: string;
  /** Path of the request, where the parser got to see one. */
  readonly instance?: string;
  /** The path that the gateway is mounted under. */
  readonly mount?: string;
}

/** A whole problem as `contract.md` section 4 has it, and nothing secret in it. */
export function expectProblem(answer: AnyAnswer, { status, code, instance, mount = '' }: Expected): Problem {
  const [text, headers] = [textOf(answer), plainHeaders(answer)];
  expect({ status: answer.status, text }).toMatchObject({ status, text: expect.stringContaining(`"code":"${code}"`) });
  expectCommonHeaders(answer);
  expect(headers['content-type']).toBe('application/problem+json');
  expect(headers['cache-control']).toBe('no-store');
  const problem = JSON.parse(text) as Problem;
  expect(problem).toMatchObject({
    type: `${mount}/problems/${code}`,
    title: expect.stringMatching(/./),
    status,
    code,
    detail: expect.stringMatching(/./),
    instance: instance ?? expect.stringMatching(/^\//),
    request_id: headers['x-request-id'],
    retryable: expect.any(Boolean),
    errors: expect.any(Array),
  });
  const retryAfter = headers['retry-after'];
  expect(problem.retry_after).toBe(retryAfter === undefined ? undefined : Number(retryAfter));
  if (code === 'idempotency_in_progress') expect(problem).toMatchObject({ retryable: true, retry_after: 1 });
  if (code === 'outcome_unknown' || problem.outcome === 'unknown') {
    expect(problem).toMatchObject({ retryable: false, detail: expect.stringMatching(/the write may have happened/i) });
    expect(problem).not.toHaveProperty('retry_after');
  }
  expect(leaksIn(text + JSON.stringify(headers))).toEqual([]);
  return problem;
}

/** What Node's parser refuses: a status, and no more. */
export function expectBare(answer: AnyAnswer, status: number): void {
  expect({ status: answer.status, text: textOf(answer) }).toEqual({ status, text: '' });
  expect(plainHeaders(answer)).toEqual({ connection: 'close', 'content-length': '0' });
}
