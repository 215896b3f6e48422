import type { Digest } from '../core/runtime.ts';
import type { Entry } from '../store/store.ts';
import type { UpstreamAnswer } from '../upstream/answer.ts';
import type { CachePolicy } from '../upstream/operation.ts';

/** Makes a cached answer of one that came just now; nothing of one without a body. */
export async function entryOf(answer: UpstreamAnswer, storedAt: number, digest: Digest): Promise<Entry | null> {
  const { text, links, validators } = answer;
  return text === null ? null : { text, links, etag: `"${await digest.body(text)}"`, storedAt, validators };
}

/** The same answer, confirmed by the upstream just now. */
export function confirmed(entry: Entry, { validators }: UpstreamAnswer, storedAt: number): Entry {
  return { ...entry, storedAt, validators: { ...entry.validators, ...validators } };
}

/** Milliseconds that an entry is still fresh; negative once it is not. */
export function freshMsOf(entry: Entry, policy: CachePolicy, now: number): number {
  return entry.storedAt + policy.fresh * 1000 - now;
}

export type Usability = 'fresh' | 'stale' | 'on-error' | 'expired';

/** What an entry may be used for at this age. */
export function usabilityOf(freshMs: number, policy: CachePolicy): Usability {
  if (freshMs > 0) return 'fresh';
  if (-freshMs < policy.stale * 1000) return 'stale';
  return -freshMs < policy.onError * 1000 ? 'on-error' : 'expired';
}
