import {
  ERROR_CODES,
  type ErrorKind,
  ERRORS,
  GatewayError,
  isCode,
  isErrorCode,
  isTransient,
  titleOf,
} from '../core/errors.ts';
import { jsonAnswer } from '../http/reply.ts';
import { routeParam } from '../http/request.ts';
import type { Table } from '../upstream/table.ts';
import { about, pageAt, type Route, routeOf } from './route.ts';

const CODE = routeParam('code');

const CACHED = { 'Cache-Control': 'public, max-age=3600' } as const;

/** A 4xx of the upstream's for which there is no name. */
const UNNAMED = /^status_4\d\d$/;

/** `GET /problems/<code>`: the page that a problem's `type` names. `GET /problems`: all codes that have a text of their own. */
export const problemsRoutes = ({ refusals }: Table): readonly Route[] => [
  pageAt('/problems', async ({ mount }) => {
    const codes = new Set([...ERROR_CODES, ...refusals.keys()]);
    const problems = Array.from(codes, (code) => descriptionOf(code, mount, refusals.get(code)));
    return jsonAnswer({ problems }, { 'Cache-Control': 'no-cache' });
  }),
  routeOf(one, {
    operation: undefined,
    handle(request) {
      const { mount } = request;
      const code = request.param(CODE);
      const isKnown = refusals.has(code) || isCode(code) || UNNAMED.test(code);
      if (!isKnown) throw GatewayError.of('not_found', { detail: 'There is no such problem.' });
      return jsonAnswer(descriptionOf(code, mount, refusals.get(code)), CACHED);
    },
  }),
];

const OF_UPSTREAM = 'A code of the upstream’s own, sent on as it came; the `detail` of the problem says what it means.';

/** `mount`: the path that the app is mounted under. */
function descriptionOf(code: string, mount = '', known: Partial<ErrorKind> = isErrorCode(code) ? ERRORS[code] : {}) {
  const { status, title = titleOf(code), description = OF_UPSTREAM } = known;
  const retryable = status !== undefined && isTransient(code, status);
  return { type: `${mount}/problems/${code}`, title, status, code, detail: description, retryable };
}

const one = about('/problems/{code}', 'getProblem', 'What a problem code means', (doc) =>
  doc.problem(descriptionOf('upstream_unavailable')),
);

export const problemsDescriptions = [
  about('/problems', 'listProblems', 'All problem codes of the gateway', (doc) =>
    doc.problems(ERROR_CODES.map((code) => descriptionOf(code))),
  ),
  one,
];
