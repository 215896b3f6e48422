import type { Digest } from '../core/runtime.ts';
import { type Entry, freshFor } from '../store/store.ts';
import type { UpstreamAnswer } from '../upstream/call.ts';
import type { CachePolicy } from '../upstream/operation.ts';

/** Makes an entry of an answer; null if it has no body. Without `digest` it gets no ETag: it is not kept. */
export async function entryOf(answer: UpstreamAnswer, storedAt: number, digest?: Digest): Promise<Entry | null> {
  const { text, links, validators, isAscii } = answer;
  if (text === null) return null;
  const etag = digest ? `"${await digest.body(text)}"` : '';
  return { text, links, isAscii, etag, storedAt, validators, ...boundOf(answer) };
}

const boundOf = ({ maxFreshMs }: UpstreamAnswer) => (maxFreshMs === undefined ? {} : { maxFreshMs });

/** The entry after the upstream has confirmed it with a 304, with the new limits and validators of that answer. */
export function confirmed(entry: Entry, answer: UpstreamAnswer, storedAt: number): Entry {
  return { ...entry, ...boundOf(answer), storedAt, validators: { ...entry.validators, ...answer.validators } };
}

/** Milliseconds that an entry stays fresh; negative if it is stale. */
export function freshMsOf(entry: Entry, policy: CachePolicy, now: number): number {
  return entry.storedAt + freshFor(entry, policy.fresh * 1000) - now;
}

/** What an entry may be used for at this age. */
export function usabilityOf(freshMs: number, policy: CachePolicy): 'fresh' | 'stale' | 'on-error' | 'expired' {
  if (freshMs > 0) return 'fresh';
  if (-freshMs < policy.stale * 1000) return 'stale';
  return -freshMs < policy.onError * 1000 ? 'on-error' : 'expired';
}

/** Seconds. */
export const ageOf = ({ storedAt }: Entry, now: number): number => Math.max(0, Math.floor((now - storedAt) / 1000));
