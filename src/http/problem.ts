import { type GatewayError, isOwn, type Problem, problemOf } from '../core/errors.ts';
import { isPlainObject, parsedJson } from '../core/json.ts';
import { hookFailed, logFault } from '../core/logger.ts';
import type { OnProblem, ToldProblem } from '../upstream/hooks.ts';
import type { HonoRequest } from './request.ts';

/** The problem that a client gets for an error, after the hook `onProblem`. `instance`: the path; an item of a batch has its own. */
export function problemFor(request: HonoRequest, error: GatewayError, instance = request.path): Problem {
  const { mount, requestId, tools } = request;
  tools.metrics.problem(isOwn(error) ? error.code : OF_UPSTREAM);
  const problem = problemOf(error, { instance, mount, requestId });
  const onProblem = tools.hooks?.onProblem;
  return onProblem ? { ...problem, ...changedBy(onProblem, problem, request), ...actedOn(problem) } : problem;
}

/** The label for all of the upstream's own codes in metrics. */
export const OF_UPSTREAM = '(upstream)';

/** The status of `internal_error`, and of no other 5xx. */
const FAULT = 500;

/** Logs a bug, of ours or of an overview's function. A hook's, after which nothing was sent, has been logged already. */
export function logIfFault({ requestId, trace, tools }: HonoRequest, error: GatewayError): void {
  const { section } = error.particulars;
  const what = section === undefined ? undefined : `the section \`${section}\` has failed`;
  if (error.status === FAULT && !error.isUnsent) logFault(tools.logger, { requestId, trace }, error.cause, what);
}

/** The members that the hook may change. Clients and retries act on the others. */
const WORDS = ['title', 'detail'];

/** The members that the hook may not change; an undefined one takes away the hook's. */
const actedOn = (problem: Problem) =>
  Object.fromEntries(Object.entries(problem).filter(([name]) => !WORDS.includes(name)));

/** What the hook returns for the problem; no members if it failed. */
function changedBy(onProblem: OnProblem, problem: Problem, request: HonoRequest): object {
  const { operation } = request.route;
  try {
    return checked(onProblem(JSON.parse(JSON.stringify(problem)) as ToldProblem, { operation }));
  } catch (fault) {
    logFault(request.tools.logger, request, fault, hookFailed('onProblem'));
    return {};
  }
}

/** Checks what the hook returned. @throws TypeError unless it is a plain JSON object whose `title` and `detail` are texts */
function checked(told: unknown): object {
  if (told instanceof Promise) told.catch(() => undefined); // nobody else hears of its failure
  if (!isPlainObject(told)) throw new TypeError('`onProblem` gives no plain object');
  const json = parsedJson(JSON.stringify(told));
  if (!isPlainObject(json)) throw new TypeError('`onProblem` gives no JSON object');
  const odd = WORDS.some((name) => Object.hasOwn(json, name) && typeof json[name] !== 'string');
  if (odd) throw new TypeError('`onProblem` gives a `title` or `detail` that is no text');
  return json;
}
