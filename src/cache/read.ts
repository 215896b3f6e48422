import type { Abortable } from '../core/abortable.ts';
import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { ClientRequest } from '../core/request.ts';
import { type Clock, type Digest, type MaybePromise, whenDone } from '../core/runtime.ts';
import { BACKGROUND, type Phase } from '../core/timeline.ts';
import { ageMsOf, type Entry, type Fetched, type Found, freshFor, type Saved } from '../store/port.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { UpstreamAnswer, UpstreamCall } from '../upstream/call.ts';
import type { CachePolicy } from '../upstream/operation.ts';
import type { Read } from '../upstream/read.ts';
import { Flights } from './flights.ts';

/** The answer to a read, and how the cache handled it, in the terms of `Cache-Status` (RFC 9211). */
export interface ReadResult {
  readonly status: number;
  /** Null if the upstream answered without a body. */
  readonly entry: Entry | null;
  /** Seconds since the upstream gave or confirmed the answer. */
  readonly age: number;
  /** Seconds that the copy stays fresh, negative when it is stale. Absent if the upstream was asked. */
  readonly ttl?: number | undefined;
  /** For a stale copy: the code of the failure for which there is no newer one. */
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

/** How the cache handled a read, in one word, for logs. */
export function cacheWordOf({ ttl, fwd = 'miss' }: Pick<ReadResult, 'ttl' | 'fwd'>): string {
  if (ttl === undefined) return fwd;
  return ttl < 0 ? 'stale' : 'hit';
}

export interface ReadOptions {
  /** The leg of the request that waits for the read. */
  readonly leg?: string | undefined;
  /** Aborted when nobody waits for the read any more. By default the request's own. */
  readonly abortable?: Abortable | undefined;
}

interface Options {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly digest: Digest;
  /** How long a call may take with all its attempts, in milliseconds. */
  readonly timeoutMs: number;
  /** While the circuit is open, an older copy is served at once instead of waiting for the upstream to fail. */
  readonly isCircuitOpen: () => boolean;
  readonly call: (read: Read, request: ClientRequest, how: CallOptions) => Promise<UpstreamAnswer>;
  /** Called with what a request is refused with. */
  readonly onError: (request: ClientRequest, error: unknown) => void;
  /** Throws for input that is not as documented. Called only where no copy answers: a copy's input was checked before. */
  readonly check: (read: Read) => void;
}

type CallOptions = Pick<UpstreamCall, 'leg' | 'validators' | 'abortable' | 'endsAt'>;

/** A read that the upstream is asked for, and what the store has found for it. */
interface Fetch extends ReadOptions {
  readonly read: Read;
  readonly request: ClientRequest;
  readonly snapshot: Snapshot;
  readonly found: Found;
  /** Undefined if the answer is not to be kept. */
  readonly policy: CachePolicy | undefined;
}

/** How a fetch ended, for all who wait for it. `holds`: whether the copy that was found is still valid. */
type FetchResult =
  | { readonly status: number; readonly entry: Entry | null; readonly isStored: boolean }
  | { readonly error: unknown; readonly holds: boolean };

/**
 * Answers with a fresh copy; else with a stale one, which is refreshed in the background; else from the upstream. Where the
 * upstream fails, and at once while the circuit is open, an older copy answers.
 */
export class Cache {
  readonly #options: Options;
  readonly #flights = new Flights<FetchResult>();
  /** Copies that the upstream failed to renew, with the code of the failure. */
  readonly #failed = new WeakMap<Entry, string>();

  constructor(options: Options) {
    this.#options = options;
    options.metrics.watch('reads', () => this.#flights.size);
  }

  /** The answer from a fresh copy, without waiting; undefined if there is none, or the request wants none. */
  fresh(read: Read, request: ClientRequest, snapshot: Snapshot): ReadResult | undefined {
    if (request.cacheMode !== 'any' || !read.row.policy) return undefined;
    const entry = snapshot.copy(read);
    if (!entry) return undefined;
    const ageMs = ageMsOf(entry, this.#options.clock);
    const freshMs = freshFor(entry, read.freshMs) - ageMs;
    return freshMs > 0 ? this.#resultOf(entry, ageMs, freshMs) : undefined;
  }

  /** At once where a copy answers. @throws GatewayError `validation_failed`, a refusal or a failure of the upstream */
  read(
    read: Read,
    request: ClientRequest,
    snapshot: Snapshot,
    { leg, abortable }: ReadOptions = {},
  ): MaybePromise<ReadResult> {
    const fresh = this.fresh(read, request, snapshot);
    if (fresh) return fresh;
    return whenDone(request.during('store', snapshot.lookup(read), leg), (found) => {
      const fetch: Fetch = { read, request, snapshot, found, policy: read.row.policy, leg, abortable };
      if (request.cacheMode !== 'no-store') return this.#answer(fetch);
      // Neither answered from the cache nor put in it.
      return this.#ask({ ...fetch, found: { ...found, entry: undefined }, policy: undefined }, 'request');
    });
  }

  /** Answers with the copy that was found, or asks the upstream. */
  #answer(fetch: Fetch): MaybePromise<ReadResult> {
    const { read, request, found, policy } = fetch;
    const { entry } = found;
    if (!policy) return this.#ask(fetch, 'bypass');
    if (request.cacheMode === 'no-cache') return this.#ask(fetch, 'request');
    if (!entry) return this.#ask(fetch, 'miss');
    const ageMs = ageMsOf(entry, this.#options.clock);
    const freshMs = freshFor(entry, read.freshMs) - ageMs;
    const mayAnswer = isWithin(policy.stale, entry, freshMs);
    const isFallback = !mayAnswer && isUsable(policy, entry, freshMs) && this.#options.isCircuitOpen();
    if (!mayAnswer && !isFallback) return this.#ask(fetch, 'stale');
    // A refresh in the background: no request waits for it or can cancel it.
    if (freshMs <= 0) void this.#join({ ...fetch, leg: BACKGROUND });
    const failed = freshMs > 0 ? undefined : this.#failed.get(entry);
    return this.#resultOf(entry, ageMs, freshMs, isFallback ? (failed ?? 'upstream_unavailable') : failed);
  }

  /** The answer from a copy; counts the read. `code`: of the failure for which a stale copy answers. */
  #resultOf(entry: Entry, ageMs: number, freshMs: number, code?: string): ReadResult {
    this.#options.metrics.readDone(freshMs > 0 ? 'hit' : 'stale');
    const seconds = Math.floor(freshMs / 1000);
    const ttl = freshMs > 0 ? seconds : Math.min(-1, seconds);
    return { status: 200, entry, age: ageOf(ageMs), ttl, code, isCacheable: true };
  }

  /** Waits for the upstream's answer. Where the upstream fails, an older copy answers. @throws GatewayError; ClientLeft */
  async #ask(fetch: Fetch, fwd: NonNullable<ReadResult['fwd']>): Promise<ReadResult> {
    const { check, metrics, clock, onError } = this.#options;
    const { read, request, snapshot, policy, found, leg } = fetch;
    check(read);
    let waiting: Phase | undefined;
    const onJoined = (begunBy: ClientRequest) => {
      waiting = request.beginPhase('joined', leg);
      waiting.joined = { requestId: begunBy.requestId, span: begunBy.span?.ids };
    };
    let done: FetchResult;
    try {
      done = await this.#join(fetch, fetch.abortable ?? request.abortable, onJoined);
    } catch (error) {
      // This request has given up: its client has left, or its time is up.
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
    const age = entry ? ageOf(ageMsOf(entry, clock)) : 0;
    return { status, entry, age, fwd, isStored, isCollapsed, isCacheable: policy !== undefined };
  }

  /** The answer from the copy that was found. Undefined if it expired, or a write or a refusal has invalidated it since. */
  #olderCopy({ policy, request, read, found }: Fetch, error: unknown, holds: boolean): ReadResult | undefined {
    const { entry } = found;
    if (!policy || !entry || !holds || request.cacheMode === 'no-cache' || !isFailure(error)) return undefined;
    const ageMs = ageMsOf(entry, this.#options.clock);
    const freshMs = freshFor(entry, read.freshMs) - ageMs;
    return isUsable(policy, entry, freshMs) ? this.#resultOf(entry, ageMs, freshMs, error.code) : undefined;
  }

  /** Joins an equal fetch that is under way, or begins one. With `no-store` a request shares its fetch with nobody. */
  #join(fetch: Fetch, waiter?: Abortable, onJoined?: (begunBy: ClientRequest) => void): Promise<FetchResult> {
    const { read, request, found } = fetch;
    // The key has the version, so that a read after a write never joins a call from before the write.
    const key =
      request.cacheMode === 'no-store' ? crypto.randomUUID() : `${request.account} ${found.version} ${read.key}`;
    const start = (abortable: Abortable) => this.#fetch(fetch, abortable);
    return this.#flights.join(key, { request, start, waiter, ...(onJoined && { onJoined }) });
  }

  /** Asks the upstream, and stores or drops the copy. Never rejects. */
  async #fetch(fetch: Fetch, abortable: Abortable): Promise<FetchResult> {
    const { clock, digest, call, timeoutMs } = this.#options;
    const { read, request, snapshot, policy, found, leg } = fetch;
    const copy = found.entry; // the upstream may confirm it with a 304
    const validators = (copy?.validators.etag ?? copy?.validators.lastModified) ? copy?.validators : undefined;
    try {
      const answer = await call(read, request, { leg, validators, abortable, endsAt: clock.now() + timeoutMs });
      const status = answer.notModified ? 200 : answer.status;
      const isValidated = policy !== undefined || read.operation.polled === true;
      const etag = isValidated && answer.text !== null ? `"${await digest.body(answer.text)}"` : '';
      const entry = entryOf(answer, found.entry, etag, clock);
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

  #save({ read, request, snapshot, found, leg }: Fetch, fetched: Fetched): MaybePromise<Saved> {
    return request.during('store', snapshot.save(read, found, fetched), leg);
  }
}

/** In seconds. */
const ageOf = (ageMs: number) => Math.max(0, Math.floor(ageMs / 1000));

/** Whether a copy may answer that has been stale for less than `seconds`. */
const isWithin = (seconds: number, { isNeverStale }: Entry, freshMs: number) =>
  freshMs > 0 || (!isNeverStale && -freshMs < seconds * 1000);

/** Whether a copy may answer where the upstream fails. */
const isUsable = ({ stale, onError }: CachePolicy, entry: Entry, freshMs: number) =>
  isWithin(Math.max(stale, onError), entry, freshMs);

/** The copy to keep of an answer: of a 304 the old copy, confirmed, whose validators stay its own; null for an answer without a body. */
function entryOf(answer: UpstreamAnswer, copy: Entry | undefined, etag: string, clock: Clock): Entry | null {
  const { text, links, link, validators, limits, notModified } = answer;
  const added = { storedAt: clock.now(), storedWall: clock.wall(), ...limits };
  if (notModified && copy) return { ...copy, ...added, ...(link && { link }) };
  return text === null ? null : { text, links, link, validators, etag, ...added };
}

/** Statuses with which the upstream refuses a call now, and says nothing of what was asked for. */
const NOT_NOW: ReadonlySet<number> = new Set([408, 429]);

/** What an error makes invalid: after a refusal the copy, or all copies of an account that the upstream refuses. */
function dropOf(error: unknown): Fetched['drop'] {
  if (!(error instanceof GatewayError)) return undefined;
  const { status } = error;
  if (status === 401 || status === 403) return 'everything';
  return status >= 500 || NOT_NOW.has(status) ? undefined : 'key';
}

/** Whether an error is a failure of the upstream, for which an older copy may answer. A refusal is none. */
function isFailure(error: unknown): error is GatewayError {
  return error instanceof GatewayError && (NOT_NOW.has(error.status) || (error.status >= 502 && error.status <= 504));
}
