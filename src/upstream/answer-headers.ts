import { dateOf, directivesOf, elementsOf, secondsOf } from '../core/field-values.ts';
import type { Entry } from '../store/port.ts';
import type { UpstreamAnswer } from './call.ts';
import { headerOf, type RawAnswer } from './transport.ts';

/** What the headers of the upstream's answers say of time and of copies. `wall`: the time of day, in milliseconds since 1970. */

/** The value of a header that should come once: of a repeated one the first. */
function firstOf({ headers }: RawAnswer, name: string): string {
  const value = headers[name];
  return (Array.isArray(value) ? value[0] : value)?.trim() ?? '';
}

/** When the upstream made the answer, by its own clock: other dates in the answer are of the same clock. */
const sentAt = (raw: RawAnswer, wall: number) => dateOf(firstOf(raw, 'date'), wall) ?? wall;

const MIN_RETRY_AFTER_SECONDS = 1;
const MAX_RETRY_AFTER_SECONDS = 300;

/** `Retry-After`, in seconds or as a date, from 1 s to 5 min; undefined if it is missing or unusable. */
export function retryAfterOf(raw: RawAnswer, wall: number): number | undefined {
  const text = firstOf(raw, 'retry-after');
  const date = dateOf(text, wall);
  const seconds = date === undefined ? secondsOf(text) : (date - sentAt(raw, wall)) / 1000;
  if (seconds === undefined) return undefined;
  return Math.min(Math.max(Math.ceil(seconds), MIN_RETRY_AFTER_SECONDS), MAX_RETRY_AFTER_SECONDS);
}

/** One that could not be sent back would end each refresh, and a `*` is no validator. */
const VALIDATOR = /^(?!\*$)[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/;

/** What makes the next request conditional. */
export function validatorsOf(raw: RawAnswer): Entry['validators'] {
  const [etag, lastModified] = [firstOf(raw, 'etag'), firstOf(raw, 'last-modified')];
  return { ...(VALIDATOR.test(etag) && { etag }), ...(VALIDATOR.test(lastModified) && { lastModified }) };
}

/** Seconds; a larger value counts as this (RFC 9111, section 1.2.2). */
const MAX_SECONDS = 2 ** 31;

/** Directives that forbid a stale copy (RFC 9111, sections 5.2.2.2, 5.2.2.4 and 5.2.2.8). */
const NEVER_STALE = ['no-cache', 'must-revalidate', 'proxy-revalidate'];

/** Some servers divide directives by a semicolon or a blank. Both count as a comma here, so that no prohibition is missed. */
const NO_COMMA = /;|(?<=\w)\s+(?=\w)/g;

/** What the upstream lets the cache do (RFC 9111). Its word only ever shortens what the cache would do. */
export function keepingOf(raw: RawAnswer, wall: number): Pick<UpstreamAnswer, 'isStorable' | 'limits'> {
  const directives = directivesOf((headerOf(raw, 'cache-control') ?? '').replaceAll(NO_COMMA, ','));
  const has = (name: string) => directives.some(([one]) => one === name);
  const isStorable = !has('no-store') && !elementsOf(headerOf(raw, 'vary') ?? '').includes('*');
  const says = headerOf(raw, 'cache-control') !== undefined || raw.headers['expires'] !== undefined;
  if (!says) return { isStorable, limits: undefined };
  const ages = directives.filter(([name, value]) => name === 'max-age' && /^-?\d+$/.test(value));
  const lives = ages.map(([, value]) => Number(value)); // of several the shortest
  if (lives.length === 0 && raw.headers['expires'] !== undefined) lives.push(secondsUntilExpires(raw, wall));
  const freshSeconds = has('no-cache') ? 0 : Math.min(MAX_SECONDS, ...lives) - ageOf(raw);
  const maxFreshMs = Math.max(0, freshSeconds) * 1000;
  // A 304 with `Expires` alone leaves what `Cache-Control` said before (RFC 9111, section 3.2).
  return { isStorable, limits: { maxFreshMs, ...(directives.length > 0 && { isNeverStale: NEVER_STALE.some(has) }) } };
}

/** What is no date has expired, `0` above all (RFC 9111, section 5.3). */
const secondsUntilExpires = (raw: RawAnswer, wall: number) =>
  ((dateOf(firstOf(raw, 'expires'), wall) ?? -Infinity) - sentAt(raw, wall)) / 1000;

const ageOf = (raw: RawAnswer) => Math.trunc(secondsOf(firstOf(raw, 'age')) ?? 0);
