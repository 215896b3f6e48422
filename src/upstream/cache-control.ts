import { headerOf, type RawAnswer } from './transport.ts';

/** Limits that the upstream sets on keeping its answer; they only ever shorten what the cache would do. */
export interface Keeping {
  readonly isStorable: boolean;
  /** Upper limit for how long it is fresh, in milliseconds. */
  readonly maxFreshMs?: number;
}

/** A name, perhaps with a value in quotes or without (RFC 9111, section 5.2). */
const DIRECTIVE = /([\w-]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([^\s,;]*)))?/g;
/** Seconds; a larger value counts as this (RFC 9111, section 1.2.2). */
const MAX_SECONDS = 2 ** 31;

/** Reads the upstream's `no-store`, `no-cache` and `max-age`. Other directives and unusable values are ignored. */
export function keepingOf(raw: RawAnswer): Keeping {
  const header = headerOf(raw, 'cache-control');
  if (header === undefined) return STORABLE;
  let isStorable = true;
  const limits: number[] = []; // in seconds
  for (const [, name, quoted, bare = ''] of header.toLowerCase().matchAll(DIRECTIVE)) {
    const value = quoted ?? bare;
    if (name === 'no-store') isStorable = false;
    if (name === 'no-cache') limits.push(0);
    if (name === 'max-age' && /^-?\d+$/.test(value)) limits.push(Number(value) - ageOf(raw));
  }
  if (limits.length === 0) return { isStorable };
  return { isStorable, maxFreshMs: Math.min(MAX_SECONDS, Math.max(0, Math.min(...limits))) * 1000 };
}

const STORABLE: Keeping = { isStorable: true };

const ageOf = (raw: RawAnswer) => Number(/^\d+/.exec(headerOf(raw, 'age') ?? '')?.[0] ?? 0);
