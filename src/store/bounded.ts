import { LRUCache } from 'lru-cache';
import { whenDone, type MaybePromise } from '../core/runtime.ts';

export { LRUCache };

/** What was used last. With `maxSize`, since for `max` lru-cache allocates the memory of a full map at once. */
export const recent = <K extends {}, V extends {}>(max: number, dispose?: (value: V, key: K) => void) =>
  new LRUCache<K, V>({ maxSize: max, sizeCalculation: () => 1, ...(dispose && { dispose }) });

/** Characters of the hash of an address: 96 bits. */
export const ADDRESS_LENGTH = 16;

const MOST_REMEMBERED = 10_000;

/** The same, with what it has made for the last texts. */
export function remembered(make: (text: string) => MaybePromise<string>): (text: string) => MaybePromise<string> {
  const known = recent<string, string>(MOST_REMEMBERED);
  const remember = (text: string, made: string) => {
    known.set(text, made);
    return made;
  };
  return (text) => known.get(text) ?? whenDone(make(text), (made) => remember(text, made));
}

/** The part of a bound that one owner may have. */
export const PART = 1 / 16;

/** Bytes that V8 takes for a string: one a character, two as soon as one is beyond Latin-1. */
export function bytesOf(text: string): number {
  // oxlint-disable-next-line no-control-regex
  return /[^\u0000-\u00ff]/.test(text) ? text.length * 2 : text.length;
}
