import type { GatewayError } from './errors.ts';

export const PROBLEM_TYPE = 'application/problem+json';

/** `instance` is the path of the request, `mount` the one that the app is mounted under. */
export interface ProblemContext {
  readonly instance: string;
  readonly mount: string;
  readonly requestId: string;
}

/** The body of every answer that is neither 2xx nor 304 (RFC 9457, `contract.md` section 4). */
export function problemOf(error: GatewayError, { instance, mount, requestId }: ProblemContext) {
  const { code, status, kind, detail, retryAfter } = error;
  const { errors = [], outcome, section } = error.particulars;
  return {
    type: `${mount}/problems/${code}`,
    title: kind.title,
    status,
    code,
    detail,
    instance,
    request_id: requestId,
    // A write that may have happened must not be repeated.
    retryable: kind.retryable && outcome === undefined,
    ...(retryAfter !== undefined && { retry_after: retryAfter }),
    ...(outcome && { outcome }),
    ...(section !== undefined && { section }),
    errors,
  };
}

export type Problem = ReturnType<typeof problemOf>;
