import { accepts } from 'hono/accepts';
import type { Context } from 'hono';
import type { Reader } from '../cache/reader.ts';
import { compose } from '../gateway/compose.ts';
import type { GatewayDeps } from '../gateway/deps.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Leg } from '../gateway/leg.ts';
import { type Plan, planOf, readsOf } from '../gateway/plan.ts';
import { type Overview, parameterOf } from '../gateway/sections.ts';
import { preferencesOf } from '../middleware/prefer.ts';
import { reply } from '../middleware/reply.ts';
import type { Env } from '../middleware/request.ts';
import { overviewAnswer, partOf } from './overview-answer.ts';
import { overviewDescription } from './overview-head.ts';
import { linesAnswer } from './overview-lines.ts';
import { type Route, routeOf } from './route.ts';
import { compositionsOf } from './selection.ts';
import { secondsFor, waited } from './waited.ts';

type Runtime = Pick<GatewayDeps, 'clock' | 'digest' | 'overviews'>;

export const overviewRoutes = (gateway: Gateway, runtime: Runtime): Route[] =>
  runtime.overviews.map((overview) => ({
    ...routeOf(overviewDescription(overview), { handle: answering(planOf(overview), gateway, runtime) }),
    path: patternOf(overview),
    mayBeCompressed: !Object.values(overview.sections).some(({ read }) => read.secrets),
  }));

/** Hono's. What its parameter cannot be is an unknown path. */
function patternOf(overview: Overview): string {
  const parameter = parameterOf(overview);
  return parameter ? overview.path.replace(`:${parameter.name}`, `:portico_id{${parameter.form}}`) : overview.path;
}

function answering(
  plan: Plan,
  gateway: Gateway,
  { clock, digest }: Pick<Runtime, 'clock' | 'digest'>,
): Route['handle'] {
  const askedOf = compositionsOf(plan);
  return async (c) => {
    const request = c.get('porticoRequest');
    const preferences = preferencesOf(request.header('prefer'));
    const asked = askedOf(request.query, preferences, plan.hasParameter ? request.id : undefined);
    const open = () => gateway.reader(request, (copyOf) => readsOf(asked.parts, copyOf));
    const legsBy = (reader: Reader) => {
      if (asked.error) throw asked.error;
      return compose({ gateway, clock, reader }, asked);
    };
    const form = { asked, changesOnly: preferences.changesOnly, digest };
    if (wantsLines(c)) return reply(c, await linesAnswer(request, form, legsBy(await open())));
    const answer = async (reader: Reader) => {
      const parts = new Map<string, Leg>();
      for (const [name, leg] of legsBy(reader)) {
        const part = partOf(form, name, leg instanceof Promise ? await leg : leg);
        parts.set(name, part instanceof Promise ? await part : part);
      }
      return overviewAnswer(request, form, parts);
    };
    return reply(c, await waited(request, gateway, { open, answer }, secondsFor(request)));
  };
}

/** Whether the client asks for NDJSON. Most clients accept anything, or JSON. */
function wantsLines(c: Context<Env>): boolean {
  const accept = c.req.header('accept');
  if (accept === undefined || accept === '*/*' || accept === 'application/json') return false;
  const supports = ['application/json', 'application/x-ndjson'];
  return accepts(c, { header: 'Accept', supports, default: 'application/json' }) === 'application/x-ndjson';
}
