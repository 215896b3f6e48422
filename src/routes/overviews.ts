import { accepts } from 'hono/accepts';
import { whenDone } from '../core/runtime.ts';
import { allOf, compose } from '../gateway/compose.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { type Overview, parameterOf } from '../gateway/overview.ts';
import { planOf, readsOf } from '../gateway/plan.ts';
import { preferencesOf } from '../http/prefer.ts';
import type { HonoRequest } from '../http/request.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { Description } from './openapi.ts';
import { linesAnswer } from './lines.ts';
import { overviewAnswer, validated } from './overview-answer.ts';
import { type Route, routeOf } from './route.ts';
import { waitSecondsOf, answerOnChange } from './waited.ts';

export const overviewRoutes = (gateway: Gateway): Route[] =>
  gateway.deps.overviews.map((overview) => ({
    ...routeOf(overviewDescription(overview), { handle: answering(overview, gateway) }),
    path: patternOf(overview),
    mayBeCompressed: !Object.values(overview.sections).some(({ read }) => read.secrets),
  }));

export const overviewDescription = (overview: Overview): Description => ({
  method: 'get',
  path: overview.path.replace(/:(\w+)/, '{$1}'),
  operationId: overview.id,
  tags: ['Composed'],
  summary: overview.summary,
  details: (doc) => doc.overview(overview),
});

/** Hono's pattern. A path whose parameter does not have the form of an id is unknown. */
function patternOf(overview: Overview): string {
  const parameter = parameterOf(overview);
  return parameter ? overview.path.replace(`:${parameter.name}`, `:portico_id{${parameter.form}}`) : overview.path;
}

function answering(overview: Overview, gateway: Gateway): Route['handle'] {
  const { compositionOf, hasParameter } = planOf(overview, gateway.rows);
  const { digest } = gateway.deps;
  return (request) => {
    const { isStrict, changesOnly } = preferencesOf(request.header('prefer'));
    const composition = compositionOf(request.query, isStrict, hasParameter ? request.id : undefined);
    const form = { composition, changesOnly, digest };
    const open = () => gateway.admit(request, (copyOf) => readsOf(composition.reads, copyOf));
    const resultsBy = (snapshot: Snapshot) => {
      if (composition.error) throw composition.error;
      return compose(gateway, request, snapshot, composition).map((result) => {
        const made = whenDone(result, (done) => validated(form, done));
        if (made instanceof Promise) made.catch(() => undefined); // an answer in lines looks at it later
        return made;
      });
    };
    if (wantsLines(request)) return whenDone(open(), (snapshot) => linesAnswer(request, form, resultsBy(snapshot)));
    const answer = (snapshot: Snapshot) =>
      whenDone(allOf(resultsBy(snapshot)), (results) => overviewAnswer(request, form, results));
    const seconds = waitSecondsOf(request);
    return seconds === 0 ? whenDone(open(), answer) : answerOnChange(request, gateway, { open, answer }, seconds);
  };
}

/** Whether the client asks for NDJSON. Most clients accept anything, or JSON. */
function wantsLines(request: HonoRequest): boolean {
  const accept = request.header('accept');
  if (accept === undefined || accept === '*/*' || accept === 'application/json' || !request.hono) return false;
  const supports = ['application/json', 'application/x-ndjson'];
  const options = { header: 'Accept', supports, default: 'application/json' } as const;
  return accepts(request.hono, options) === 'application/x-ndjson';
}
