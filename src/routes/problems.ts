import { ERRORS, GatewayError, isErrorCode } from '../core/errors.ts';
import { jsonAnswer } from '../http/answer.ts';
import type { Route } from './route.ts';

const CACHED = { 'Cache-Control': 'public, max-age=3600' } as const;

/** `GET /problems/<code>`: what a problem's `type` leads to. */
export const problemsRoute: Route = {
  method: 'GET',
  path: '/problems/:code',
  name: '/problems/{code}',
  handler({ context }) {
    const code = context.req.param('code') ?? '';
    const unnamed = /^status_(4\d\d)$/.exec(code)?.[1];
    if (unnamed !== undefined) return jsonAnswer(unnamedStatus(code, Number(unnamed)), CACHED);
    if (!isErrorCode(code)) throw GatewayError.of('not_found', { detail: 'There is no such problem.' });
    const { title, status, retryable, description } = ERRORS[code];
    return jsonAnswer({ type: `/problems/${code}`, title, status, code, detail: description, retryable }, CACHED);
  },
};

function unnamedStatus(code: string, status: number) {
  const title = `Upstream status ${status}`;
  return {
    type: `/problems/${code}`,
    title,
    status,
    code,
    detail: 'The upstream refused with this status.',
    retryable: false,
  };
}
