import type { Entry } from '../store/store.ts';

/** How the cache came to an answer, in the words of RFC 9211. */
export interface CacheOutcome {
  /** Answered from the cache; `ttl` in seconds, negative when stale. */
  readonly hit?: { readonly ttl: number };
  /** Why the upstream was asked. */
  readonly fwd?: 'miss' | 'stale' | 'request' | 'bypass' | 'method';
  readonly stored?: boolean;
  /** Joined a call that was under way. */
  readonly collapsed?: boolean;
}

/** What a read comes back with. */
export interface Reading {
  readonly status: number;
  /** Null where the upstream answered without a body. */
  readonly entry: Entry | null;
  readonly state: 'fresh' | 'stale';
  /** Seconds. */
  readonly age: number;
  readonly outcome: CacheOutcome;
  /** Whether the cache keeps answers of this operation at all. */
  readonly cacheable: boolean;
}

/** A `Cache-Status` value (RFC 9211). */
export function cacheStatusOf({ hit, fwd, stored, collapsed }: CacheOutcome): string {
  if (hit) return `portico; hit; ttl=${hit.ttl}`;
  return `portico; fwd=${fwd ?? 'miss'}${stored ? '; stored' : ''}${collapsed ? '; collapsed' : ''}`;
}

/** One word of it, for logs. */
export function cacheWordOf({ hit, fwd }: CacheOutcome): string {
  if (!hit) return fwd ?? 'miss';
  return hit.ttl < 0 ? 'stale' : 'hit';
}
