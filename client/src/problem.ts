import type { Problem } from './openapi.ts';
import type { Wire } from './request.ts';
import type { Code } from './types.ts';

export interface FieldError {
  readonly code: string;
  readonly message: string;
}

/** Everything that goes wrong with a call, but an abort: that rejects with the reason of its signal. */
export class PorticoProblem extends Error {
  override readonly name = 'PorticoProblem';
  /** As the gateway has sent it (RFC 9457), or made here where no problem came. */
  declare readonly problem: Readonly<Problem>;
  declare readonly code: Code;
  /** Of the answer; 0 without one. */
  declare readonly status: number;
  declare readonly title: string;
  declare readonly detail: string;
  /** Whether the same call may succeed later, and in how many seconds. */
  declare readonly retryable: boolean;
  declare readonly retryAfter: number | undefined;
  /** `unknown`: this write, or an equal one before it, was sent, and nobody knows whether it happened. */
  declare readonly outcome: 'unknown' | undefined;
  /** Of the write, if it had one: `outcomeOf` asks the gateway for it. */
  declare readonly idempotencyKey: string | undefined;
  /** The section of an overview that has failed. */
  declare readonly section: string | undefined;
  /** For those who look into logs; empty without an answer. */
  declare readonly requestId: string;
  /** Errors by field, a dotted path; those of the whole are under the empty name. */
  declare readonly errors: Readonly<Record<string, readonly FieldError[]>>;

  constructor(problem: Problem, cause?: unknown) {
    super(problem.detail, { cause });
    const errors = Object.create(null) as Record<string, FieldError[]>; // any name may be a field's
    for (const { field, ...error } of problem.errors) (errors[field ?? ''] ??= []).push(error);
    const outcome = problem.code === 'outcome_unknown' ? 'unknown' : problem.outcome;
    const { retry_after: retryAfter, request_id: requestId } = problem;
    Object.assign(this, problem, { problem, outcome, retryAfter, requestId, errors });
  }
}

const TITLES = {
  connection_failed: 'No answer from the gateway',
  unexpected_answer: 'Not an answer from the gateway',
  account_changed: 'The account has changed',
};

/** For a call without an answer of the gateway's that can be read. A write may have happened, whatever else has answered. */
export function problemWithout(
  code: keyof typeof TITLES,
  { isRead, path }: Wire,
  cause?: unknown,
  response?: Response,
): PorticoProblem {
  const { status = 0, headers } = response ?? {};
  const seconds = Number(headers?.get('Retry-After') ?? NaN);
  const problem: Problem = {
    type: 'about:blank',
    title: TITLES[code],
    status,
    code,
    detail: `${TITLES[code]}.`,
    instance: path,
    request_id: '',
    retryable: isRead && (status < 400 || status === 429 || status >= 500),
    ...(seconds >= 0 && { retry_after: seconds }),
    ...(!isRead && { outcome: 'unknown' }),
    errors: [],
  };
  return new PorticoProblem(problem, cause);
}

/** What an answer says that is not good. Only the gateway's own problems count: a proxy in between knows nothing of the call. */
export async function problemIn(response: Response, wire: Wire): Promise<PorticoProblem> {
  const text = await response.text();
  try {
    const problem = JSON.parse(text) as Problem;
    const isOurs =
      /^application\/problem\+json *(;|$)/i.test(response.headers.get('Content-Type') ?? '') &&
      problem.status === response.status &&
      problem.type.endsWith(`/problems/${problem.code}`) &&
      typeof problem.retryable === 'boolean';
    if (isOurs) return new PorticoProblem(problem);
  } catch {
    // no JSON, or not the problem's members
  }
  return problemWithout('unexpected_answer', wire, text, response);
}
