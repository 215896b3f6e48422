import { accepts } from 'hono/accepts';
import type { Context } from 'hono';
import type { Reader } from '../cache/reader.ts';
import { whenDone } from '../core/runtime.ts';
import { allOf, compose } from '../gateway/compose.ts';
import type { GatewayDeps } from '../gateway/deps.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { type Overview, parameterOf } from '../gateway/overview.ts';
import { planOf, readsOf } from '../gateway/plan.ts';
import { preferencesOf } from '../http/prefer.ts';
import { reply } from '../http/reply.ts';
import type { Env } from '../http/request.ts';
import type { Description } from './openapi.ts';
import { linesAnswer } from './lines.ts';
import { overviewAnswer, validated } from './overview-answer.ts';
import { type Route, routeOf } from './route.ts';
import { secondsFor, waited } from './waited.ts';

type Runtime = GatewayDeps;

export const overviewRoutes = (gateway: Gateway, runtime: Runtime): Route[] =>
  runtime.overviews.map((overview) => ({
    ...routeOf(overviewDescription(overview), { handle: answering(overview, gateway, runtime) }),
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

/** Hono's. What its parameter cannot be is an unknown path. */
function patternOf(overview: Overview): string {
  const parameter = parameterOf(overview);
  return parameter ? overview.path.replace(`:${parameter.name}`, `:portico_id{${parameter.form}}`) : overview.path;
}

function answering(overview: Overview, gateway: Gateway, { clock, digest }: Runtime): Route['handle'] {
  const { compositionOf, hasParameter } = planOf(overview);
  return (c) => {
    const request = c.get('porticoRequest');
    const { isStrict, changesOnly } = preferencesOf(request.header('prefer'));
    const asked = compositionOf(request.query, isStrict, hasParameter ? request.id : undefined);
    const form = { asked, changesOnly, digest };
    const open = () => gateway.reader(request, (copyOf) => readsOf(asked.reads, copyOf));
    const resultsBy = (reader: Reader) => {
      if (asked.error) throw asked.error;
      const results = compose({ gateway, clock, reader }, asked);
      return results.map((result) => {
        const told = whenDone(result, (done) => validated(form, done));
        if (told instanceof Promise) told.catch(() => undefined); // lines hear of it later
        return told;
      });
    };
    const answer = (reader: Reader) =>
      whenDone(allOf(resultsBy(reader)), (results) => overviewAnswer(request, form, results));
    if (wantsLines(c))
      return whenDone(open(), (reader) => linesAnswer(request, form, resultsBy(reader)).then((one) => reply(c, one)));
    const seconds = secondsFor(request);
    const answered = seconds === 0 ? whenDone(open(), answer) : waited(request, gateway, { open, answer }, seconds);
    return whenDone(answered, (one) => reply(c, one));
  };
}

/** Whether the client asks for NDJSON. Most clients accept anything, or JSON. */
function wantsLines(c: Context<Env>): boolean {
  const accept = c.req.header('accept');
  if (accept === undefined || accept === '*/*' || accept === 'application/json') return false;
  const supports = ['application/json', 'application/x-ndjson'];
  return accepts(c, { header: 'Accept', supports, default: 'application/json' }) === 'application/x-ndjson';
}
