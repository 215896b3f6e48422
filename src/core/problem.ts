import { ERRORS, isErrorCode, type GatewayError } from './errors.ts';

export const PROBLEM_TYPE = 'application/problem+json';

/** `instance` is the path of the request. */
export interface ProblemContext {
  readonly instance: string;
  readonly requestId: string;
}

/** The body of every answer that is neither 2xx nor 304 (RFC 9457, `contract.md` section 4). */
export function problemOf(error: GatewayError, { instance, requestId }: ProblemContext) {
  const { retryAfter } = error;
  const { errors, outcome } = error.particulars;
  return {
    type: `/problems/${error.code}`,
    title: error.title,
    status: error.status,
    code: error.code,
    detail: detailOf(error),
    instance,
    request_id: requestId,
    // A write that may have happened must not be repeated.
    retryable: error.retryable && outcome === undefined,
    ...(retryAfter !== undefined && { retry_after: retryAfter }),
    ...(outcome && { outcome }),
    errors: errors ?? [],
  };
}

export type Problem = ReturnType<typeof problemOf>;

/** What happened, for people: the error's own words, else those of its code. */
export function detailOf(error: GatewayError): string {
  const known = isErrorCode(error.code) && ERRORS[error.code].status === error.status ? ERRORS[error.code] : undefined;
  return error.particulars.detail ?? known?.description ?? error.title;
}
