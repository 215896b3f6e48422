import { cacheWordOf } from '../cache/read.ts';
import { cut, itemsOf, membersOf } from '../core/json.ts';
import { whenDone, type Digest, type MaybePromise } from '../core/runtime.ts';
import type { SectionResult } from '../gateway/compose.ts';
import type { Composition } from '../gateway/plan.ts';
import { noneMatch } from '../core/headers.ts';
import { appliedOf } from '../http/prefer.ts';
import { logIfFault, problemFor } from '../http/problem.ts';
import { type Answer, NO_STORE, REVALIDATE, timingOf } from '../http/reply.ts';
import type { HonoRequest } from '../http/request.ts';
import type { Operation } from '../upstream/operation.ts';
import { itemsAt } from '../upstream/page.ts';

/** What a client asked for, and how it is answered. */
export interface Form {
  readonly composition: Composition;
  /** Only the sections that are not as in the copy that `If-None-Match` names. */
  readonly changesOnly: boolean;
  readonly digest: Digest;
}

/** The result with a validator, trimmed to the fields that the client asked for. */
export function validated({ composition, digest }: Form, result: SectionResult): MaybePromise<SectionResult> {
  if (result.text === undefined || !composition.wanted.includes(result.name)) return result;
  const text = trimmed(composition, result.name, result.text);
  if (result.etag !== '' && text === result.text) return result;
  return whenDone(digest.body(text), (hash) => ({ ...result, text, etag: `"${hash}"` }));
}

/** The JSON of a section with only the fields that the client asked for. */
function trimmed({ overview, fields }: Composition, name: string, text: string): string {
  const names = fields.size > 0 ? fields.get(`fields[${name}]`) : undefined;
  const section = overview.sections[name];
  return names && section ? project(section.read, text, names) : text;
}

/** Trims the object, every item of an array, every item of a page. Values stay as they are. */
function project(operation: Operation, text: string, fields: ReadonlySet<string>): string {
  const items = operation.page && itemsAt(text, operation.page);
  if (!items) return trim(text, fields);
  return text.slice(0, items.start) + trim(cut(text, items), fields) + text.slice(items.end);
}

function trim(text: string, fields: ReadonlySet<string>): string {
  if (/^\s*\[/.test(text)) {
    const items = itemsOf(text).map((item) => trim(cut(text, item), fields));
    return `[${items.join(',')}]`;
  }
  if (!/^\s*\{/.test(text)) return text;
  const kept = membersOf(text).filter(({ name }) => fields.has(name));
  return `{${kept.map((member) => `${JSON.stringify(member.name)}:${cut(text, member)}`).join(',')}}`;
}

/** How many characters of a section's validator go into the ETag of the whole: 96 bits. */
const VALIDATOR_LENGTH = 16;
/** Follows the characters of a section that has a `code`. */
const FAILED = '!';
const TAG = /^(?:[\w-]{16}!?)?(?:\.(?:[\w-]{16}!?)?)*$/;

/** The part of a section in the ETag of the whole; empty for a section without data. */
const tagOf = ({ text, etag, code }: SectionResult): string =>
  text === undefined ? '' : etag.slice(1, 1 + VALIDATOR_LENGTH) + (code === undefined ? '' : FAILED);

/** The ETag of the whole; undefined where the client may not keep the answer. `results`: the sections that are answered. */
export function etagOf({ cacheMode }: HonoRequest, results: readonly SectionResult[]): string | undefined {
  if (cacheMode === 'no-store' || results.some(({ error, isCacheable }) => error || !isCacheable)) return undefined;
  return `"${results.map(tagOf).join('.')}"`;
}

/** Whether the client has the section's data. `known`: the section's part of `knownIn`. */
export const isKnown = (result: SectionResult, known: string | undefined): boolean =>
  known === tagOf(result).replace(FAILED, '');

/**
 * The parts of the first ETag in `If-None-Match` that has as many as there are sections, one for each. Undefined without such
 * an ETag.
 */
export function knownIn(header: string | undefined, { wanted }: Composition): readonly string[] | undefined {
  for (const one of header?.split(',') ?? []) {
    const tag = /^\s*(?:W\/)?"([^"]*)"\s*$/.exec(one)?.[1];
    const parts = tag !== undefined && TAG.test(tag) ? tag.split('.') : [];
    if (parts.length === wanted.length) return parts.map((part) => part.replace(FAILED, ''));
  }
  return undefined;
}

const STRICT = 'handling=strict';
const CHANGED = 'changed-sections';

/** The headers that an answer in JSON and one in lines have in common. */
export const formHeaders = ({ strict }: Composition, known: unknown): Record<string, string> => ({
  Vary: 'Authorization, Accept, Prefer',
  ...(strict || known !== undefined ? appliedOf([strict && STRICT, known !== undefined && CHANGED]) : undefined),
});

export function overviewAnswer(request: HonoRequest, form: Form, all: readonly SectionResult[]): Answer {
  const { composition, changesOnly } = form;
  const results =
    all.length === composition.wanted.length ? all : all.filter(({ name }) => composition.wanted.includes(name));
  for (const result of results) note(request, result);
  const header = request.header('if-none-match');
  const etag = all.every(({ isCacheable }) => isCacheable) ? etagOf(request, results) : undefined;
  const isSame = etag !== undefined && noneMatch(header, etag);
  const known = etag !== undefined && changesOnly && !isSame ? knownIn(header, composition) : undefined;
  const headers = { ...formHeaders(composition, known), ...cacheHeaders(request, all) };
  headers['Cache-Control'] = etag === undefined || known ? NO_STORE['Cache-Control'] : REVALIDATE;
  if (etag !== undefined) headers['ETag'] = etag;
  if (isSame) return { status: 304, headers, body: null };
  headers['Content-Type'] = 'application/json';
  const timing = all.map(({ name, ms, state }) => timingOf(name, ms, state)).join(', ');
  return { status: 200, headers, body: bodyOf(request, results, known), timing };
}

/** `Cache-Status` and `Age`: a hit if no section had to ask the upstream, and as old as the oldest section. */
function cacheHeaders(request: HonoRequest, results: readonly SectionResult[]): Record<string, string> {
  let [age, ttl, isHit] = [0, Infinity, true];
  for (const { state, age: own, ttl: left } of results) {
    age = Math.max(age, own);
    if (left !== undefined) ttl = Math.min(ttl, left);
    else if (state !== 'not_applicable') isHit = false;
  }
  isHit &&= ttl < Infinity;
  request.cache = cacheWordOf(isHit ? { ttl } : { fwd: 'miss' });
  return { 'Cache-Status': isHit ? `portico; hit; ttl=${ttl}` : 'portico; fwd=miss', Age: String(age) };
}

/** `known`: see `knownIn`; undefined where the client gets all data. */
function bodyOf(request: HonoRequest, results: readonly SectionResult[], known?: readonly string[]): string {
  let [data, errors, sections, unchanged] = ['', '', '', ''];
  for (const [at, result] of results.entries()) {
    const { name, state, age, code, text = 'null', error } = result;
    const ofData = result.text === undefined ? '' : `,"age":${age}`;
    const why = code === undefined ? '' : `,"code":${JSON.stringify(code)}`;
    sections += `${sections && ','}"${name}":{"state":"${state}"${ofData}${why}}`;
    if (error) errors += `${errors && ','}${JSON.stringify({ section: name, ...errorOf(request, name, error) })}`;
    if (known && isKnown(result, known[at])) unchanged += `${unchanged && ','}"${name}"`;
    else data += `${data && ','}"${name}":${text}`;
  }
  const meta = `"complete":${errors === ''}${known ? `,"unchanged":[${unchanged}]` : ''},"sections":{${sections}}`;
  return `{"data":{${data}},"errors":[${errors}],"meta":{${meta}}}`;
}

/** Notes a section's state for the log. */
export function note(request: HonoRequest, { name, state, ttl }: SectionResult): void {
  if (state === 'failed' || state === 'skipped') (request.failed ??= []).push(name);
  if (state === 'stale') (request.stale ??= []).push(name);
  if (state === 'fresh' && ttl !== undefined && request.phases) (request.fresh ??= []).push(name);
}

/** Members of a problem that a section's error does not have, since they are about the whole answer. */
const OF_THE_WHOLE = new Set(['type', 'title', 'instance', 'request_id', 'outcome', 'section', 'errors']);

/** The error of a failed section: its problem, without the members that are about the whole. A bug of ours is logged. */
export function errorOf(request: HonoRequest, section: string, failure: NonNullable<SectionResult['error']>): object {
  const error = failure.with({ section });
  logIfFault(request, error);
  const members = Object.entries(problemFor(request, error));
  return Object.fromEntries(members.filter(([name]) => !OF_THE_WHOLE.has(name)));
}
