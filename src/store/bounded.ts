import { LRUCache } from 'lru-cache';
import { andThen, type Soon } from '../core/runtime.ts';
import type { Owner } from './store.ts';

export { LRUCache };

/** What was used last. With `maxSize`, since for `max` lru-cache allocates the memory of a full map at once. */
export const recent = <K extends {}, V extends {}>(max: number, dispose?: (value: V, key: K) => void) =>
  new LRUCache<K, V>({ maxSize: max, sizeCalculation: () => 1, ...(dispose && { dispose }) });

/** Characters of the hash of an address: 96 bits. */
export const ADDRESS_LENGTH = 16;

const MOST_REMEMBERED = 10_000;

/** The same, with what it has made for the last texts. */
export function remembered(make: (text: string) => Soon<string>): (text: string) => Soon<string> {
  const known = recent<string, string>(MOST_REMEMBERED);
  const remember = (text: string, made: string) => {
    known.set(text, made);
    return made;
  };
  return (text) => known.get(text) ?? andThen(make(text), (made) => remember(text, made));
}

/** The part of a bound that one owner may have. */
export const PART = 1 / 16;

/** Bytes that V8 takes for a string: one a character, two as soon as one is beyond Latin-1. */
export function bytesOf(text: string): number {
  // oxlint-disable-next-line no-control-regex
  return /[^\u0000-\u00ff]/.test(text) ? text.length * 2 : text.length;
}

/**
 * What owners hold of a bounded resource that is not taken back from them. Each may hold a part of what is left, so
 * that there is always some left for other owners.
 */
export class Holdings {
  readonly #held = new Map<Owner, number>();
  readonly #max: number;
  #total = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get total(): number {
    return this.#total;
  }

  hasRoomFor(owner: Owner, part: number): boolean {
    return (this.#held.get(owner) ?? 0) < (this.#max - this.#total) * part;
  }

  add(owner: Owner, count: number): void {
    this.#total += count;
    const held = (this.#held.get(owner) ?? 0) + count;
    if (held === 0) this.#held.delete(owner);
    else this.#held.set(owner, held);
  }
}
