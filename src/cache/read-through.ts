import type { Cancellation } from '../core/cancellation.ts';
import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock, Digest } from '../core/runtime.ts';
import type { Owner } from '../store/owner.ts';
import type { AccountId, CacheKey, Entry, Fetched, Found, LocalStore, Snapshot } from '../store/store.ts';
import type { Call } from '../upstream/client.ts';
import type { CachePolicy, Operation } from '../upstream/operation.ts';
import type { OperationInput, Read } from '../upstream/request.ts';
import type { RequestContext } from '../upstream/request-context.ts';
import { ageOf, confirmed, entryOf, freshMsOf, passingEntry, usabilityOf } from './entry.ts';
import { cacheKeyOf, singleFlightKey } from './key.ts';
import type { Reading } from './reading.ts';
import { SingleFlight } from './single-flight.ts';

export interface ReadThroughOptions {
  readonly clock: Clock;
  readonly digest: Digest;
  readonly call: Call;
  /** Whether the upstream is taken to be out of service: then nobody who may have a copy waits for its answer. */
  readonly isCircuitOpen: (account: AccountId) => boolean;
  readonly metrics: Metrics;
  /** How long a call may take with all its attempts, whoever waits for it. */
  readonly timeoutMs: number;
  /** Refuses input that is not as documented; a copy is looked for first, since what it answered was checked. */
  readonly check: (operation: Operation, input: OperationInput) => void;
  /** The policy in force; nothing for an operation that is never cached. */
  readonly policyOf: (operation: Operation) => CachePolicy | undefined;
}

/** Somebody who reads, and what the store knew of the account when the request came. It has been counted. */
export interface Reader {
  readonly context: RequestContext;
  readonly account: AccountId;
  readonly owner: Owner;
  readonly snapshot: Snapshot;
  /** Of the request, or of a part of it. */
  readonly cancellation: Cancellation;
}

interface Wanted extends Read {
  readonly reader: Reader;
  readonly key: CacheKey;
  readonly policy: CachePolicy | undefined;
}

/** What a fetch comes back with, for all who wait for it. */
type Result = Good | Failed;

interface Good {
  readonly status: number;
  readonly entry: Entry | null;
  readonly isStored: boolean;
  /** Made by another instance. */
  readonly isCollapsed?: boolean;
}

interface Failed {
  readonly error: unknown;
  /** Whether nothing has invalidated the copies that were found before. */
  readonly holds: boolean;
}

/** Fresh copy → stale copy and a refresh behind it → the upstream → on its failure an older copy, at once when it is out. */
export class ReadThrough {
  readonly #of: ReadThroughOptions;
  /** Begun for a fresh copy, and so good for all. */
  readonly #freshFlights = new SingleFlight<Result>();
  readonly #flights = new SingleFlight<Result>();
  /** Shared within one request only. */
  readonly #ownFlights = new SingleFlight<Result>();
  /** Numbers of the requests that share with no other; an id that a client sends may be anyone's. */
  readonly #numbers = new WeakMap<RequestContext, number>();
  #count = 0;

  constructor(options: ReadThroughOptions) {
    this.#of = options;
    const flights = [this.#freshFlights, this.#flights, this.#ownFlights];
    options.metrics.watch('reads', () => flights.reduce((sum, { size }) => sum + size, 0));
  }

  /** A fresh copy, without waiting. Nothing where there is none: then `read` knows what to do. */
  fresh(read: Read, store: LocalStore, holder: { readonly account: AccountId; readonly owner: Owner }) {
    const policy = this.#of.policyOf(read.operation);
    if (!policy) return undefined;
    const now = this.#of.clock.now();
    const key = cacheKeyOf(holder.account, read.operation, { input: read.input, policy });
    const entry = store.copy(key, holder.owner, now);
    const freshMs = entry ? freshMsOf(entry, policy, now) : 0;
    return entry && freshMs > 0 ? readingOf(entry, freshMs, now) : undefined;
  }

  /** @throws GatewayError `validation_failed`, a refusal or a failure of the upstream */
  async read(operation: Operation, input: OperationInput, reader: Reader): Promise<Reading> {
    const { policyOf, isCircuitOpen, clock } = this.#of;
    const policy = policyOf(operation);
    const key = cacheKeyOf(reader.account, operation, { input, policy });
    const wanted: Wanted = { operation, input, reader, key, policy };
    const found = await reader.snapshot.lookup(key, clock.now());
    const { wants } = reader.context;
    if (wants === 'no-store') return this.#alone(wanted, found);
    if (!policy) return this.#ask(wanted, found, 'bypass');
    if (wants === 'no-cache') return this.#ask(wanted, found, 'request');
    if (!found.entry) return this.#ask(wanted, found, 'miss');
    const freshMs = freshMsOf(found.entry, policy, clock.now());
    const usability = usabilityOf(freshMs, policy);
    if (usability === 'fresh') return this.#copy(found.entry, freshMs);
    const isCopyEnough = usability === 'stale' || (usability === 'on-error' && isCircuitOpen(reader.account));
    if (!isCopyEnough) return this.#ask(wanted, found, 'stale');
    // The refresh, behind the answer; nobody waits for it and nobody can leave it.
    if (!found.isLeasedElsewhere) void this.#join(wanted, found).result;
    return this.#copy(found.entry, freshMs);
  }

  /** A copy of any age, without asking the upstream for it. */
  async peek({ operation, input }: Read, { account, snapshot }: Reader): Promise<Entry | undefined> {
    const key = cacheKeyOf(account, operation, { input, policy: this.#of.policyOf(operation) });
    return (await snapshot.lookup(key, this.#of.clock.now())).entry;
  }

  #copy(entry: Entry, freshMs: number): Reading {
    this.#of.metrics.readDone(freshMs > 0 ? 'hit' : 'stale');
    return readingOf(entry, freshMs, this.#of.clock.now());
  }

  async #ask(wanted: Wanted, found: Found, fwd: NonNullable<Reading['fwd']>): Promise<Reading> {
    const { check, metrics, clock } = this.#of;
    const { operation, input, reader, policy } = wanted;
    check(operation, input);
    const { result, isJoined } = this.#join(wanted, found, reader.cancellation);
    let done: Result;
    try {
      done = await result;
    } catch (error) {
      done = await this.#given(wanted, found, error);
    }
    const older = 'error' in done ? this.#olderCopy(wanted, found, done) : undefined;
    if (older) return older;
    const isCollapsed = isJoined || ('isCollapsed' in done && done.isCollapsed);
    metrics.readDone(isCollapsed ? 'collapsed' : policy ? 'miss' : 'bypass');
    if ('error' in done) throw done.error;
    const { status, entry, isStored } = done;
    const age = entry ? ageOf(entry, clock.now()) : 0;
    return { status, entry, age, fwd, isStored, isCollapsed, isCacheable: policy !== undefined };
  }

  /** Only where no write or refusal in the meantime has made it invalid. */
  #olderCopy({ policy, reader }: Wanted, { entry }: Found, { error, holds }: Failed): Reading | undefined {
    if (!policy || !entry || !holds || reader.context.wants === 'no-cache' || !isFailure(error)) return undefined;
    const freshMs = freshMsOf(entry, policy, this.#of.clock.now());
    return usabilityOf(freshMs, policy) === 'expired' ? undefined : this.#copy(entry, freshMs);
  }

  /** An ordinary call may be from before a fresh copy was wanted. */
  #join(wanted: Wanted, found: Found, waiter?: Cancellation): { result: Promise<Result>; isJoined: boolean } {
    const key = singleFlightKey(wanted.key, found.version);
    const isFresh = wanted.reader.context.wants === 'no-cache' || this.#freshFlights.has(key);
    const flights = isFresh ? this.#freshFlights : this.#flights;
    const isJoined = flights.has(key);
    return { result: flights.join(key, this.#joining(wanted, found, waiter)), isJoined };
  }

  #joining(wanted: Wanted, found: Found, waiter: Cancellation | undefined) {
    const start = (cancellation: Cancellation) => this.#fetch(wanted, found, cancellation);
    return { start, waiter, background: wanted.reader.context.background };
  }

  /** Neither answered from the cache nor put in it, and shared within its own request at most. */
  async #alone(wanted: Wanted, { version, askedAt }: Found): Promise<Reading> {
    const { operation, input, reader, key } = wanted;
    this.#of.check(operation, input);
    this.#of.metrics.readDone('bypass');
    const ownKey = singleFlightKey(key, `${version} ${this.#numberOf(reader.context)}`);
    const found = { entry: undefined, version, askedAt };
    const joining = this.#joining({ ...wanted, policy: undefined }, found, reader.cancellation);
    const done = await this.#ownFlights.join(ownKey, joining);
    if ('error' in done) throw done.error;
    const { status, entry } = done;
    return { status, entry, age: 0, fwd: 'request', isCacheable: false };
  }

  #numberOf(context: RequestContext): number {
    const number = this.#numbers.get(context) ?? ++this.#count;
    this.#numbers.set(context, number);
    return number;
  }

  /**
   * Where another instance is fetching the same just now, its answer is as good. Whatever comes of a fetch, the store
   * hears of it: others may wait for it.
   */
  async #fetch(wanted: Wanted, found: Found, cancellation: Cancellation): Promise<Result> {
    const { key, policy, reader } = wanted;
    const isShared = policy !== undefined && reader.context.wants === 'any';
    const leased = (isShared && (await reader.snapshot.lease?.(key, found, cancellation))) || found;
    if (leased.isMadeElsewhere && leased.entry)
      return { status: 200, entry: leased.entry, isStored: true, isCollapsed: true };
    try {
      const { status, entry, isStorable } = await this.#call(wanted, leased, cancellation);
      const isKept = entry !== null && status === 200 && isStorable;
      if (!policy && (isKept || !leased.entry)) return { status, entry, isStored: false };
      const fetched: Fetched = isKept ? { entry } : { drop: leased.entry && 'key' };
      return { status, entry, isStored: (await reader.snapshot.save(key, leased, fetched)).stored };
    } catch (error) {
      const drop = dropOf(error);
      const isNews = policy !== undefined || drop !== undefined;
      return { error, holds: !isNews || (await reader.snapshot.save(key, leased, { drop })).holds };
    }
  }

  /** Given up by the reader itself: its client has left, or its time is up. */
  async #given({ reader, key }: Wanted, { version }: Found, error: unknown): Promise<Failed> {
    const found = await reader.snapshot.lookup(key, this.#of.clock.now());
    return { error, holds: found.version === version && found.entry !== undefined };
  }

  async #call({ operation, input, reader, policy }: Wanted, { entry }: Found, cancellation: Cancellation) {
    const { clock, call, digest, timeoutMs } = this.#of;
    const { account, owner, context } = reader;
    const validators = entry && hasAny(entry.validators) ? entry.validators : undefined;
    const endsAt = clock.now() + timeoutMs;
    const answer = await call({ context, account, owner, operation, input, validators, cancellation, endsAt });
    const { status, isStorable, notModified } = answer;
    const now = clock.now();
    if (notModified && entry) return { status: 200, isStorable, entry: confirmed(entry, answer, now) };
    return { status, isStorable, entry: policy ? await entryOf(answer, now, digest) : passingEntry(answer, now) };
  }
}

function readingOf(entry: Entry, freshMs: number, now: number): Reading {
  const seconds = Math.floor(freshMs / 1000);
  const ttl = freshMs > 0 ? seconds : Math.min(-1, seconds);
  return { status: 200, entry, age: ageOf(entry, now), ttl, isCacheable: true };
}

/** A refusal says that what is held is no longer true, or no longer the account's to see. */
function dropOf(error: unknown): Fetched['drop'] {
  if (!(error instanceof GatewayError)) return undefined;
  const { status } = error;
  if (status === 401 || status === 403) return 'everything';
  return status >= 500 || status === 429 ? undefined : 'key';
}

const hasAny = (validators: Entry['validators']) =>
  validators.etag !== undefined || validators.lastModified !== undefined;

/** A failure of the upstream's, which an older copy may stand in for. Never a refusal of the account. */
function isFailure(error: unknown): boolean {
  return error instanceof GatewayError && (error.status === 429 || (error.status >= 502 && error.status <= 504));
}
