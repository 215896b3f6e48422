import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import { andThen, type Clock, type Digest, type MaybePromise } from '../core/runtime.ts';
import {
  type AccountId,
  type Answers,
  type Entry,
  EVERYTHING,
  type Found,
  type Place,
  type Turns,
  type Versions,
} from '../store/store.ts';
import type { Caller } from '../upstream/caller.ts';
import type { Call } from '../upstream/client.ts';
import type { CachePolicy, Operation } from '../upstream/operation.ts';
import type { OperationInput } from '../upstream/request.ts';
import { confirmed, entryOf, freshMsOf, timesOf, usabilityOf } from './entry.ts';
import { flightKey, placeOf } from './key.ts';
import type { CacheOutcome, Reading } from './reading.ts';
import { SingleFlight } from './single-flight.ts';
import { takeTurn } from './turn.ts';

export interface ReadThroughOptions {
  readonly answers: Answers;
  readonly turns: Turns | undefined;
  readonly clock: Clock;
  readonly digest: Digest;
  readonly call: Call;
  /** Whether the upstream is taken to be out of service: then nobody who may have a copy waits for its answer. */
  readonly isOut: () => boolean;
  readonly metrics: Metrics;
  /** How long a call may take with all its attempts, whoever waits for it. */
  readonly timeoutMs: number;
  /** Refuses input that is not as documented; a copy is looked for first, since what it answered was checked. */
  check(operation: Operation, input: OperationInput): void;
  /** The policy in force; nothing for an operation that is never cached. */
  policyOf(operation: Operation): CachePolicy | undefined;
}

type Account = Caller & { readonly account: AccountId };

/** One read: what is wanted, for whom, and where its answer would be kept. */
interface Read {
  readonly operation: Operation;
  readonly input: OperationInput;
  readonly caller: Caller;
  readonly place: Place;
  readonly policy: CachePolicy | undefined;
}

/** What a call under way comes back with, for all who wait for it. */
interface Landed {
  readonly status: number;
  readonly entry: Entry | null;
  readonly stored: boolean;
  /** Made by the call of another instance. */
  readonly collapsed?: boolean;
}

/** Fresh copy → stale copy and a refresh behind it → the upstream → on its failure an older copy, at once when it is out. */
export class ReadThrough {
  readonly #of: ReadThroughOptions;
  readonly #flights = new SingleFlight<Landed>();
  #lastAskedAt = 0;

  constructor(options: ReadThroughOptions) {
    this.#of = options;
    options.metrics.watch('flights', () => this.#flights.size);
  }

  /** @throws GatewayError `validation_failed`, a refusal or a failure of the upstream */
  read(operation: Operation, input: OperationInput, caller: Account): MaybePromise<Reading> {
    const place = placeOf(caller.account, operation, input);
    const read: Read = { operation, input, caller, place, policy: this.#of.policyOf(operation) };
    return andThen(caller.known.lookup(place, this.#of.clock.now()), (found) =>
      caller.wants === 'no-store' ? this.#alone(read, found.versions) : this.#answer(read, found),
    );
  }

  /** A copy of any age, without asking the upstream for it. */
  peek(operation: Operation, input: OperationInput, { account, known }: Account): MaybePromise<Entry | undefined> {
    const place = placeOf(account, operation, input);
    return andThen(known.lookup(place, this.#of.clock.now()), ({ entry }) => entry);
  }

  #answer(read: Read, found: Found): MaybePromise<Reading> {
    const { policy, caller } = read;
    const { entry } = found;
    if (!policy) return this.#ask(read, found, 'bypass');
    if (caller.wants === 'no-cache') return this.#ask(read, found, 'request');
    if (!entry) return this.#ask(read, found, 'miss');
    const freshMs = freshMsOf(entry, policy, this.#of.clock.now());
    const usability = found.isDoubtful && freshMs <= 0 ? 'expired' : usabilityOf(freshMs, policy);
    if (usability === 'fresh') return this.#hit(entry, freshMs);
    const isCopyEnough = usability === 'stale' || (usability === 'on-error' && this.#of.isOut());
    if (!isCopyEnough) return this.#ask(read, found, 'stale');
    this.#join(read, found); // the refresh, behind the answer; nobody waits for it and nobody can leave it
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
    try {
      const { status, entry, stored, collapsed = joined } = await result;
      this.#asked(read, collapsed);
      const outcome = { fwd, stored, collapsed };
      const age = entry ? this.#ageOf(entry) : 0;
      return { status, entry, state: 'fresh', age, outcome, cacheable: read.policy !== undefined };
    } catch (error) {
      const older = await this.#olderCopy(read, error);
      if (older) return older;
      this.#asked(read, joined);
      throw error;
    }
  }

  #asked({ policy }: Read, joined: boolean): void {
    const outcome = policy ? 'miss' : 'bypass';
    this.#of.metrics.readDone(joined ? 'collapsed' : outcome);
  }

  /** Looked up again: a write or a refusal in the meantime has made the copy worthless. */
  async #olderCopy({ policy, place, caller }: Read, error: unknown): Promise<Reading | undefined> {
    if (!policy || caller.wants === 'no-cache' || !isFailure(error)) return undefined;
    const { entry, isDoubtful } = await this.#of.answers.lookup(place, this.#of.clock.now());
    if (!entry) return undefined;
    const freshMs = freshMsOf(entry, policy, this.#of.clock.now());
    if (isDoubtful && freshMs <= 0) return undefined;
    return usabilityOf(freshMs, policy) === 'expired' ? undefined : this.#hit(entry, freshMs);
  }

  /** A call that was begun for a fresh copy is good for all; an ordinary one may be from before it was wanted. */
  #join(read: Read, found: Found, signal?: AbortSignal) {
    const { caller, place } = read;
    const freshKey = flightKey(place, found.versions, 'fresh');
    const isFresh = caller.wants === 'no-cache' || this.#flights.has(freshKey);
    const key = isFresh ? freshKey : flightKey(place, found.versions, 'any');
    const start = (ends: AbortSignal) =>
      isFresh ? this.#fetch(read, found, ends) : this.#fetchInTurn(read, found, ends);
    return this.#flights.join(key, { start, background: caller.background, ...(signal && { signal }) });
  }

  /** Neither answered from the cache nor put in it, and shared within its own request at most. */
  async #alone(read: Read, versions: Versions): Promise<Reading> {
    const { caller, place } = read;
    this.#of.check(read.operation, read.input);
    this.#of.metrics.readDone('bypass');
    const nothing = { entry: undefined, versions };
    const start = (ends: AbortSignal) => this.#fetch({ ...read, policy: undefined }, nothing, ends);
    const key = flightKey(place, versions, `alone ${caller.from.requestId}`);
    const { result } = this.#flights.join(key, { start, background: caller.background, signal: caller.signal() });
    return { ...(await result), state: 'fresh', age: 0, outcome: { fwd: 'request' }, cacheable: false };
  }

  /** Where another instance is asking for the same just now, its answer is as good. */
  async #fetchInTurn(read: Read, found: Found, signal: AbortSignal): Promise<Landed> {
    const { answers, turns, clock } = this.#of;
    if (!turns || !read.policy) return this.#fetch(read, found, signal);
    const turn = await takeTurn({ answers, turns, clock }, { place: read.place, found, signal });
    if ('copy' in turn) return { status: 200, entry: turn.copy, stored: true, collapsed: true };
    return this.#fetch(read, found, signal).finally(() => read.caller.background(turn.end()));
  }

  async #fetch(read: Read, { entry, versions }: Found, signal: AbortSignal): Promise<Landed> {
    const { operation, input, caller, place, policy } = read;
    const { account } = place;
    const { answers, clock, call, digest, timeoutMs } = this.#of;
    const validators = entry && hasAny(entry.validators) ? entry.validators : undefined;
    const { from, tally } = caller;
    const askedAt = this.#nextAskedAt();
    try {
      const endsAt = clock.now() + timeoutMs;
      const answer = await call({ account, operation, input, from, tally, validators, signal, endsAt });
      const times = timesOf(askedAt, clock.now(), policy);
      const isConfirmed = answer.notModified && entry !== undefined;
      const status = isConfirmed ? 200 : answer.status;
      const made = isConfirmed ? confirmed(entry, answer, times) : await entryOf(answer, times, digest);
      const isGood = made !== null && status === 200;
      const stored = policy && isGood ? await answers.save(place, made, versions) : false;
      if (entry && !isGood) await answers.drop(place);
      return { status, entry: made, stored };
    } catch (error) {
      await this.#forget(place, error);
      throw error;
    }
  }

  /** A refusal says that what is held is no longer true, or no longer the account's to see. */
  async #forget(place: Place, error: unknown): Promise<void> {
    if (!(error instanceof GatewayError) || error.status >= 500 || error.status === 429) return;
    if (error.status === 401 || error.status === 403) await this.#of.answers.touch(place.account, [EVERYTHING]);
    else await this.#of.answers.drop(place);
  }

  /** Calls of one moment still have an order. */
  #nextAskedAt(): number {
    this.#lastAskedAt = Math.max(this.#of.clock.now(), this.#lastAskedAt + 0.001);
    return this.#lastAskedAt;
  }

  #ageOf(entry: Entry): number {
    return Math.max(0, Math.floor((this.#of.clock.now() - entry.storedAt) / 1000));
  }
}

const hasAny = (validators: Entry['validators']) =>
  validators.etag !== undefined || validators.lastModified !== undefined;

/** A failure of the upstream's, which an older copy may stand in for. Never a refusal of the account. */
function isFailure(error: unknown): boolean {
  return error instanceof GatewayError && (error.status === 429 || (error.status >= 502 && error.status <= 504));
}
