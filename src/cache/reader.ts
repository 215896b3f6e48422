import { childOf } from '../core/abort.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import type { AccountId, Entry, Owner, Snapshot } from '../store/store.ts';
import type { CachePolicy, Operation } from '../upstream/operation.ts';
import type { Read } from '../upstream/call.ts';
import type { RequestContext } from '../upstream/request-context.ts';
import { freshMsOf } from './entry.ts';
import { cacheKeyOf } from './key.ts';
import { type Reading, readingOf } from './reading.ts';

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
