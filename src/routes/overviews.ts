import * as z from 'zod/mini';
import { accepts } from 'hono/accepts';
import type { Context } from 'hono';
import { cacheWordOf } from '../cache/reader.ts';
import { allOf, andThen, type Digest, type Soon } from '../core/runtime.ts';
import { compose, documentedFields, readsOf } from '../gateway/compose.ts';
import type { GatewayDeps } from '../gateway/reader.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { allOverviews, type Overview } from '../gateway/overviews.ts';
import { isBad, isGood, type Leg } from '../gateway/legs.ts';
import { noneMatch } from '../middleware/headers.ts';
import { type Answer, NO_STORE, reply, REVALIDATE, timingOf } from '../middleware/reply.ts';
import type { ClientRequest, Env } from '../middleware/request.ts';
import { documented } from '../upstream/fields.ts';
import type { Description } from './openapi.ts';
import { jsonOf, linesOf } from './overviews/schemas.ts';
import { type Route, routeOf } from './route.ts';
import { type CompositionRequest, compositionsOf, errorOf, sectionText } from './overviews/composition.ts';
import { ndjsonAnswer } from './overviews/ndjson.ts';

type Runtime = Pick<GatewayDeps, 'clock' | 'digest'>;

const VARY = { Vary: 'Authorization, Accept, Prefer' } as const;

export const overviewRoutes = (gateway: Gateway, runtime: Runtime): Route[] =>
  allOverviews.map((overview) =>
    routeOf(overviewDescription(overview), { handle: answering(overview, gateway, runtime) }),
  );

function answering(overview: Overview, gateway: Gateway, { clock, digest }: Runtime): Route['handle'] {
  const askedOf = compositionsOf(overview);
  return async (c) => {
    const request = c.get('request');
    const asked = askedOf(request.query, request.header('prefer'));
    const reader = await gateway.reader(request, (copyOf) => ('error' in asked ? [] : readsOf(asked, copyOf)));
    if ('error' in asked) throw asked.error;
    const legs = compose({ gateway, clock, reader }, asked);
    if (wantsLines(c)) return reply(c, await ndjsonAnswer(request, asked, { legs, headers: headersOf(asked) }));
    const parts = new Map<string, Soon<Leg>>();
    for (const [name, leg] of legs)
      parts.set(
        name,
        andThen(leg, (done) => partOf(asked, name, done, digest)),
      );
    return reply(c, overviewAnswer(request, asked, await allOf(parts)));
  };
}

/** Whether the client asks for NDJSON. Most clients accept anything, or JSON. */
function wantsLines(c: Context<Env>): boolean {
  const accept = c.req.header('accept');
  if (accept === undefined || accept === '*/*' || accept === 'application/json') return false;
  const supports = ['application/json', 'application/x-ndjson'];
  return accepts(c, { header: 'Accept', supports, default: 'application/json' }) === 'application/x-ndjson';
}

/** What of a leg is answered: trimmed, if the client asked for some fields only, and with a validator. */
function partOf(asked: CompositionRequest, name: string, leg: Leg, digest: Digest): Soon<Leg> {
  if (!isGood(leg) || !asked.wanted.includes(name)) return leg;
  const text = sectionText(asked, name, leg);
  if (leg.etag !== '' && text === leg.text) return leg;
  return andThen(digest.body(text), (hash) => ({ ...leg, text, etag: `"${hash}"` }));
}

/** Characters of each section's validator that go into that of the whole: 96 bits. */
const VALIDATOR_LENGTH = 16;

function overviewAnswer(request: ClientRequest, asked: CompositionRequest, legs: ReadonlyMap<string, Leg>): Answer {
  const { data, errors, meta, etag, timing } = textsOf(asked, legs);
  const complete = errors === '';
  const headers: Record<string, string> = { ...headersOf(asked), ...cacheHeaders(request, legs) };
  const isKept = complete && request.wants !== 'no-store';
  headers['Cache-Control'] = isKept ? REVALIDATE : NO_STORE['Cache-Control'];
  if (isKept) {
    headers['ETag'] = `"${etag}"`;
    if (noneMatch(request.header('if-none-match'), headers['ETag']))
      return { status: 304, headers, body: null, timing };
  }
  headers['Content-Type'] = 'application/json';
  const body = `{"data":{${data}},"errors":[${errors}],"meta":{"complete":${complete},"sections":{${meta}}}}`;
  return { status: 200, headers, body, timing };
}

/** The members of `data` and of `meta.sections`, the items of `errors`, the tag, and `Server-Timing` of all legs. */
function textsOf(asked: CompositionRequest, legs: ReadonlyMap<string, Leg>) {
  const texts = { data: '', errors: '', meta: '', etag: '', timing: '' };
  for (const [name, leg] of legs) {
    const isWanted = asked.wanted.includes(name);
    texts.etag += `${texts.timing && '.'}${isWanted && isGood(leg) ? leg.etag.slice(1, 1 + VALIDATOR_LENGTH) : ''}`;
    texts.timing += `${texts.timing && ', '}${timingOf(name, leg.ms, leg.state)}`;
    if (!isWanted) continue;
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
function cacheHeaders(request: ClientRequest, legs: ReadonlyMap<string, Leg>): Record<string, string> {
  let [age, ttl] = [0, Infinity];
  let isHit = true;
  for (const leg of legs.values()) {
    if (isGood(leg)) age = Math.max(age, leg.age);
    if (isGood(leg) && leg.ttl !== undefined) ttl = Math.min(ttl, leg.ttl);
    else if (isGood(leg) || isBad(leg)) isHit = false;
  }
  isHit &&= ttl < Infinity;
  request.cache = cacheWordOf(isHit ? { ttl } : { fwd: 'miss' });
  return { 'Cache-Status': isHit ? `portico; hit; ttl=${ttl}` : 'portico; fwd=miss', Age: String(age) };
}

const DESCRIPTION =
  'Sections are read at the same time and answered from the same cache as the calls behind them. One that fails is ' +
  'null and named in `errors`, unless it is required: then the whole fails.';

const ANSWER =
  'The sections, as lines where `Accept` prefers `application/x-ndjson`. `no-store` and without `ETag` as lines or ' +
  'when a section failed.';

export const overviewDescription = (overview: Overview): Description => ({
  method: 'get',
  path: overview.path,
  operationId: overview.id,
  tags: ['Composed'],
  summary: overview.summary,
  details: (doc) => ({
    description: `${DESCRIPTION} Required here: ${requiredOf(overview).join(', ')}.`,
    parameters: [
      ...doc.parameters('query', queryOf(overview)),
      ...doc.parameters('header', { ...doc.conditional, Prefer }),
    ],
    responses: {
      ...doc.cached({ ...jsonOf(overview, doc), ...linesOf(overview, doc) }, ANSWER),
      ...doc.refused,
    },
  }),
});

const requiredOf = ({ sections }: Overview) => Object.keys(sections).filter((name) => sections[name]?.required);

const Prefer = documented(z.string(), { description: '`handling=strict`: any section that fails fails the whole' });

function queryOf({ sections }: Overview) {
  const fields = Object.entries(sections).map(([name, { operation }]) => {
    const what = `fields of ${name}${operation.paged ? ' items' : ''} to answer`;
    return [`fields[${name}]`, namesParameter(documentedFields(operation), what)] as const;
  });
  return { sections: namesParameter(Object.keys(sections), 'sections to answer'), ...Object.fromEntries(fields) };
}

function namesParameter(names: Iterable<string>, what: string) {
  const description = `${what}, comma-separated, and no others, even where the schema requires them; all when left out`;
  return documented(z.array(z.enum([...names])), { description });
}
