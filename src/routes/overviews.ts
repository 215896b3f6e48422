import { accepts } from 'hono/accepts';
import type { Clock, Digest } from '../core/runtime.ts';
import { compose, type Legs, readsOf } from '../gateway/compose.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { isBad, isGood, type Leg, type Overview } from '../gateway/overview.ts';
import { allOverviews } from '../gateway/overviews/index.ts';
import { type Answer, NO_STORE } from '../http/answer.ts';
import { noneMatch } from '../http/conditional.ts';
import type { Handler } from '../http/conduct.ts';
import type { Exchange } from '../http/exchange.ts';
import { REVALIDATE, timingOf } from '../http/reading-answer.ts';
import { type CompositionRequest, compositionOf } from './composition.ts';
import { errorOf, sectionText } from './section.ts';
import { ndjsonAnswer } from './ndjson.ts';
import type { Route } from './route.ts';

interface OverviewOptions {
  readonly gateway: Gateway;
  readonly clock: Clock;
  readonly digest: Digest;
}

const VARY = { Vary: 'Authorization, Accept, Prefer' } as const;

export function overviewRoutes(options: OverviewOptions): Route[] {
  return allOverviews.map((overview) => ({
    method: 'GET',
    path: overview.path,
    name: overview.path,
    takes: ['Authorization', 'Cache-Control', 'If-None-Match', 'Prefer'],
    handler: overviewHandler(overview, options),
  }));
}

function overviewHandler(overview: Overview, { gateway, clock, digest }: OverviewOptions): Handler {
  return async (exchange) => {
    exchange.notes = { operation: overview.id };
    const asked = compositionOf(overview, exchange.query, exchange.header('prefer'));
    const caller = await exchange.reader((held) => ('error' in asked ? [] : readsOf(asked, held)));
    if ('error' in asked) throw asked.error;
    const request = asked;
    const legs = compose({ gateway, clock, caller, origin: exchange.origin }, request);
    if (wantsLines(exchange)) return ndjsonAnswer(exchange, request, { legs, headers: headersOf(request) });
    const isKept = caller.wants !== 'no-store';
    return jsonAnswer(exchange, request, { legs: await landed(legs), digest, isKept });
  };
}

function wantsLines({ context }: Exchange): boolean {
  const supports = ['application/json', 'application/x-ndjson'];
  return accepts(context, { header: 'Accept', supports, default: 'application/json' }) === 'application/x-ndjson';
}

/** Waits for all legs; the first that fails the whole ends the waiting. */
async function landed(legs: Legs): Promise<Map<string, Leg>> {
  return new Map(await Promise.all(Array.from(legs, async ([name, leg]) => [name, await leg] as const)));
}

interface Landed {
  readonly legs: ReadonlyMap<string, Leg>;
  readonly digest: Digest;
  /** Whether the client may keep a complete answer. */
  readonly isKept: boolean;
}

async function jsonAnswer(
  exchange: Exchange,
  request: CompositionRequest,
  { legs, digest, isKept }: Landed,
): Promise<Answer> {
  const sections = [...legs].filter(([name]) => request.wanted.includes(name));
  const data = `{${sections.map(([name, leg]) => `${JSON.stringify(name)}:${sectionText(request, name, leg)}`).join(',')}}`;
  const errors = sections.flatMap(([name, leg]) => (isBad(leg) ? [{ section: name, ...errorOf(leg) }] : []));
  const complete = errors.length === 0;
  const meta = { complete, sections: Object.fromEntries(sections.map(([name, leg]) => [name, metaOf(leg)])) };
  const body = `{"data":${data},"errors":${JSON.stringify(errors)},"meta":${JSON.stringify(meta)}}`;
  const timing = Array.from(legs, ([name, leg]) => timingOf(name, leg.ms, leg.state)).join(', ');
  const headers = { ...headersOf(request), ...cacheHeaders(exchange, [...legs.values()]) };
  if (!complete || !isKept) return { status: 200, headers: { ...headers, ...NO_STORE, ...JSON_TYPE }, body, timing };
  const validated = { ...headers, ...REVALIDATE, ETag: `"${await digest.body(data)}"` };
  const isKnown = noneMatch(exchange.header('if-none-match'), validated.ETag);
  if (isKnown) return { status: 304, headers: validated, body: null, timing };
  return { status: 200, headers: { ...validated, ...JSON_TYPE }, body, timing };
}

const JSON_TYPE = { 'Content-Type': 'application/json' } as const;

function headersOf({ strict }: CompositionRequest): Record<string, string> {
  return strict ? { ...VARY, 'Preference-Applied': 'handling=strict' } : VARY;
}

const metaOf = (leg: Leg) => ({ state: leg.state, ...(isGood(leg) && { age: leg.age }) });

/** A hit when no section had to ask the upstream; as old as its oldest section. */
function cacheHeaders(exchange: Exchange, legs: readonly Leg[]): Record<string, string> {
  const good = legs.filter(isGood);
  const ttls = good.flatMap(({ ttl }) => (ttl === undefined ? [] : [ttl]));
  const isHit = good.length > 0 && ttls.length === good.length && !legs.some(isBad);
  exchange.notes = { ...exchange.notes, cache: isHit ? (Math.min(...ttls) < 0 ? 'stale' : 'hit') : 'miss' };
  const age = Math.max(0, ...good.map((leg) => leg.age));
  return { 'Cache-Status': isHit ? `portico; hit; ttl=${Math.min(...ttls)}` : 'portico; fwd=miss', Age: String(age) };
}
