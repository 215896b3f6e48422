import { cacheWordOf } from '../cache/reader.ts';
import { andThen, type Digest, type Soon } from '../core/runtime.ts';
import { type BadLeg, isBad, isGood, type Leg } from '../gateway/leg.ts';
import { noneMatch } from '../middleware/headers.ts';
import { appliedOf } from '../middleware/prefer.ts';
import { logIfFault, problemFor } from '../middleware/problem.ts';
import { type Answer, NO_STORE, REVALIDATE, timingOf } from '../middleware/reply.ts';
import type { ClientRequest } from '../middleware/request.ts';
import { type CompositionRequest, project } from './selection.ts';

/** What a client asked for, and in which form. */
export interface Form {
  readonly asked: CompositionRequest;
  /** Only the sections that are not as in the copy that `If-None-Match` names. */
  readonly changesOnly: boolean;
  readonly digest: Digest;
}

const VARY = { Vary: 'Authorization, Accept, Prefer' } as const;

/** What of a leg is answered: trimmed, if the client asked for some fields only, and with a validator. */
export function partOf({ asked, digest }: Form, name: string, leg: Leg): Soon<Leg> {
  if (!isGood(leg) || !asked.wanted.includes(name)) return leg;
  const text = sectionText(asked, name, leg);
  if (leg.etag !== '' && text === leg.text) return leg;
  return andThen(digest.body(text), (hash) => ({ ...leg, text, etag: `"${hash}"` }));
}

/** Characters of each section's validator that go into that of the whole: 96 bits. */
const VALIDATOR_LENGTH = 16;
/** Follows it where the section says a `code`. */
const FAILED = '!';
const TAG = /^(?:[\w-]{16}!?)?(?:\.(?:[\w-]{16}!?)?)*$/;

/** What stands for a section in the ETag of the whole; nothing where it has no data. */
export const tagOf = (leg: Leg): string =>
  isGood(leg) ? leg.etag.slice(1, 1 + VALIDATOR_LENGTH) + (leg.code === undefined ? '' : FAILED) : '';

/** Whether a section's data is what the client has, by what `knownIn` says of it. */
export const isKnown = (leg: Leg, known: string | undefined): boolean => known === tagOf(leg).replace(FAILED, '');

/**
 * What `If-None-Match` says of each section: of the first ETag that an answer with so many sections may have had. Undefined
 * without one.
 */
export function knownIn(header: string | undefined, { wanted }: CompositionRequest): readonly string[] | undefined {
  for (const one of header?.split(',') ?? []) {
    const tag = /^\s*(?:W\/)?"([^"]*)"\s*$/.exec(one)?.[1];
    const parts = tag !== undefined && TAG.test(tag) ? tag.split('.') : [];
    if (parts.length === wanted.length) return parts.map((part) => part.replace(FAILED, ''));
  }
  return undefined;
}

export function overviewAnswer(request: ClientRequest, form: Form, legs: ReadonlyMap<string, Leg>): Answer {
  const { asked, changesOnly } = form;
  const { wanted, strict } = asked;
  let [tag, isKept] = ['', request.wants !== 'no-store'];
  for (const leg of legs.values()) if (isGood(leg) && !leg.isCacheable) isKept = false;
  for (const [at, name] of wanted.entries()) {
    const leg = legs.get(name);
    if (!leg) continue;
    if (isBad(leg)) isKept = false;
    tag += `${at > 0 ? '.' : ''}${tagOf(leg)}`;
    noteLeg(request, name, leg);
  }
  const header = request.header('if-none-match');
  const headers: Record<string, string> = { ...VARY, ...cacheHeaders(request, legs), ...NO_STORE };
  let known: readonly string[] | undefined;
  if (isKept) {
    headers['ETag'] = `"${tag}"`;
    if (noneMatch(header, headers['ETag'])) {
      Object.assign(headers, { 'Cache-Control': REVALIDATE }, appliedOf([strict && STRICT]));
      return { status: 304, headers, body: null };
    }
    known = changesOnly ? knownIn(header, asked) : undefined;
    if (!known) headers['Cache-Control'] = REVALIDATE;
  }
  headers['Content-Type'] = 'application/json';
  if (strict || known) Object.assign(headers, appliedOf([strict && STRICT, known !== undefined && CHANGED]));
  return { status: 200, headers, body: bodyOf(request, asked, { legs, known }), timing: timingsOf(legs) };
}

function timingsOf(legs: ReadonlyMap<string, Leg>): string {
  let timings = '';
  for (const [name, leg] of legs) timings += `${timings && ', '}${timingOf(name, leg.ms, leg.state)}`;
  return timings;
}

interface Told {
  readonly legs: ReadonlyMap<string, Leg>;
  /** Of each section what the client has of it; undefined where it is told all. */
  readonly known: readonly string[] | undefined;
}

function bodyOf(request: ClientRequest, { wanted }: CompositionRequest, { legs, known }: Told): string {
  let [data, errors, sections, unchanged] = ['', '', '', ''];
  for (const [at, name] of wanted.entries()) {
    const leg = legs.get(name);
    if (!leg) continue;
    sections += `${sections && ','}"${name}":${metaOf(leg)}`;
    if (isBad(leg)) errors += `${errors && ','}${JSON.stringify(entryOf(request, name, leg))}`;
    if (known && isKnown(leg, known[at])) unchanged += `${unchanged && ','}"${name}"`;
    else data += `${data && ','}"${name}":${isGood(leg) ? leg.text : 'null'}`;
  }
  const meta = `"complete":${errors === ''}${known ? `,"unchanged":[${unchanged}]` : ''},"sections":{${sections}}`;
  return `{"data":{${data}},"errors":[${errors}],"meta":{${meta}}}`;
}

const STRICT = 'handling=strict';
const CHANGED = 'changed-sections';

function metaOf(leg: Leg): string {
  if (!isGood(leg)) return `{"state":"${leg.state}"}`;
  const code = leg.code === undefined ? '' : `,"code":${JSON.stringify(leg.code)}`;
  return `{"state":"${leg.state}","age":${leg.age}${code}}`;
}

/** Of lines too. */
export const linesHeaders = ({ strict }: CompositionRequest, known: unknown): Record<string, string> => ({
  ...VARY,
  ...appliedOf([strict && STRICT, known !== undefined && CHANGED]),
});

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

/** For the log. */
export function noteLeg(request: ClientRequest, section: string, leg: Leg): void {
  const { state } = leg;
  if (state === 'failed' || state === 'skipped') (request.failed ??= []).push(section);
  if (state === 'stale') (request.stale ??= []).push(section);
  if (state === 'fresh' && leg.ttl !== undefined && request.phases) (request.fresh ??= []).push(section);
}

const entryOf = (request: ClientRequest, section: string, leg: BadLeg) => ({
  section,
  ...errorOf(request, section, leg),
});

/** The error of a section that failed, as its problem has it. One of ours goes into the log. */
export function errorOf(request: ClientRequest, section: string, leg: BadLeg): object {
  const error = leg.error.with({ section });
  logIfFault(request, error);
  const members = Object.entries(problemFor(request, error));
  return Object.fromEntries(members.filter(([name]) => !OF_THE_WHOLE.has(name)));
}
