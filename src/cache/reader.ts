import {
  type AccountId,
  type CacheKey,
  type Entry,
  EVERYTHING,
  freshFor,
  type Owner,
  type Snapshot,
  type Tag,
  type Window,
  type WindowUse,
} from '../store/store.ts';
import type { CallContext, OperationInput, Read, UpstreamAnswer } from '../upstream/call.ts';
import { childOf, type Clock, type Digest } from '../core/runtime.ts';
import type { Metrics } from '../core/metrics.ts';
import type { CachePolicy, Group, Operation } from '../upstream/operation.ts';

/** How many requests are allowed in a window. `by`: the name that clients see. */
export interface Quota extends Window {
  readonly by: 'account' | 'address';
}

/** One client request, for all code that works on it. Instants are in milliseconds of the process's clock. */
export interface RequestContext extends CallContext {
  /** `no-cache`: a fresh copy, which is stored. `no-store`: neither answered from the cache nor put in it. */
  readonly wants: 'any' | 'no-cache' | 'no-store';
  /** What links begin with: scheme, host and mount path. */
  readonly origin: string;
  /** The path that the gateway is mounted under; empty where it stands alone. */
  readonly mount: string;
  /** When `REQUEST_TIMEOUT_MS` is over. */
  readonly endsAt: number;
  /** Aborted when the client leaves or the request's time is up. */
  readonly signal: AbortSignal;

  /** Set once it is known. */
  account: AccountId | undefined;
  /** Whose share of what is bounded it takes; set once it is known. */
  owner?: Owner | undefined;
  /** What it sees of the store; set once it has been counted. */
  snapshot?: Snapshot | undefined;
  /** The limit that it was counted in; absent if none applies. */
  limitUse?: { readonly quota: Quota; readonly use: WindowUse } | undefined;
}

export interface ReaderOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** The policy in force; undefined for an operation that is never cached. */
  readonly policyOf: (operation: Operation) => CachePolicy | undefined;
}

/** Whose request it is, and what it sees of the store. */
type Who = Pick<Reader, 'context' | 'account' | 'owner' | 'snapshot'>;

/** Who reads: a request that has been counted, or a part of it, and its snapshot of the store. */
export class Reader {
  readonly context: RequestContext;
  readonly account: AccountId;
  readonly owner: Owner;
  readonly snapshot: Snapshot;
  readonly #options: ReaderOptions;
  readonly #whole: Reader | undefined;
  #controller: AbortController | undefined;

  /** `whole`: what it is a part of. */
  constructor({ context, account, owner, snapshot }: Who, options: ReaderOptions, whole?: Reader) {
    this.context = context;
    this.account = account;
    this.owner = owner;
    this.snapshot = snapshot;
    this.#options = options;
    this.#whole = whole;
  }

  /** The answer from a fresh copy, without waiting; undefined if there is none, or the request wants none. */
  fresh(read: Read): Reading | undefined {
    const { clock, metrics, policyOf } = this.#options;
    const policy = this.context.wants === 'any' ? policyOf(read.operation) : undefined;
    if (!policy) return undefined;
    const entry = this.copy(read);
    const now = clock.now();
    const freshMs = entry ? freshMsOf(entry, policy, now) : 0;
    if (!entry || freshMs <= 0) return undefined;
    metrics.readDone('hit');
    return readingOf(entry, freshMs, now);
  }

  /** A valid copy of any age, without waiting. */
  copy(read: Read): Entry | undefined {
    const { clock, policyOf } = this.#options;
    return this.snapshot.copy(cacheKeyOf(this.account, read, policyOf(read.operation)), clock.now());
  }

  /** Aborted when the client leaves, the request's time is up, or the part is given up. Made when it is first needed. */
  get signal(): AbortSignal {
    return this.#whole ? this.#own.signal : this.context.signal;
  }

  /** The same reader for a part of the request, such as a section, that can be given up by itself. */
  part(): Reader {
    return new Reader(this, this.#options, this);
  }

  /** Ends what a part waits for. */
  giveUp(reason: unknown): void {
    this.#own.abort(reason);
  }

  get #own(): AbortController {
    return (this.#controller ??= childOf((this.#whole ?? this.context).signal));
  }
}

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

/** Makes an entry of an answer; null if it has no body. Without `digest` it gets no ETag: it is not kept. */
export async function entryOf(answer: UpstreamAnswer, storedAt: number, digest?: Digest): Promise<Entry | null> {
  const { text, links, validators } = answer;
  if (text === null) return null;
  const etag = digest ? `"${await digest.body(text)}"` : '';
  return { text, links, etag, storedAt, validators, ...boundOf(answer) };
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

/** Keys and tags are made only here. The store puts the account in front of the key. */
export function cacheKeyOf(account: AccountId, { operation, input }: Read, policy: CachePolicy | undefined): CacheKey {
  // Neither an operation id nor an `<ID>` can hold the delimiters, and the query comes last.
  const key = `${operation.id}/${input.id ?? ''}?${input.query}`;
  const freshMs = policy ? policy.fresh * 1000 : 0;
  const lifeMs = policy ? freshMs + Math.max(policy.stale, policy.onError) * 1000 : 0;
  return { account, key, tags: tagsOf(operation, input), freshMs, lifeMs };
}

function tagsOf({ group }: Operation, { id }: OperationInput): Tag[] {
  if (!group) return [];
  return id === undefined ? [group] : [group, itemTag(group, id)];
}

/** The tags that a write invalidates. */
export function invalidatedBy({ invalidates = [] }: Operation, { id }: OperationInput): Tag[] {
  return invalidates.map((one) => {
    if (one === 'everything') return EVERYTHING;
    return typeof one === 'string' ? one : itemTag(one.item, id ?? '');
  });
}

/** Without leading zeros: the upstream takes `05` for `5`. */
const itemTag = (group: Group, id: string): Tag => `${group}/${id.replace(/^0+(?=\d)/, '')}`;
