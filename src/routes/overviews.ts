import { accepts } from 'hono/accepts';
import type { Context } from 'hono';
import { cacheWordOf } from '../cache/reader.ts';
import { GatewayError } from '../core/errors.ts';
import { andThen, type Digest, type Soon } from '../core/runtime.ts';
import { compose, type Legs, vitalOf } from '../gateway/compose.ts';
import type { GatewayDeps } from '../gateway/deps.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { type BadLeg, isBad, isGood, type Leg } from '../gateway/leg.ts';
import { type Plan, planOf, readsOf } from '../gateway/plan.ts';
import { type Overview, parameterOf } from '../gateway/sections.ts';
import { leftCode } from '../middleware/access-log.ts';
import { noneMatch } from '../middleware/headers.ts';
import { logIfFault, problemFor } from '../middleware/problem.ts';
import { type Answer, NO_STORE, reply, REVALIDATE, timingOf } from '../middleware/reply.ts';
import type { ClientRequest, Env } from '../middleware/request.ts';
import { overviewDescription } from './overview-head.ts';
import { type Route, routeOf } from './route.ts';
import { type CompositionRequest, compositionsOf, project } from './selection.ts';

type Runtime = Pick<GatewayDeps, 'clock' | 'digest' | 'overviews'>;

const VARY = { Vary: 'Authorization, Accept, Prefer' } as const;

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
    const asked = askedOf(request.query, request.header('prefer'), plan.hasParameter ? request.id : undefined);
    const reader = await gateway.reader(request, (copyOf) => readsOf(asked.parts, copyOf));
    if (asked.error) throw asked.error;
    const legs = compose({ gateway, clock, reader }, asked);
    if (wantsLines(c)) return reply(c, await ndjsonAnswer(request, asked, legs));
    const parts = new Map<string, Leg>();
    for (const [name, leg] of legs) {
      const part = partOf(asked, name, leg instanceof Promise ? await leg : leg, digest);
      parts.set(name, part instanceof Promise ? await part : part);
    }
    return reply(c, overviewAnswer(request, asked, parts));
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
  const { data, errors, meta, etag, timing, isCacheable } = textsOf(request, asked, legs);
  const complete = errors === '';
  const headers: Record<string, string> = { ...headersOf(asked), ...cacheHeaders(request, legs) };
  const isKept = complete && isCacheable && request.wants !== 'no-store';
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

/**
 * The members of `data` and of `meta.sections`, the items of `errors`, the tag, `Server-Timing` of all legs, and whether the
 * answer may be kept.
 */
function textsOf(request: ClientRequest, asked: CompositionRequest, legs: ReadonlyMap<string, Leg>) {
  const texts = { data: '', errors: '', meta: '', etag: '', timing: '', isCacheable: true };
  for (const [name, leg] of legs) {
    const isWanted = asked.wanted.includes(name);
    texts.etag += `${texts.timing && '.'}${isWanted && isGood(leg) ? leg.etag.slice(1, 1 + VALIDATOR_LENGTH) : ''}`;
    texts.timing += `${texts.timing && ', '}${timingOf(name, leg.ms, leg.state)}`;
    if (isGood(leg) && !leg.isCacheable) texts.isCacheable = false;
    if (!isWanted) continue;
    noteLeg(request, name, leg);
    const separator = texts.data && ',';
    texts.data += `${separator}"${name}":${isGood(leg) ? leg.text : 'null'}`;
    texts.meta += `${separator}"${name}":{"state":"${leg.state}"${isGood(leg) ? `,"age":${leg.age}` : ''}}`;
    if (isBad(leg))
      texts.errors += `${texts.errors && ','}${JSON.stringify({ section: name, ...errorOf(request, name, leg) })}`;
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

/** The JSON of a section: the upstream's, trimmed if the client asked for some fields only. */
function sectionText({ overview, fields }: CompositionRequest, name: string, leg: Leg): string {
  if (!isGood(leg)) return 'null';
  const wanted = fields.size > 0 ? fields.get(`fields[${name}]`) : undefined;
  const section = overview.sections[name];
  return wanted && section ? project(section.read, leg.text, wanted) : leg.text;
}

/** What is not in the error of a section: it is of the whole answer, or for a page by itself. */
const OF_THE_WHOLE = new Set(['type', 'title', 'instance', 'request_id', 'outcome', 'section', 'errors']);

/** For the log and metrics. */
function noteLeg(request: ClientRequest, section: string, leg: Leg): void {
  const { state } = leg;
  request.tools.metrics.sectionDone(section, state);
  if (state === 'failed' || state === 'skipped') (request.failed ??= []).push(section);
  if (state === 'stale') (request.stale ??= []).push(section);
  if (state === 'fresh' && leg.ttl !== undefined && request.phases) (request.fresh ??= []).push(section);
}

/** The error of a section that failed, as its problem has it. One of ours goes into the log. */
function errorOf(request: ClientRequest, section: string, leg: BadLeg): object {
  const error = leg.error.with({ section });
  logIfFault(request, error);
  const members = Object.entries(problemFor(request, error));
  return Object.fromEntries(members.filter(([name]) => !OF_THE_WHOLE.has(name)));
}

/**
 * One line per section as soon as it is read, and `{"complete":true}` at the end. Begins when all required sections are
 * read, so that their failure can still be a problem with its status. After that a refusal cuts the stream short.
 */
async function ndjsonAnswer(request: ClientRequest, asked: CompositionRequest, legs: Legs): Promise<Answer> {
  const first = await Promise.all(vitalOf(asked).map(async (name) => [name, await legs.get(name)] as const));
  const timing = first.map(([name, leg]) => timingOf(name, leg?.ms ?? 0, leg?.state)).join(', ');
  request.cache = 'stream';
  request.isStream = true;
  return {
    status: 200,
    headers: { ...headersOf(asked), ...NO_STORE, 'Content-Type': 'application/x-ndjson', 'X-Accel-Buffering': 'no' },
    body: streamOf(request, asked, legs),
    ...(timing && { timing }),
  };
}

function streamOf(request: ClientRequest, asked: CompositionRequest, legs: Legs): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async start(controller) {
      const send = (line: string) => controller.enqueue(encoder.encode(`${line}\n`));
      const lines = asked.wanted.map(async (name) => send(lineOf(request, asked, name, await legs.get(name))));
      const outcomes = await Promise.allSettled(lines);
      const cut = outcomes.find((one) => one.status === 'rejected');
      if (request.hasLeft) return endCut(request, leftCode(request)); // nobody reads it any more
      if (cut) endCut(request, codeOf(cut.reason));
      else request.end();
      if (!cut) send('{"complete":true}');
      controller.close();
    },
    cancel: () => endCut(request, leftCode(request)),
  });
}

const codeOf = (error: unknown) => (error instanceof GatewayError ? error.code : 'internal_error');

/** The status has been sent: the line in the log has the code of what cut the stream short. */
function endCut(request: ClientRequest, code: string): void {
  if (!request.isEnded) request.code = code;
  request.end();
}

function lineOf(request: ClientRequest, asked: CompositionRequest, name: string, leg: Leg | undefined): string {
  if (!leg) throw new Error(`${name} was not composed`);
  noteLeg(request, name, leg);
  const head = `{"section":${JSON.stringify(name)},"state":"${leg.state}"`;
  if (isBad(leg)) return `${head},"error":${JSON.stringify(errorOf(request, name, leg))}}`;
  return `${head},"data":${sectionText(asked, name, leg).replaceAll(/[\r\n]+\s*/g, ' ')}}`;
}
