import { type ErrorCode, ERROR_CODES, ERRORS, GatewayError, isErrorCode, titleOf } from '../core/errors.ts';
import { jsonAnswer, reply } from '../middleware/reply.ts';
import { pageAt, type Route } from './route.ts';

const CACHED = { 'Cache-Control': 'public, max-age=3600' } as const;

/**
 * `GET /problems/<code>`: the page that a problem's `type` names. `GET /problems`: all of them.
 * @param upstreamCodes codes of the upstream's own that this instance has seen
 */
export const problemsRoutes = (upstreamCodes: ReadonlySet<string>): readonly Route[] => [
  pageAt('/problems', async () =>
    jsonAnswer(
      { problems: [...ownProblems(), ...Array.from(upstreamCodes, upstreamsOwn)] },
      { 'Cache-Control': 'no-cache' },
    ),
  ),
  {
    method: 'GET',
    path: '/problems/:code',
    name: '/problems/{code}',
    isRead: true,
    handle(c) {
      const code = c.req.param('code') ?? '';
      if (isErrorCode(code)) return reply(c, jsonAnswer(descriptionOf(code), CACHED));
      if (!upstreamCodes.has(code)) throw GatewayError.of('not_found', { detail: 'There is no such problem.' });
      return reply(c, jsonAnswer(upstreamsOwn(code), CACHED));
    },
  },
];

export const ownProblems = () => ERROR_CODES.map(descriptionOf);

export function descriptionOf(code: ErrorCode) {
  const { title, status, retryable, description } = ERRORS[code];
  return { type: `/problems/${code}`, title, status, code, detail: description, retryable };
}

const OF_UPSTREAM = 'A code of the upstream’s own, sent on as it came; the `detail` of the problem says what it means.';

const upstreamsOwn = (code: string) => {
  return { type: `/problems/${code}`, title: titleOf(code), code, detail: OF_UPSTREAM, retryable: false };
};
