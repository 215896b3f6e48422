import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import { andThen, type Clock, type Digest, type MaybePromise } from '../core/runtime.ts';
import type { AccountId, CacheKey, Entry, Fetched, Found, Saved } from '../store/store.ts';
import type { Reader, Tally } from '../upstream/caller.ts';
import type { Call } from '../upstream/client.ts';
import type { CachePolicy, Operation } from '../upstream/operation.ts';
import type { OperationInput } from '../upstream/request.ts';
import { confirmed, entryOf, freshMsOf, usabilityOf } from './entry.ts';
import { cacheKeyOf, singleFlightKey } from './key.ts';
import type { CacheOutcome, Reading } from './reading.ts';
import { SingleFlight } from './single-flight.ts';

export interface ReadThroughOptions {
  readonly clock: Clock;
  readonly digest: Digest;
  readonly call: Call;
  /** Whether the upstream is taken to be out of service: then nobody who may have a copy waits for its answer. */
  readonly isOut: (account: AccountId) => boolean;
  readonly metrics: Metrics;
  /** How long a call may take with all its attempts, whoever waits for it. */
  readonly timeoutMs: number;
  /** Refuses input that is not as documented; a copy is looked for first, since what it answered was checked. */
  check(operation: Operation, input: OperationInput): void;
  /** The policy in force; nothing for an operation that is never cached. */
  policyOf(operation: Operation): CachePolicy | undefined;
}

/** One read: what is wanted, for whom, and what its answer is kept under. */
interface Read {
  readonly operation: Operation;
  readonly input: OperationInput;
  readonly caller: Reader;
  readonly key: CacheKey;
  readonly policy: CachePolicy | undefined;
}

/** What a fetch comes back with, for all who wait for it. */
type Result = Good | Failed;

interface Good {
  readonly status: number;
  readonly entry: Entry | null;
  readonly stored: boolean;
  /** Made by another instance. */
  readonly collapsed?: boolean;
}

interface Failed {
  readonly error: unknown;
  /** Whether nothing has invalidated the copies that were found before. */
  readonly holds: boolean;
}

/** Fresh copy → stale copy and a refresh behind it → the upstream → on its failure an older copy, at once when it is out. */
export class ReadThrough {
  readonly #of: ReadThroughOptions;
  readonly #flights = new SingleFlight<Result>();
  /** Numbers of the requests that share with no other, by what each has one of; an id that a client sends may be anyone's. */
  readonly #numbers = new WeakMap<Tally, number>();
  #count = 0;

  constructor(options: ReadThroughOptions) {
    this.#of = options;
    options.metrics.watch('flights', () => this.#flights.size);
  }

  /** @throws GatewayError `validation_failed`, a refusal or a failure of the upstream */
  read(operation: Operation, input: OperationInput, caller: Reader): MaybePromise<Reading> {
    const policy = this.#of.policyOf(operation);
    const key = cacheKeyOf(caller.account, operation, { input, policy });
    const read: Read = { operation, input, caller, key, policy };
    return andThen(caller.snapshot.lookup(key, this.#of.clock.now()), (found) =>
      caller.wants === 'no-store' ? this.#alone(read, found) : this.#answer(read, found),
    );
  }

  /** A copy of any age, without asking the upstream for it. */
  peek(operation: Operation, input: OperationInput, { account, snapshot }: Reader): MaybePromise<Entry | undefined> {
    const key = cacheKeyOf(account, operation, { input, policy: this.#of.policyOf(operation) });
    return andThen(snapshot.lookup(key, this.#of.clock.now()), ({ entry }) => entry);
  }

  #answer(read: Read, found: Found): MaybePromise<Reading> {
    const { policy, caller } = read;
    const { entry } = found;
    if (!policy) return this.#ask(read, found, 'bypass');
    if (caller.wants === 'no-cache') return this.#ask(read, found, 'request');
    if (!entry) return this.#ask(read, found, 'miss');
    const freshMs = freshMsOf(entry, policy, this.#of.clock.now());
    const usability = usabilityOf(freshMs, policy);
    if (usability === 'fresh') return this.#hit(entry, freshMs);
    const isCopyEnough = usability === 'stale' || (usability === 'on-error' && this.#of.isOut(caller.account));
    if (!isCopyEnough) return this.#ask(read, found, 'stale');
    // The refresh, behind the answer; nobody waits for it and nobody can leave it.
    if (!found.isElsewhere) this.#join(read, found);
    return this.#hit(entry, freshMs);
  }

  #hit(entry: Entry, freshMs: number): Reading {
    const isFresh = freshMs > 0;
    this.#of.metrics.readDone(isFresh ? 'hit' : 'stale');
    const ttl = isFresh ? Math.floor(freshMs / 1000) : Math.min(-1, Math.floor(freshMs / 1000));
    const outcome = { hit: { ttl } };
    return {
      status: 200,
      entry,
      state: isFresh ? 'fresh' : 'stale',
      age: this.#ageOf(entry),
      outcome,
      cacheable: true,
    };
  }

  async #ask(read: Read, found: Found, fwd: NonNullable<CacheOutcome['fwd']>): Promise<Reading> {
    this.#of.check(read.operation, read.input);
    const { result, joined } = this.#join(read, found, read.caller.signal());
    const done = await result.catch((error: unknown) => this.#given(read, found, error));
    const older = 'error' in done ? this.#olderCopy(read, found, done) : undefined;
    if (older) return older;
    const collapsed = ('collapsed' in done && done.collapsed) || joined;
    const outcome = read.policy ? 'miss' : 'bypass';
    this.#of.metrics.readDone(collapsed ? 'collapsed' : outcome);
    if ('error' in done) throw done.error;
    const { status, entry, stored } = done;
    const age = entry ? this.#ageOf(entry) : 0;
    const cacheable = read.policy !== undefined;
    return { status, entry, state: 'fresh', age, outcome: { fwd, stored, collapsed }, cacheable };
  }

  /** Only where no write or refusal in the meantime has made it worthless. */
  #olderCopy({ policy, caller }: Read, { entry }: Found, { error, holds }: Failed): Reading | undefined {
    if (!policy || !entry || !holds || caller.wants === 'no-cache' || !isFailure(error)) return undefined;
    const freshMs = freshMsOf(entry, policy, this.#of.clock.now());
    return usabilityOf(freshMs, policy) === 'expired' ? undefined : this.#hit(entry, freshMs);
  }

  /** A call that was begun for a fresh copy is good for all; an ordinary one may be from before it was wanted. */
  #join(read: Read, found: Found, signal?: AbortSignal) {
    const { caller, key } = read;
    const freshKey = singleFlightKey(key, found.version, 'fresh');
    const isFresh = caller.wants === 'no-cache' || this.#flights.has(freshKey);
    const flightKey = isFresh ? freshKey : singleFlightKey(key, found.version, 'any');
    const start = (ends: AbortSignal) =>
      isFresh ? this.#fetch(read, found, ends) : this.#fetchInTurn(read, found, ends);
    return this.#flights.join(flightKey, { start, background: caller.background, ...(signal && { signal }) });
  }

  /** Neither answered from the cache nor put in it, and shared within its own request at most. */
  async #alone(read: Read, { version, askedAt }: Found): Promise<Reading> {
    const { caller, key } = read;
    this.#of.check(read.operation, read.input);
    this.#of.metrics.readDone('bypass');
    const found = { entry: undefined, version, askedAt };
    const start = (ends: AbortSignal) => this.#fetch({ ...read, policy: undefined }, found, ends);
    const flightKey = singleFlightKey(key, version, `alone ${this.#numberOf(caller)}`);
    const { result } = this.#flights.join(flightKey, { start, background: caller.background, signal: caller.signal() });
    const done = await result;
    if ('error' in done) throw done.error;
    const { status, entry } = done;
    return { status, entry, state: 'fresh', age: 0, outcome: { fwd: 'request' }, cacheable: false };
  }

  #numberOf({ tally }: Reader): number {
    const number = this.#numbers.get(tally) ?? ++this.#count;
    this.#numbers.set(tally, number);
    return number;
  }

  /** Where another instance is fetching the same just now, its answer is as good. */
  async #fetchInTurn(read: Read, found: Found, signal: AbortSignal): Promise<Result> {
    const { snapshot } = read.caller;
    if (!snapshot.lease || !read.policy) return this.#fetch(read, found, signal);
    const leased = await snapshot.lease(read.key, found, signal);
    const { entry, isMade } = leased;
    return isMade && entry ? { status: 200, entry, stored: true, collapsed: true } : this.#fetch(read, leased, signal);
  }

  /** Whatever comes of it, the store is told: others may wait for it. */
  async #fetch(read: Read, found: Found, signal: AbortSignal): Promise<Result> {
    try {
      const { status, entry, isStorable } = await this.#call(read, found, signal);
      const isKept = entry !== null && status === 200 && isStorable;
      const fetched: Fetched = isKept ? { entry: read.policy && entry } : { drop: found.entry && 'key' };
      return { status, entry, stored: (await this.#save(read, found, fetched)).stored };
    } catch (error) {
      return { error, holds: (await this.#save(read, found, { drop: dropOf(error) })).holds };
    }
  }

  /** Given up by the reader itself: its client has left, or its time is up. */
  async #given({ caller, key }: Read, { version }: Found, error: unknown): Promise<Failed> {
    const found = await caller.snapshot.lookup(key, this.#of.clock.now());
    return { error, holds: found.version === version && found.entry !== undefined };
  }

  async #save({ caller, key, policy }: Read, found: Found, fetched: Fetched): Promise<Saved> {
    const isOfNoUse = policy === undefined && fetched.drop === undefined;
    return isOfNoUse ? { stored: false, holds: true } : caller.snapshot.save(key, found, fetched);
  }

  async #call({ operation, input, caller }: Read, { entry }: Found, signal: AbortSignal) {
    const { clock, call, digest, timeoutMs } = this.#of;
    const { account, owner, from, tally, background } = caller;
    const validators = entry && hasAny(entry.validators) ? entry.validators : undefined;
    const endsAt = clock.now() + timeoutMs;
    const asked = { account, owner, operation, input, from, tally, background, validators, signal, endsAt };
    const answer = await call(asked);
    const { status, isStorable, notModified } = answer;
    if (notModified && entry) return { status: 200, isStorable, entry: confirmed(entry, answer, clock.now()) };
    return { status, isStorable, entry: await entryOf(answer, clock.now(), digest) };
  }

  #ageOf(entry: Entry): number {
    return Math.max(0, Math.floor((this.#of.clock.now() - entry.storedAt) / 1000));
  }
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
