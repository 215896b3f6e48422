import { GatewayError } from '../core/errors.ts';
import type { Digest } from '../core/runtime.ts';
import type { CacheKey, Entry, Fetched, Found } from '../store/store.ts';
import type { CallUpstream, OperationInput, Read } from '../upstream/call.ts';
import type { CachePolicy, Operation } from '../upstream/operation.ts';
import {
  ageOf,
  cacheKeyOf,
  confirmed,
  entryOf,
  freshMsOf,
  type Reader,
  type ReaderOptions,
  type Reading,
  readingOf,
  usabilityOf,
} from './reader.ts';
import { SingleFlight } from './single-flight.ts';

export interface ReadThroughOptions extends ReaderOptions {
  readonly digest: Digest;
  readonly call: CallUpstream;
  /** While it is open, an older copy is served at once instead of waiting for the upstream to fail. */
  readonly isCircuitOpen: (reader: Reader) => boolean;
  /** How long a call may take with all its attempts. */
  readonly timeoutMs: number;
  /** Refuses input that is not as documented. Called only if no copy answers: the input of a copy was checked before. */
  readonly check: (operation: Operation, input: OperationInput) => void;
}

/** A read, and what the store has found for it. */
interface Lookup extends Read {
  readonly reader: Reader;
  readonly key: CacheKey;
  /** Undefined if the answer is not to be kept. */
  readonly policy: CachePolicy | undefined;
  readonly found: Found;
}

/** The result of a fetch, for all who wait for it. */
type Result = Good | Failed;

interface Good {
  readonly status: number;
  readonly entry: Entry | null;
  readonly isStored: boolean;
  /** Fetched by another instance. */
  readonly isCollapsed?: boolean;
}

interface Failed {
  readonly error: unknown;
  /** Whether the copy that was found is still valid. */
  readonly holds: boolean;
}

/**
 * Answers with a fresh copy; else with a stale one, which is refreshed in the background; else from the upstream; and if
 * that fails, or at once while the circuit is open, with an older copy.
 */
export class ReadThrough {
  readonly #options: ReadThroughOptions;
  readonly #flights = new SingleFlight<Result>();
  /** Of calls for requests with `no-store`, which nobody joins. */
  #count = 0;

  constructor(options: ReadThroughOptions) {
    this.#options = options;
    options.metrics.watch('reads', () => this.#flights.size);
  }

  /** @throws GatewayError `validation_failed`, a refusal or a failure of the upstream */
  async read({ operation, input }: Read, reader: Reader): Promise<Reading> {
    const { policyOf, isCircuitOpen, clock } = this.#options;
    const policy = policyOf(operation);
    const key = cacheKeyOf(reader.account, { operation, input }, policy);
    const found = await reader.snapshot.lookup(key, clock.now());
    const lookup: Lookup = { operation, input, reader, key, policy, found };
    const { entry } = found;
    const { wants } = reader.context;
    // Neither answered from the cache nor put in it.
    if (wants === 'no-store')
      return this.#ask({ ...lookup, policy: undefined, found: { ...found, entry: undefined } }, 'request');
    if (!policy) return this.#ask(lookup, 'bypass');
    if (wants === 'no-cache') return this.#ask(lookup, 'request');
    if (!entry) return this.#ask(lookup, 'miss');
    const freshMs = freshMsOf(entry, policy, clock.now());
    const usability = usabilityOf(freshMs, policy);
    if (usability === 'fresh') return this.#answer(entry, freshMs);
    const isEnough = usability === 'stale' || (usability === 'on-error' && isCircuitOpen(reader));
    if (!isEnough) return this.#ask(lookup, 'stale');
    // Refreshes in the background; no request waits for it or can cancel it.
    if (!found.isLeasedElsewhere) void this.#join(lookup, this.#flightOf(lookup));
    return this.#answer(entry, freshMs);
  }

  /** From a copy. */
  #answer(entry: Entry, freshMs: number): Reading {
    this.#options.metrics.readDone(freshMs > 0 ? 'hit' : 'stale');
    return readingOf(entry, freshMs, this.#options.clock.now());
  }

  async #ask(lookup: Lookup, fwd: NonNullable<Reading['fwd']>): Promise<Reading> {
    const { check, metrics, clock } = this.#options;
    const { operation, input, reader, policy } = lookup;
    check(operation, input);
    const flight = this.#flightOf(lookup);
    const isJoined = this.#flights.has(flight);
    const done = await this.#join(lookup, flight, reader.signal).catch((error: unknown) =>
      this.#abandoned(lookup, error),
    );
    const older = 'error' in done ? this.#olderCopy(lookup, done) : undefined;
    if (older) return older;
    const isCollapsed = isJoined || ('isCollapsed' in done && done.isCollapsed);
    metrics.readDone(isCollapsed ? 'collapsed' : policy ? 'miss' : 'bypass');
    if ('error' in done) throw done.error;
    const { status, entry, isStored } = done;
    const age = entry ? ageOf(entry, clock.now()) : 0;
    return { status, entry, age, fwd, isStored, isCollapsed, isCacheable: policy !== undefined };
  }

  /** The copy that was found, unless a write or a refusal has invalidated it since, or it has expired. */
  #olderCopy({ policy, reader, found: { entry } }: Lookup, { error, holds }: Failed): Reading | undefined {
    if (!policy || !entry || !holds || reader.context.wants === 'no-cache' || !isFailure(error)) return undefined;
    const freshMs = freshMsOf(entry, policy, this.#options.clock.now());
    return usabilityOf(freshMs, policy) === 'expired' ? undefined : this.#answer(entry, freshMs);
  }

  #join(lookup: Lookup, flight: string, waiter?: AbortSignal): Promise<Result> {
    const { waitUntil } = lookup.reader.context;
    return this.#flights.join(flight, { start: (controller) => this.#fetch(lookup, controller), waiter, waitUntil });
  }

  /** Requests with `no-cache` do not join ordinary calls, which may have been sent before them. Any may join theirs. */
  #flightOf({ key, reader, found }: Lookup): string {
    const { wants } = reader.context;
    if (wants === 'no-store') return `no-store ${++this.#count}`;
    // The version is part of it, so that a read after a write never joins a call from before the write.
    const flight = `${key.account} ${found.version} ${key.key}`;
    const anew = `no-cache ${flight}`;
    return wants === 'no-cache' || this.#flights.has(anew) ? anew : flight;
  }

  /**
   * If another instance is fetching the same, waits for its answer. The end of a fetch is always reported to the store,
   * since other instances may wait for it.
   */
  async #fetch(lookup: Lookup, controller: AbortController): Promise<Result> {
    const { key, policy, reader, found } = lookup;
    const isShared = policy !== undefined && reader.context.wants === 'any';
    const leased = (isShared && (await reader.snapshot.lease?.(key, found, controller.signal))) || found;
    const made = leased === found ? undefined : this.#madeMeanwhile(leased, policy);
    if (made) return { status: 200, entry: made, isStored: true, isCollapsed: true };
    try {
      const { status, entry, isStorable } = await this.#call(lookup, leased.entry, controller);
      const isKept = entry !== null && status === 200 && isStorable;
      if (!policy && (isKept || !leased.entry)) return { status, entry, isStored: false };
      const fetched: Fetched = isKept ? { entry } : { drop: leased.entry && 'key' };
      return { status, entry, isStored: (await reader.snapshot.save(key, leased, fetched)).stored };
    } catch (error) {
      const drop = dropOf(error);
      const isReported = policy !== undefined || drop !== undefined;
      return { error, holds: !isReported || (await reader.snapshot.save(key, leased, { drop })).holds };
    }
  }

  /** The reader itself has given up: its client has left, or its time is up. */
  async #abandoned({ reader, key, found }: Lookup, error: unknown): Promise<Failed> {
    const { version, entry } = await reader.snapshot.lookup(key, this.#options.clock.now());
    return { error, holds: version === found.version && entry !== undefined };
  }

  /** The copy that another instance, or this one, has made before the lease was over. */
  #madeMeanwhile({ isMadeElsewhere, entry }: Found, policy: CachePolicy | undefined): Entry | undefined {
    const isFresh = entry && policy && freshMsOf(entry, policy, this.#options.clock.now()) > 0;
    return isMadeElsewhere || isFresh ? entry : undefined;
  }

  /** `entry`: the copy that the upstream may confirm. */
  async #call({ operation, input, reader, policy }: Lookup, entry: Entry | undefined, controller: AbortController) {
    const { clock, call, digest, timeoutMs } = this.#options;
    const { account, owner, context } = reader;
    const validators = entry && hasAny(entry.validators) ? entry.validators : undefined;
    const endsAt = clock.now() + timeoutMs;
    const answer = await call({ context, account, owner, operation, input, validators, controller, endsAt });
    const { status, isStorable, notModified } = answer;
    const now = clock.now();
    if (notModified && entry) return { status: 200, isStorable, entry: confirmed(entry, answer, now) };
    return { status, isStorable, entry: await entryOf(answer, now, policy ? digest : undefined) };
  }
}

/** A refusal means that the copy is no longer valid, or that the account may no longer see any. */
function dropOf(error: unknown): Fetched['drop'] {
  if (!(error instanceof GatewayError)) return undefined;
  const { status } = error;
  if (status === 401 || status === 403) return 'everything';
  return status >= 500 || status === 429 ? undefined : 'key';
}

const hasAny = (validators: Entry['validators']) =>
  validators.etag !== undefined || validators.lastModified !== undefined;

/** A failure of the upstream, for which an older copy may be served instead. Never a refusal. */
function isFailure(error: unknown): boolean {
  return error instanceof GatewayError && (error.status === 429 || (error.status >= 502 && error.status <= 504));
}
