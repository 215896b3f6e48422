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
  const directives = Array.from(header.toLowerCase().matchAll(DIRECTIVE), ([, name, quoted, bare]) => ({
    name,
    value: quoted ?? bare ?? '',
  }));
  const seconds = directives.flatMap(({ name, value }) => {
    if (name === 'no-cache') return [0];
    return name === 'max-age' && /^-?\d+$/.test(value) ? [Number(value) - secondsOf(headerOf(raw, 'age'))] : [];
  });
  return {
    isStorable: !directives.some(({ name }) => name === 'no-store'),
    ...(seconds.length > 0 && { maxFreshMs: Math.min(MAX_SECONDS, Math.max(0, Math.min(...seconds))) * 1000 }),
  };
}

const STORABLE: Keeping = { isStorable: true };

const secondsOf = (age = '') => Number(/^\d+/.exec(age)?.[0] ?? 0);
