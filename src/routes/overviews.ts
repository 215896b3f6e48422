import { accepts } from 'hono/accepts';
import { GatewayError } from '../core/errors.ts';
import { whenDone } from '../core/runtime.ts';
import { allOf, compose } from '../gateway/compose.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { type Overview, parametersOf, rowsReadBy } from '../gateway/overview.ts';
import { planOf, readsOf, type Values } from '../gateway/plan.ts';
import { preferencesOf } from '../http/prefer.ts';
import { type HonoRequest, routeParam } from '../http/request.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { type Form, formOf } from '../upstream/path.ts';
import type { Description } from './openapi.ts';
import { linesAnswer } from './lines.ts';
import { overviewAnswer, validated } from './overview-answer.ts';
import { type Route, routeOf } from './route.ts';
import { waitSecondsOf, answerOnChange } from './waited.ts';

export const overviewRoutes = (gateway: Gateway): Route[] =>
  gateway.deps.overviews.map((overview) => {
    const mayBeCompressed = !rowsReadBy(overview).some(({ secrets }) => secrets);
    const forms = parametersOf(overview).map(({ name, forms: [first] }) => [name, first] as const);
    const route = { handle: answering(overview, gateway), mayBeCompressed };
    return routeOf(overviewDescription(overview), route, Object.fromEntries<Form>(forms));
  });

export const overviewDescription = (overview: Overview): Description => ({
  method: 'get',
  path: overview.path.replaceAll(/:(\w+)/g, '{$1}'),
  operationId: overview.id,
  tags: ['Composed'],
  summary: overview.summary,
  details: (doc) => doc.overview(overview),
});

/**
 * Reads the values of a path's parameters; undefined for a path without any. Hono has checked the first form of each.
 * @throws GatewayError `unknown_endpoint` for a value that is not of another form
 */
function valuesBy(overview: Overview): (request: HonoRequest) => Values | undefined {
  const parameters = parametersOf(overview).map(({ name, forms: [, ...others] }) => ({
    name,
    param: routeParam(name),
    others: others.map((form) => formOf(form)),
  }));
  if (parameters.length === 0) return () => undefined;
  return (request) => {
    const values = parameters.map(({ name, param, others }) => {
      const value = request.param(param);
      if (others.some((form) => !form.test(value))) throw GatewayError.of('unknown_endpoint');
      return [name, value];
    });
    return Object.fromEntries(values) as Values;
  };
}

function answering(overview: Overview, gateway: Gateway): Route['handle'] {
  const { compositionOf } = planOf(overview, gateway.rows);
  const valuesOf = valuesBy(overview);
  const { digest } = gateway.deps;
  return (request) => {
    const { isStrict, changesOnly } = preferencesOf(request.header('prefer'));
    const composition = compositionOf(request.query, isStrict, valuesOf(request));
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
