import type { GatewayError } from '../core/errors.ts';
import { PROBLEM_TYPE, problemOf } from '../core/problem.ts';
import { type Answer, NO_STORE } from './answer.ts';

/** An error as its client gets it. */
export function problemAnswer(error: GatewayError, where: Parameters<typeof problemOf>[1]): Answer {
  const { retryAfter } = error;
  const { headers } = error.particulars;
  return {
    status: error.status,
    headers: {
      ...NO_STORE,
      'Content-Type': PROBLEM_TYPE,
      ...(retryAfter !== undefined && { 'Retry-After': String(retryAfter) }),
      ...headers,
    },
    body: JSON.stringify(problemOf(error, where)),
  };
}
