import { ERRORS, GatewayError, isCode, isErrorCode, titleOf } from '../core/errors.ts';
import { jsonAnswer } from '../http/answer.ts';
import type { Route } from './route.ts';

const CACHED = { 'Cache-Control': 'public, max-age=3600' } as const;

/** `GET /problems/<code>`: what a problem's `type` leads to. `GET /problems`: all codes of ours. */
export const problemsRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/problems',
    name: '/problems',
    handler: () => jsonAnswer({ problems: Object.keys(ERRORS).map(descriptionOf) }, CACHED),
  },
  {
    method: 'GET',
    path: '/problems/:code',
    name: '/problems/{code}',
    handler({ context }) {
      const described = descriptionOf(context.req.param('code') ?? '');
      if (!described) throw GatewayError.of('not_found', { detail: 'There is no such problem.' });
      return jsonAnswer(described, CACHED);
    },
  },
];

/** Nothing for what no problem can have as its code. Of a code of the upstream's own no more is known than its name. */
export function descriptionOf(code: string) {
  const type = `/problems/${code}`;
  if (isErrorCode(code)) {
    const { title, status, retryable, description } = ERRORS[code];
    return { type, title, status, code, detail: description, retryable };
  }
  const unnamed = /^status_(4\d\d)$/.exec(code)?.[1];
  if (unnamed === undefined && !isCode(code)) return undefined;
  const title = unnamed === undefined ? titleOf(code) : `Upstream status ${unnamed}`;
  const detail = unnamed === undefined ? OF_UPSTREAM : 'The upstream refused with this status.';
  return { type, title, ...(unnamed !== undefined && { status: Number(unnamed) }), code, detail, retryable: false };
}

const OF_UPSTREAM = 'A code of the upstream’s own, sent on as it came; the `detail` of the problem says what it means.';
