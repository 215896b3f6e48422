import { type GatewayError, isOwn, type Problem, problemOf } from '../core/errors.ts';
import { isPlainObject, parsedJson } from '../core/json.ts';
import { hookFailed, logFault } from '../core/logger.ts';
import type { OnProblem, ToldProblem } from '../upstream/hooks.ts';
import type { HonoRequest } from './request.ts';

/** The problem that an error is to a client, as the hook `onProblem` has it. `instance`: of an item of a batch, its own path. */
export function problemFor(request: HonoRequest, error: GatewayError, instance = request.path): Problem {
  const { mount, requestId, tools } = request;
  tools.metrics.problem(isOwn(error) ? error.code : OF_UPSTREAM);
  const problem = problemOf(error, { instance, mount, requestId });
  const onProblem = tools.hooks?.onProblem;
  return onProblem ? { ...problem, ...changedBy(onProblem, problem, request), ...actedOn(problem) } : problem;
}

/** The upstream's own codes, in metrics. */
export const OF_UPSTREAM = '(upstream)';

/** Every other 5xx has another status. */
const FAULT = 500;

/** Logs a bug of ours, or of a function that we were given. One in which nothing was sent is a hook's, and has been logged. */
export function logIfFault({ requestId, trace, tools }: HonoRequest, error: GatewayError): void {
  const { section } = error.particulars;
  const what = section === undefined ? undefined : `the section \`${section}\` has failed`;
  if (error.status === FAULT && !error.isUnsent) logFault(tools.logger, { requestId, trace }, error.cause, what);
}

/** What a hook may change of it. On the rest clients and retries act. */
const WORDS = ['title', 'detail'];

/** What a hook may not change, also what this problem does not have. */
const actedOn = (problem: Problem) =>
  Object.fromEntries(Object.entries(problem).filter(([name]) => !WORDS.includes(name)));

/** What the hook has made of the problem; nothing, where it has failed. */
function changedBy(onProblem: OnProblem, problem: Problem, request: HonoRequest): object {
  const { operation } = request.route;
  try {
    return checked(onProblem(JSON.parse(JSON.stringify(problem)) as ToldProblem, { operation }));
  } catch (fault) {
    logFault(request.tools.logger, request, fault, hookFailed('onProblem'));
    return {};
  }
}

/** @throws TypeError for what is not a plain JSON object, or has words that are none */
function checked(told: unknown): object {
  if (told instanceof Promise) told.catch(() => undefined); // nobody else hears of its failure
  if (!isPlainObject(told)) throw new TypeError('`onProblem` gives no plain object');
  const json = parsedJson(JSON.stringify(told));
  if (!isPlainObject(json)) throw new TypeError('`onProblem` gives no JSON object');
  const odd = WORDS.some((name) => Object.hasOwn(json, name) && typeof json[name] !== 'string');
  if (odd) throw new TypeError('`onProblem` gives a `title` or `detail` that is no text');
  return json;
}
