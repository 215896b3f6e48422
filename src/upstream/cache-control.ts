import { headerOf, type RawAnswer } from './transport.ts';

/** What the upstream says of keeping its answer, as far as that is less than would be kept without a word. */
export interface Keeping {
  readonly isStorable: boolean;
  /** How long it may count as fresh at most, in milliseconds. */
  readonly maxFreshMs?: number;
}

/** A name, perhaps with a value in quotes or without (RFC 9111, section 5.2). */
const DIRECTIVE = /([\w-]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([^\s,;]*)))?/g;
/** Seconds; what is larger counts as this (RFC 9111, section 1.2.2). */
const MAX_SECONDS = 2 ** 31;

/** Goes by the upstream's `no-store`, `no-cache` and `max-age`. What is none of them, or has no usable value, is not heard. */
export function keepingOf(raw: RawAnswer): Keeping {
  const header = headerOf(raw, 'cache-control');
  if (header === undefined) return STORABLE;
  const said = Array.from(header.toLowerCase().matchAll(DIRECTIVE), ([, name, quoted, bare]) => ({
    name,
    value: quoted ?? bare ?? '',
  }));
  const seconds = said.flatMap(({ name, value }) => {
    if (name === 'no-cache') return [0];
    return name === 'max-age' && /^-?\d+$/.test(value) ? [Number(value) - secondsOf(headerOf(raw, 'age'))] : [];
  });
  return {
    isStorable: !said.some(({ name }) => name === 'no-store'),
    ...(seconds.length > 0 && { maxFreshMs: Math.min(MAX_SECONDS, Math.max(0, Math.min(...seconds))) * 1000 }),
  };
}

const STORABLE: Keeping = { isStorable: true };

const secondsOf = (age = '') => Number(/^\d+/.exec(age)?.[0] ?? 0);
