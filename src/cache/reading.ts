import type { Entry } from '../store/store.ts';
import { ageOf } from './entry.ts';

/** The answer to a read, and how the cache handled it, in the terms of RFC 9211. */
export interface Reading {
  readonly status: number;
  /** Null if the upstream answered without a body. */
  readonly entry: Entry | null;
  /** Seconds since the upstream gave or confirmed it. */
  readonly age: number;
  /** Seconds that the copy stays fresh, negative when it is stale. Absent if the upstream was asked. */
  readonly ttl?: number | undefined;
  /** Why the upstream was asked. */
  readonly fwd?: 'miss' | 'stale' | 'request' | 'bypass';
  readonly isStored?: boolean;
  /** Joined a call that was under way. */
  readonly isCollapsed?: boolean;
  /** Whether the cache keeps answers of this operation at all. */
  readonly isCacheable: boolean;
}

/** Of a copy. */
export function readingOf(entry: Entry, freshMs: number, now: number): Reading {
  const seconds = Math.floor(freshMs / 1000);
  const ttl = freshMs > 0 ? seconds : Math.min(-1, seconds);
  return { status: 200, entry, age: ageOf(entry, now), ttl, isCacheable: true };
}

/** A `Cache-Status` value (RFC 9211). */
export function cacheStatusOf({ ttl, fwd = 'miss', isStored, isCollapsed }: Reading): string {
  if (ttl !== undefined) return `portico; hit; ttl=${ttl}`;
  return `portico; fwd=${fwd}${isStored ? '; stored' : ''}${isCollapsed ? '; collapsed' : ''}`;
}

/** One word of it, for logs. */
export function cacheWordOf({ ttl, fwd = 'miss' }: Pick<Reading, 'ttl' | 'fwd'>): string {
  if (ttl === undefined) return fwd;
  return ttl < 0 ? 'stale' : 'hit';
}
