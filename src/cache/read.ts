import type { Abortable } from '../core/abortable.ts';
import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { ClientRequest } from '../core/request.ts';
import { type Clock, type Digest, type MaybePromise, whenDone } from '../core/runtime.ts';
import { BACKGROUND, type Phase } from '../core/timeline.ts';
import { type Entry, type Fetched, type Found, freshFor, type Saved } from '../store/port.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { UpstreamAnswer, UpstreamCall } from '../upstream/call.ts';
import type { CachePolicy } from '../upstream/operation.ts';
import type { Read } from '../upstream/read.ts';
import { Flights } from './flights.ts';

/** The answer to a read, and how the cache handled it, in the terms of RFC 9211. */
export interface ReadResult {
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
export function cacheStatusOf({ ttl, fwd = 'miss', isStored, isCollapsed }: ReadResult): string {
  if (ttl !== undefined) return `portico; hit; ttl=${ttl}`;
  return `portico; fwd=${fwd}${isStored ? '; stored' : ''}${isCollapsed ? '; collapsed' : ''}`;
}

/** One word of it, for logs. */
export function cacheWordOf({ ttl, fwd = 'miss' }: Pick<ReadResult, 'ttl' | 'fwd'>): string {
  if (ttl === undefined) return fwd;
  return ttl < 0 ? 'stale' : 'hit';
}

/** For which part of a request something is read; aborted when nobody waits for that part any more. */
export interface Part {
  readonly leg?: string | undefined;
  /** Absent: as the request. */
  readonly abortable?: Abortable | undefined;
}

interface Options {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly digest: Digest;
  /** How long a call may take with all its attempts. */
  readonly timeoutMs: number;
  /** While the circuit is open, an older copy is served at once instead of waiting for the upstream to fail. */
  readonly isCircuitOpen: () => boolean;
  readonly call: (read: Read, request: ClientRequest, how: CallOptions) => Promise<UpstreamAnswer>;
  /** Called with what a request is refused with. */
  readonly onError: (request: ClientRequest, error: unknown) => void;
  /** Refuses input that is not as documented. Called only if no copy answers: the input of a copy was checked before. */
  readonly check: (read: Read) => void;
}

type CallOptions = Pick<UpstreamCall, 'leg' | 'validators' | 'abortable' | 'endsAt'>;

/** What a fetch came to, for all who wait for it. `holds`: whether the copy that was found is still valid. */
type Done =
  | { readonly status: number; readonly entry: Entry | null; readonly isStored: boolean }
  | { readonly error: unknown; readonly holds: boolean };

/**
 * Answers with a fresh copy; else with a stale one, which is refreshed in the background; else from the upstream; and if
 * that fails, or at once while the circuit is open, with an older copy.
 */
export class Cache {
  readonly #options: Options;
  readonly #flights = new Flights<Done>();
  /** Copies that the upstream failed to renew, with the code of that. */
  readonly #failed = new WeakMap<Entry, string>();

  constructor(options: Options) {
    this.#options = options;
    options.metrics.watch('reads', () => this.#flights.size);
  }

  /** The answer from a fresh copy, without waiting; undefined if there is none, or the request wants none. */
  fresh(read: Read, request: ClientRequest, snapshot: Snapshot): ReadResult | undefined {
    if (request.cacheMode !== 'any' || !read.row.policy) return undefined;
    const entry = snapshot.copy(read);
    const freshMs = entry ? freshMsOf(entry, read, this.#options.clock.now()) : 0;
    return entry && freshMs > 0 ? this.#resultOf(entry, freshMs, undefined) : undefined;
  }

  /** At once where a copy answers. @throws GatewayError `validation_failed`, a refusal or a failure of the upstream */
  read(read: Read, request: ClientRequest, snapshot: Snapshot, part: Part = WHOLE): MaybePromise<ReadResult> {
    const fresh = this.fresh(read, request, snapshot);
    if (fresh) return fresh;
    const asked = snapshot.lookup(read);
    const found = asked instanceof Promise ? request.during('store', asked, part.leg) : asked;
    return whenDone(found, (one) => {
      const { policy } = read.row;
      if (request.cacheMode !== 'no-store')
        return this.#answer(new Fetch(read, request, { snapshot, found: one, policy, part }), policy);
      // Neither answered from the cache nor put in it.
      const unseen = { ...one, entry: undefined };
      return this.#ask(new Fetch(read, request, { snapshot, found: unseen, policy: undefined, part }), 'request');
    });
  }

  /** Answers with the copy that was found, or asks the upstream. */
  #answer(fetch: Fetch, policy: CachePolicy | undefined): MaybePromise<ReadResult> {
    const { read, request, snapshot, found } = fetch;
    const { entry } = found;
    if (!policy) return this.#ask(fetch, 'bypass');
    if (request.cacheMode === 'no-cache') return this.#ask(fetch, 'request');
    if (!entry) return this.#ask(fetch, 'miss');
    const freshMs = freshMsOf(entry, read, this.#options.clock.now());
    const isGood = freshMs > 0 || isWithin(policy.stale, freshMs);
    const isInPlace = !isGood && isUsable(policy, freshMs) && this.#options.isCircuitOpen();
    if (!isGood && !isInPlace) return this.#ask(fetch, 'stale');
    // Refreshed in the background; no request waits for it or can cancel it.
    if (freshMs <= 0) void this.#join(new Fetch(read, request, { snapshot, found, policy, part: BEHIND }));
    const failed = freshMs > 0 ? undefined : this.#failed.get(entry);
    return this.#resultOf(entry, freshMs, isInPlace ? (failed ?? 'upstream_unavailable') : failed);
  }

  /** Counts and gives the answer from a copy. `code`: of the failure for which it is given although it is stale. */
  #resultOf(entry: Entry, freshMs: number, code: string | undefined): ReadResult {
    const { metrics, clock } = this.#options;
    metrics.readDone(freshMs > 0 ? 'hit' : 'stale');
    const seconds = Math.floor(freshMs / 1000);
    const ttl = freshMs > 0 ? seconds : Math.min(-1, seconds);
    return { status: 200, entry, age: ageOf(entry, clock.now()), ttl, code, isCacheable: true };
  }

  async #ask(fetch: Fetch, fwd: NonNullable<ReadResult['fwd']>): Promise<ReadResult> {
    const { check, metrics, clock, onError } = this.#options;
    const { read, request, snapshot, policy, found, part } = fetch;
    check(read);
    let waiting: Phase | undefined;
    const onJoined = (begunBy: ClientRequest) => {
      waiting = request.beginPhase('joined', part.leg);
      waiting.joined = { requestId: begunBy.requestId, span: begunBy.span?.ids };
    };
    let done: Done;
    try {
      done = await this.#join(fetch, part.abortable ?? request.abortable, onJoined);
    } catch (error) {
      // The reader itself has given up: its client has left, or its time is up.
      done = { error, holds: snapshot.holds(read, found) };
    }
    if (waiting) waiting.end ??= clock.now();
    if ('error' in done && done.error instanceof GatewayError) request.reason ??= done.error.particulars.reason;
    const older = 'error' in done ? this.#olderCopy(fetch, done.error, done.holds) : undefined;
    if (older) return older;
    const isCollapsed = waiting !== undefined;
    metrics.readDone(isCollapsed ? 'collapsed' : policy ? 'miss' : 'bypass');
    if ('error' in done) {
      onError(request, done.error); // the call may be another request's, of another session
      throw done.error;
    }
    const { status, entry, isStored } = done;
    const age = entry ? ageOf(entry, clock.now()) : 0;
    return { status, entry, age, fwd, isStored, isCollapsed, isCacheable: policy !== undefined };
  }

  /** The copy that was found, unless a write or a refusal has invalidated it since, or it has expired. */
  #olderCopy({ policy, request, read, found }: Fetch, error: unknown, holds: boolean): ReadResult | undefined {
    const { entry } = found;
    if (!policy || !entry || !holds || request.cacheMode === 'no-cache' || !isFailure(error)) return undefined;
    const freshMs = freshMsOf(entry, read, this.#options.clock.now());
    return isUsable(policy, freshMs) ? this.#resultOf(entry, freshMs, error.code) : undefined;
  }

  /** `no-cache` joins no ordinary call, which may have been sent before it; `no-store` none at all. */
  #join(fetch: Fetch, waiter?: Abortable, onJoined?: (begunBy: ClientRequest) => void): Promise<Done> {
    const { read, request, found } = fetch;
    // The version is part of it, so that a read after a write never joins a call from before the write.
    const flight =
      request.cacheMode === 'no-store' ? crypto.randomUUID() : `${request.account} ${found.version} ${read.key}`;
    const start = (abortable: Abortable) => this.#fetch(fetch, abortable);
    return this.#flights.join(flight, { request, start, waiter, ...(onJoined && { onJoined }) });
  }

  async #fetch(fetch: Fetch, abortable: Abortable): Promise<Done> {
    const { clock, digest, call, timeoutMs } = this.#options;
    const { read, request, snapshot, policy, found } = fetch;
    const { leg } = fetch.part;
    const copy = found.entry; // which the upstream may confirm
    const validators = (copy?.validators.etag ?? copy?.validators.lastModified) ? copy?.validators : undefined;
    try {
      const answer = await call(read, request, { leg, validators, abortable, endsAt: clock.now() + timeoutMs });
      const status = answer.notModified ? 200 : answer.status;
      const isValidated = policy !== undefined || read.operation.polled === true;
      const etag = isValidated && answer.text !== null ? `"${await digest.body(answer.text)}"` : '';
      const entry = entryOf(answer, found.entry, etag, clock.now());
      const isKept = entry !== null && status === 200 && answer.isStorable;
      if (!policy && (isKept || !found.entry)) return { status, entry, isStored: false };
      const saved = await this.#save(fetch, isKept ? { entry } : { drop: found.entry && 'key' });
      return { status, entry, isStored: saved.stored };
    } catch (error) {
      if (found.entry && isFailure(error)) this.#failed.set(found.entry, error.code);
      const drop = dropOf(error);
      const holds = drop ? (await this.#save(fetch, { drop })).holds : snapshot.holds(read, found);
      return { error, holds };
    }
  }

  #save({ read, request, snapshot, found, part }: Fetch, fetched: Fetched): MaybePromise<Saved> {
    const saved = snapshot.save(read, found, fetched);
    return saved instanceof Promise ? request.during('store', saved, part.leg) : saved;
  }
}

/** A read that the upstream is asked for, and what the store has found for it. */
class Fetch {
  readonly read: Read;
  readonly request: ClientRequest;
  readonly snapshot: Snapshot;
  readonly found: Found;
  /** Undefined if the answer is not to be kept. */
  readonly policy: CachePolicy | undefined;
  readonly part: Part;

  constructor(read: Read, request: ClientRequest, rest: Pick<Fetch, 'snapshot' | 'found' | 'policy' | 'part'>) {
    this.read = read;
    this.request = request;
    this.snapshot = rest.snapshot;
    this.found = rest.found;
    this.policy = rest.policy;
    this.part = rest.part;
  }
}

const WHOLE: Part = {};
const BEHIND: Part = { leg: BACKGROUND };

/** Milliseconds that an entry stays fresh; negative if it is stale. */
const freshMsOf = (entry: Entry, { freshMs }: Read, now: number) => entry.storedAt + freshFor(entry, freshMs) - now;

/** Seconds. */
const ageOf = ({ storedAt }: Entry, now: number) => Math.max(0, Math.floor((now - storedAt) / 1000));

/** Whether a copy is fresh, or has not been stale for so many seconds. */
const isWithin = (seconds: number, freshMs: number) => -freshMs < seconds * 1000;

/** Whether a copy may be given where the upstream fails. */
const isUsable = ({ stale, onError }: CachePolicy, freshMs: number) => isWithin(Math.max(stale, onError), freshMs);

/** The copy that the upstream has confirmed with a 304; else what it answered, or null without a body. */
function entryOf(answer: UpstreamAnswer, copy: Entry | undefined, etag: string, storedAt: number): Entry | null {
  const { text, links, validators, maxFreshMs, notModified } = answer;
  const bound = maxFreshMs === undefined ? {} : { maxFreshMs };
  if (notModified && copy) return { ...copy, ...bound, storedAt, validators: { ...copy.validators, ...validators } };
  return text === null ? null : { text, links, validators, etag, storedAt, ...bound };
}

/** A refusal means that the copy is no longer valid, or that the account may no longer see any. */
function dropOf(error: unknown): Fetched['drop'] {
  if (!(error instanceof GatewayError)) return undefined;
  const { status } = error;
  if (status === 401 || status === 403) return 'everything';
  return status >= 500 || status === 429 ? undefined : 'key';
}

/** A failure of the upstream, for which an older copy may be served instead. Never a refusal. */
function isFailure(error: unknown): error is GatewayError {
  return error instanceof GatewayError && (error.status === 429 || (error.status >= 502 && error.status <= 504));
}
