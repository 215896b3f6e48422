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
  declare readonly problem: Readonly<Problem>;
  declare readonly code: Code;
  /** Of the answer; 0 without one. */
  declare readonly status: number;
  declare readonly title: string;
  declare readonly detail: string;
  /** Whether the same call may succeed later. */
  declare readonly retryable: boolean;
  /** Seconds. */
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
    Object.assign(this, problem, {
      problem,
      section: problem.section,
      retryAfter: problem.retry_after,
      outcome: problem.code === 'outcome_unknown' ? 'unknown' : problem.outcome,
      requestId: problem.request_id,
      errors: byField(problem.errors),
    });
  }
}

function byField(errors: Problem['errors']): Record<string, FieldError[]> {
  const fields = Object.create(null) as Record<string, FieldError[]>; // any name may be a field's
  for (const { field, ...error } of errors) (fields[field ?? ''] ??= []).push(error);
  return fields;
}
