import type { Abortable } from '../core/abortable.ts';
import { GatewayError } from '../core/errors.ts';
import type { Digest } from '../core/runtime.ts';
import { BACKGROUND, beginPhase, during, type Phase, type Timed } from '../core/timeline.ts';
import type { CacheKey, Entry, Fetched, Found, Saved } from '../store/port.ts';
import type { OperationInput, Read, RequestContext, UpstreamAnswer, UpstreamCall } from '../upstream/call.ts';
import type { CachePolicy, Operation } from '../upstream/operation.ts';
import { ageOf, freshMsOf, type Reader, type ReaderOptions, type Reading, readingOf } from './reader.ts';
import { type Joining as JoiningOf, SingleFlight } from './single-flight.ts';

export interface ReadThroughOptions extends ReaderOptions {
  readonly digest: Digest;
  /** While its circuit is open, an older copy is served at once instead of waiting for the upstream to fail. */
  readonly calls: { readonly isCircuitOpen: boolean; make(call: UpstreamCall): Promise<UpstreamAnswer> };
  /** How long a call may take with all its attempts. */
  readonly timeoutMs: number;
  /** Refuses input that is not as documented. Called only if no copy answers: the input of a copy was checked before. */
  readonly check: (operation: Operation, input: OperationInput) => void;
}

type Joining = JoiningOf<Result, Timed>;

/** A read, and what the store has found for it. */
interface Lookup {
  readonly read: Read;
  readonly reader: Reader;
  readonly key: CacheKey;
  /** Undefined if the answer is not to be kept. */
  readonly policy: CachePolicy | undefined;
  readonly found: Found;
  /** The part of the request that it is for. */
  readonly leg: string | undefined;
  readonly context: RequestContext;
}

/** The result of a fetch, for all who wait for it. */
type Result = Good | Failed;

interface Good {
  readonly status: number;
  readonly entry: Entry | null;
  readonly isStored: boolean;
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
  readonly #flights = new SingleFlight<Result, Timed>();
  /** Copies that the upstream failed to renew, with the code of that. */
  readonly #failed = new WeakMap<Entry, string>();

  constructor(options: ReadThroughOptions) {
    this.#options = options;
    options.metrics.watch('reads', () => this.#flights.size);
  }

  /** @throws GatewayError `validation_failed`, a refusal or a failure of the upstream */
  async read(read: Read, reader: Reader, leg?: string): Promise<Reading> {
    const { policyOf, calls, clock } = this.#options;
    const { context } = reader;
    const { cacheMode } = context;
    const key = reader.keyOf(read);
    const asked = reader.snapshot.lookup(key);
    const found = asked instanceof Promise ? await during(clock, { context, leg }, 'store', asked) : asked;
    const policy = policyOf(read.operation);
    const { entry } = found;
    // Neither answered from the cache nor put in it.
    if (cacheMode === 'no-store')
      return this.#ask(
        { read, reader, key, policy: undefined, found: { ...found, entry: undefined }, leg, context },
        'request',
      );
    const lookup: Lookup = { read, reader, key, policy, found, leg, context };
    if (!policy) return this.#ask(lookup, 'bypass');
    if (cacheMode === 'no-cache') return this.#ask(lookup, 'request');
    if (!entry) return this.#ask(lookup, 'miss');
    const freshMs = freshMsOf(entry, policy, clock.now());
    const isGood = freshMs > 0 || isWithin(policy.stale, freshMs);
    const isInPlace = !isGood && isWithin(Math.max(policy.stale, policy.onError), freshMs) && calls.isCircuitOpen;
    if (!isGood && !isInPlace) return this.#ask(lookup, 'stale');
    // Refreshed in the background; no request waits for it or can cancel it.
    if (freshMs <= 0) {
      const behind = { ...lookup, leg: BACKGROUND };
      void this.#join(behind, { start: (abortable) => this.#fetch(behind, abortable) });
    }
    const failed = freshMs > 0 ? undefined : this.#failed.get(entry);
    return readingOf(entry, freshMs, this.#options, isInPlace ? (failed ?? 'upstream_unavailable') : failed);
  }

  async #ask(lookup: Lookup, fwd: NonNullable<Reading['fwd']>): Promise<Reading> {
    const { check, metrics, clock } = this.#options;
    const { read, reader, policy } = lookup;
    check(read.operation, read.input);
    let waiting: Phase | undefined;
    const onJoined = (by: Timed) => {
      waiting = beginPhase(lookup.context, 'joined', clock.now(), lookup.leg);
      waiting.joined = { requestId: by.requestId, span: by.span?.ids };
    };
    let done: Result;
    try {
      const start = (abortable: Abortable) => this.#fetch(lookup, abortable);
      done = await this.#join(lookup, { start, onJoined, waiter: reader.abortable });
    } catch (error) {
      // The reader itself has given up: its client has left, or its time is up.
      done = { error, holds: reader.snapshot.holds(lookup.key, lookup.found) };
    }
    if (waiting) waiting.end ??= clock.now();
    if ('error' in done && done.error instanceof GatewayError) lookup.context.reason ??= done.error.particulars.reason;
    const older = 'error' in done ? this.#olderCopy(lookup, done) : undefined;
    if (older) return older;
    const isCollapsed = waiting !== undefined;
    metrics.readDone(isCollapsed ? 'collapsed' : policy ? 'miss' : 'bypass');
    if ('error' in done) throw done.error;
    const { status, entry, isStored } = done;
    const age = entry ? ageOf(entry, clock.now()) : 0;
    return { status, entry, age, fwd, isStored, isCollapsed, isCacheable: policy !== undefined };
  }

  /** The copy that was found, unless a write or a refusal has invalidated it since, or it has expired. */
  #olderCopy({ policy, reader, found: { entry } }: Lookup, { error, holds }: Failed): Reading | undefined {
    if (!policy || !entry || !holds || reader.context.cacheMode === 'no-cache' || !isFailure(error)) return undefined;
    const freshMs = freshMsOf(entry, policy, this.#options.clock.now());
    const isUsable = isWithin(Math.max(policy.stale, policy.onError), freshMs);
    if (!isUsable) return undefined;
    return readingOf(entry, freshMs, this.#options, error.code);
  }

  /** `no-cache` joins no ordinary call, which may have been sent before it; `no-store` none at all. */
  #join({ key, found, context }: Lookup, how: Pick<Joining, 'start' | 'onJoined' | 'waiter'>): Promise<Result> {
    const { cacheMode, waitUntil } = context;
    // The version is part of it, so that a read after a write never joins a call from before the write.
    const flight = cacheMode === 'no-store' ? crypto.randomUUID() : `${key.account} ${found.version} ${key.key}`;
    return this.#flights.join(flight, { ...how, by: context, force: cacheMode === 'no-cache', waitUntil });
  }

  async #fetch(lookup: Lookup, abortable: Abortable): Promise<Result> {
    const { policy, found } = lookup;
    try {
      const answer = await this.#call(lookup, abortable);
      const status = answer.notModified ? 200 : answer.status;
      const isValidated = policy !== undefined || lookup.read.operation.polled === true;
      const etag = isValidated && answer.text !== null ? `"${await this.#options.digest.body(answer.text)}"` : '';
      const entry = entryOf(answer, found.entry, { etag, storedAt: this.#options.clock.now() });
      const isKept = entry !== null && status === 200 && answer.isStorable;
      if (!policy && (isKept || !found.entry)) return { status, entry, isStored: false };
      const fetched: Fetched = isKept ? { entry } : { drop: found.entry && 'key' };
      return { status, entry, isStored: (await this.#save(lookup, fetched)).stored };
    } catch (error) {
      if (found.entry && isFailure(error)) this.#failed.set(found.entry, error.code);
      const drop = dropOf(error);
      if (!drop) return { error, holds: lookup.reader.snapshot.holds(lookup.key, found) };
      return { error, holds: (await this.#save(lookup, { drop })).holds };
    }
  }

  #save(lookup: Lookup, fetched: Fetched): Promise<Saved> | Saved {
    const saved = lookup.reader.snapshot.save(lookup.key, lookup.found, fetched);
    return saved instanceof Promise ? during(this.#options.clock, lookup, 'store', saved) : saved;
  }

  #call({ read, reader, leg, found }: Lookup, abortable: Abortable): Promise<UpstreamAnswer> {
    const { clock, calls, timeoutMs } = this.#options;
    const { operation, input } = read;
    const { account, owner, context } = reader;
    const copy = found.entry; // which the upstream may confirm
    const validators = copy && hasAny(copy.validators) ? copy.validators : undefined;
    const endsAt = clock.now() + timeoutMs;
    return calls.make({ context, account, owner, leg, operation, input, validators, abortable, endsAt });
  }
}

/** Whether a copy is fresh, or has not been stale for so many seconds. */
const isWithin = (seconds: number, freshMs: number) => -freshMs < seconds * 1000;

/** The copy that the upstream has confirmed with a 304; else what it answered, or null without a body. */
function entryOf(
  answer: UpstreamAnswer,
  copy: Entry | undefined,
  made: Pick<Entry, 'etag' | 'storedAt'>,
): Entry | null {
  const { text, links, validators, maxFreshMs, notModified } = answer;
  const bound = maxFreshMs === undefined ? {} : { maxFreshMs };
  if (notModified && copy)
    return { ...copy, ...bound, storedAt: made.storedAt, validators: { ...copy.validators, ...validators } };
  return text === null ? null : { text, links, validators, ...made, ...bound };
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
function isFailure(error: unknown): error is GatewayError {
  return error instanceof GatewayError && (error.status === 429 || (error.status >= 502 && error.status <= 504));
}
