import type { Problem } from './openapi.ts';
import type { Code } from './types.ts';

export interface FieldError {
  readonly code: string;
  readonly message: string;
}

/** Everything that goes wrong with a call, but an abort: that rejects with the reason of its signal. */
export class PorticoProblem extends Error {
  override readonly name = 'PorticoProblem';
  /** As the gateway has sent it (RFC 9457), or made here where no problem came. */
  readonly problem: Readonly<Problem>;
  readonly code: Code;
  /** Of the answer; 0 without one. */
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** Seconds. */
  readonly retryAfter: number | undefined;
  /** `unknown`: this write, or an equal one before it, was sent, and nobody knows whether it happened. */
  readonly outcome: 'unknown' | undefined;
  /** The section of an overview that has failed. */
  readonly section: string | undefined;
  /** For those who look into logs; empty without an answer. */
  readonly requestId: string;
  /** Errors by field, a dotted path; those of the whole are under the empty name. */
  readonly errors: Readonly<Record<string, readonly FieldError[]>>;

  constructor(problem: Problem, cause?: unknown) {
    super(problem.detail, cause === undefined ? undefined : { cause });
    this.problem = problem;
    this.code = problem.code;
    this.status = problem.status;
    this.title = problem.title;
    this.detail = problem.detail;
    this.retryable = problem.retryable;
    this.retryAfter = problem.retry_after;
    this.outcome = problem.code === 'outcome_unknown' ? 'unknown' : problem.outcome;
    this.section = problem.section;
    this.requestId = problem.request_id;
    this.errors = byField(problem.errors);
  }
}

function byField(errors: Problem['errors']): Record<string, FieldError[]> {
  const fields = Object.create(null) as Record<string, FieldError[]>; // any name may be a field's
  for (const { field, ...error } of errors) (fields[field ?? ''] ??= []).push(error);
  return fields;
}
