import { type ErrorCode, ERROR_CODES, ERRORS, GatewayError, isErrorCode, titleOf } from '../core/errors.ts';
import { jsonAnswer, reply } from '../middleware/reply.ts';
import { pageAt, type Route } from './route.ts';

const CACHED = { 'Cache-Control': 'public, max-age=3600' } as const;

/**
 * `GET /problems/<code>`: the page that a problem's `type` names. `GET /problems`: all of them.
 * @param upstreamCodes codes of the upstream's own that this instance has seen
 */
export const problemsRoutes = (upstreamCodes: ReadonlySet<string>): readonly Route[] => [
  pageAt('/problems', async ({ mount }) =>
    jsonAnswer(
      { problems: [...ownProblems(mount), ...Array.from(upstreamCodes, (code) => upstreamsOwn(code, mount))] },
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
      const { mount } = c.get('request');
      if (isErrorCode(code)) return reply(c, jsonAnswer(descriptionOf(code, mount), CACHED));
      if (!upstreamCodes.has(code)) throw GatewayError.of('not_found', { detail: 'There is no such problem.' });
      return reply(c, jsonAnswer(upstreamsOwn(code, mount), CACHED));
    },
  },
];

/** `mount`: the path that the app is mounted under. */
export const ownProblems = (mount = '') => ERROR_CODES.map((code) => descriptionOf(code, mount));

export function descriptionOf(code: ErrorCode, mount = '') {
  const { title, status, retryable, description } = ERRORS[code];
  return { type: `${mount}/problems/${code}`, title, status, code, detail: description, retryable };
}

const OF_UPSTREAM = 'A code of the upstream’s own, sent on as it came; the `detail` of the problem says what it means.';

const upstreamsOwn = (code: string, mount: string) => {
  return { type: `${mount}/problems/${code}`, title: titleOf(code), code, detail: OF_UPSTREAM, retryable: false };
};
