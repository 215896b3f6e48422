import { accepts } from 'hono/accepts';
import type { Context as HonoContext } from 'hono';
import { cacheWordOf } from '../../cache/reading.ts';
import type { Digest } from '../../core/runtime.ts';
import { allOf, andThen, type Soon } from '../../core/soon.ts';
import { compose, readsOf } from '../../gateway/compose.ts';
import type { GatewayDeps } from '../../gateway/deps.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { allOverviews, type Overview } from '../../gateway/overviews.ts';
import { isBad, isGood, type Leg } from '../../gateway/legs.ts';
import { type Answer, NO_STORE, timingOf } from '../../http/answer.ts';
import type { Context } from '../../http/context.ts';
import type { Route } from '../../http/lifecycle.ts';
import { REVALIDATE } from '../../http/read-answer.ts';
import { noneMatch } from '../../http/request-headers.ts';
import { type CompositionRequest, compositionsOf, errorOf, sectionText } from './composition.ts';
import { ndjsonAnswer } from './ndjson.ts';

type Runtime = Pick<GatewayDeps, 'clock' | 'digest'>;

const VARY = { Vary: 'Authorization, Accept, Prefer' } as const;

export function overviewRoutes(gateway: Gateway, runtime: Runtime): Route[] {
  return allOverviews.map((overview) => ({
    method: 'GET',
    path: overview.path,
    name: overview.path,
    operation: overview.id,
    takes: ['Authorization', 'Cache-Control', 'If-None-Match', 'Prefer'],
    handle: answering(overview, gateway, runtime),
  }));
}

function answering(overview: Overview, gateway: Gateway, { clock, digest }: Runtime): Route['handle'] {
  const askedOf = compositionsOf(overview);
  return async (context) => {
    const { inbound } = context;
    const request = askedOf(inbound.query, inbound.header('prefer'));
    const reader = await gateway.reader(context, (copyOf) => ('error' in request ? [] : readsOf(request, copyOf)));
    if ('error' in request) throw request.error;
    const legs = compose({ gateway, clock, reader }, request);
    if (wantsLines(context)) return ndjsonAnswer(context, request, { legs, headers: headersOf(request) });
    const parts = new Map<string, Soon<Leg>>();
    for (const [name, leg] of legs)
      parts.set(
        name,
        andThen(leg, (done) => partOf(request, name, done, digest)),
      );
    return overviewAnswer(context, request, await allOf(parts));
  };
}

/** Whether the client asks for NDJSON. Most clients accept anything, or JSON. */
function wantsLines({ inbound }: Context): boolean {
  const accept = inbound.header('accept');
  if (accept === undefined || accept === '*/*' || accept === 'application/json') return false;
  const supports = ['application/json', 'application/x-ndjson'];
  const request = { req: { header: () => accept } } as unknown as HonoContext; // all that is asked of it
  return accepts(request, { header: 'Accept', supports, default: 'application/json' }) === 'application/x-ndjson';
}

/** What of a leg is answered: trimmed, if the client asked for some fields only, and with a validator. */
function partOf(request: CompositionRequest, name: string, leg: Leg, digest: Digest): Soon<Leg> {
  if (!isGood(leg) || !request.wanted.includes(name)) return leg;
  const text = sectionText(request, name, leg);
  if (leg.etag !== '' && text === leg.text) return leg;
  return andThen(digest.body(text), (hash) => ({ ...leg, text, etag: `"${hash}"` }));
}

/** Characters of each section's validator that go into that of the whole: 96 bits. */
const VALIDATOR_LENGTH = 16;

function overviewAnswer(context: Context, request: CompositionRequest, legs: ReadonlyMap<string, Leg>): Answer {
  const { data, errors, meta, etag, timing, isAscii } = textsOf(request, legs);
  const complete = errors === '';
  const headers: Record<string, string> = { ...headersOf(request), ...cacheHeaders(context, legs) };
  const isKept = complete && context.wants !== 'no-store';
  headers['Cache-Control'] = isKept ? REVALIDATE : NO_STORE['Cache-Control'];
  if (isKept) {
    headers['ETag'] = `"${etag}"`;
    if (noneMatch(context.inbound.header('if-none-match'), headers['ETag']))
      return { status: 304, headers, body: null, timing };
  }
  headers['Content-Type'] = 'application/json';
  const body = `{"data":{${data}},"errors":[${errors}],"meta":{"complete":${complete},"sections":{${meta}}}}`;
  return { status: 200, headers, body, isAscii, timing };
}

/** The members of `data` and of `meta.sections`, the items of `errors`, the tag, and `Server-Timing` of all legs. */
function textsOf(request: CompositionRequest, legs: ReadonlyMap<string, Leg>) {
  const texts = { data: '', errors: '', meta: '', etag: '', timing: '', isAscii: true };
  for (const [name, leg] of legs) {
    const isWanted = request.wanted.includes(name);
    texts.etag += `${texts.timing && '.'}${isWanted && isGood(leg) ? leg.etag.slice(1, 1 + VALIDATOR_LENGTH) : ''}`;
    texts.timing += `${texts.timing && ', '}${timingOf(name, leg.ms, leg.state)}`;
    if (!isWanted) continue;
    texts.isAscii &&= isGood(leg) ? leg.entry.isAscii === true : !isBad(leg);
    const separator = texts.data && ',';
    texts.data += `${separator}"${name}":${isGood(leg) ? leg.text : 'null'}`;
    texts.meta += `${separator}"${name}":{"state":"${leg.state}"${isGood(leg) ? `,"age":${leg.age}` : ''}}`;
    if (isBad(leg)) texts.errors += `${texts.errors && ','}${JSON.stringify({ section: name, ...errorOf(leg) })}`;
  }
  return texts;
}

function headersOf({ strict }: CompositionRequest): Record<string, string> {
  return strict ? { ...VARY, 'Preference-Applied': 'handling=strict' } : VARY;
}

/** A hit when no section had to ask the upstream; as old as its oldest section. */
function cacheHeaders(context: Context, legs: ReadonlyMap<string, Leg>): Record<string, string> {
  let [age, ttl] = [0, Infinity];
  let isHit = true;
  for (const leg of legs.values()) {
    if (isGood(leg)) age = Math.max(age, leg.age);
    if (isGood(leg) && leg.ttl !== undefined) ttl = Math.min(ttl, leg.ttl);
    else if (isGood(leg) || isBad(leg)) isHit = false;
  }
  isHit &&= ttl < Infinity;
  context.cache = cacheWordOf(isHit ? { ttl } : { fwd: 'miss' });
  return { 'Cache-Status': isHit ? `portico; hit; ttl=${ttl}` : 'portico; fwd=miss', Age: String(age) };
}
