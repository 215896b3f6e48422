import type { Abortable } from '../core/abortable.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import { type AccountId, type CacheKey, type Entry, freshFor, type Owner, type Snapshot } from '../store/port.ts';
import type { Read, RequestContext } from '../upstream/call.ts';
import type { CachePolicy, Operation } from '../upstream/operation.ts';
import { cacheKeyOf } from './keys.ts';

/** The answer to a read, and how the cache handled it, in the terms of RFC 9211. */
export interface Reading {
  readonly status: number;
  /** Null if the upstream answered without a body. */
  readonly entry: Entry | null;
  /** Seconds since the upstream gave or confirmed it. */
  readonly age: number;
  /** Seconds that the copy stays fresh, negative when it is stale. Absent if the upstream was asked. */
  readonly ttl?: number | undefined;
  /** Why the upstream did not give a newer one, in a copy that is stale. */
  readonly code?: string | undefined;
  /** Why the upstream was asked. */
  readonly fwd?: 'miss' | 'stale' | 'request' | 'bypass';
  readonly isStored?: boolean;
  /** Joined a call that was under way. */
  readonly isCollapsed?: boolean;
  /** Whether the cache keeps answers of this operation at all. */
  readonly isCacheable: boolean;
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

/** Milliseconds that an entry stays fresh; negative if it is stale. */
export function freshMsOf(entry: Entry, policy: CachePolicy, now: number): number {
  return entry.storedAt + freshFor(entry, policy.fresh * 1000) - now;
}

/** Seconds. */
export const ageOf = ({ storedAt }: Entry, now: number): number => Math.max(0, Math.floor((now - storedAt) / 1000));

export interface ReaderOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** The policy in force; undefined for an operation that is never cached. */
  readonly policyOf: (operation: Operation) => CachePolicy | undefined;
}

/** Counts and gives the answer from a copy. `code`: of the failure for which it is given although it is stale. */
export function readingOf(entry: Entry, freshMs: number, { clock, metrics }: ReaderOptions, code?: string): Reading {
  metrics.readDone(freshMs > 0 ? 'hit' : 'stale');
  const now = clock.now();
  const seconds = Math.floor(freshMs / 1000);
  const ttl = freshMs > 0 ? seconds : Math.min(-1, seconds);
  return { status: 200, entry, age: ageOf(entry, now), ttl, code, isCacheable: true };
}

/** What a reader is made of. */
type Who = Pick<Reader, 'context' | 'account' | 'owner' | 'snapshot' | 'reads' | 'keys'>;

/** Who reads: a request that has been counted, or a part of it, and its snapshot of the store. */
export class Reader {
  readonly context: RequestContext;
  readonly account: AccountId;
  readonly owner: Owner;
  readonly snapshot: Snapshot;
  /** What it was known to read when it was made, and the keys of that, in the same order. */
  readonly reads: readonly Read[];
  readonly keys: readonly CacheKey[];
  readonly #options: ReaderOptions;
  readonly #whole: Reader | undefined;
  #abortable: Abortable | undefined;

  /** `whole`: what it is a part of. */
  constructor(who: Who, options: ReaderOptions, whole?: Reader) {
    this.context = who.context;
    this.account = who.account;
    this.owner = who.owner;
    this.snapshot = who.snapshot;
    this.reads = who.reads;
    this.keys = who.keys;
    this.#options = options;
    this.#whole = whole;
  }

  /** The answer from a fresh copy, without waiting; undefined if there is none, or the request wants none. */
  fresh(read: Read): Reading | undefined {
    const { clock, policyOf } = this.#options;
    const policy = this.context.cacheMode === 'any' ? policyOf(read.operation) : undefined;
    const entry = policy && this.copy(read);
    const freshMs = entry ? freshMsOf(entry, policy, clock.now()) : 0;
    return entry && freshMs > 0 ? readingOf(entry, freshMs, this.#options) : undefined;
  }

  /** A valid copy of any age, without waiting. */
  copy(read: Read): Entry | undefined {
    return this.snapshot.copy(this.keyOf(read));
  }

  /** Keys of the reads given to the constructor are ready; they are found by identity. */
  keyOf(read: Read): CacheKey {
    const at = this.reads.indexOf(read);
    const made = at < 0 ? undefined : this.keys[at];
    return made ?? cacheKeyOf(this.account, read, this.#options.policyOf(read.operation));
  }

  /** Aborted when the client leaves, the request's time is up, or the part is given up. Made when it is first needed. */
  get abortable(): Abortable {
    return this.#whole ? (this.#abortable ??= this.#whole.abortable.part()) : this.context.abortable;
  }

  /** A reader for a part of the request, such as a section. The part can be given up alone. */
  part(): Reader {
    return new Reader(this, this.#options, this);
  }

  /** Ends what a part waits for. */
  giveUp(reason: unknown): void {
    this.abortable.abort(reason);
  }
}
