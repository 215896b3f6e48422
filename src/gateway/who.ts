import { cacheKeyOf } from '../cache/keys.ts';
import { Reader } from '../cache/reader.ts';
import { GatewayError } from '../core/errors.ts';
import { whenDone, type MaybePromise } from '../core/runtime.ts';
import { during } from '../core/timeline.ts';
import { recent } from '../store/bounded.ts';
import {
  type AccountId,
  addressOwner,
  type Owner,
  requestsBy,
  secondsLeft,
  type SnapshotRequest,
  type Store,
  type WindowUse,
} from '../store/port.ts';
import type { CopyOf, Quota, Read, RequestContext, Whose, Outcome } from '../upstream/call.ts';
import type { GatewayDeps } from './deps.ts';

const MAX_ACCOUNTS = 50_000;

/** The accounts that the upstream has accepted, as this instance has seen; the most recent ones are kept. */
export class AcceptedAccounts {
  readonly #store: Store;
  readonly #accounts = recent<AccountId, true>(MAX_ACCOUNTS);

  constructor(store: Store) {
    this.#store = store;
  }

  /** The owner whose share a request takes: the account if it is accepted, else the address. */
  ownerOf(account: AccountId | undefined, client: { readonly address: string }): Owner {
    const isAccepted = account !== undefined && this.#accounts.get(account) === true;
    return isAccepted ? account : addressOwner(client.address);
  }

  /** Learns from how a call ended. */
  learn({ account, owner }: Whose, { answer, error }: Outcome): void {
    if (account === undefined) return;
    if (answer && owner !== account) {
      this.#accounts.set(account, true);
      this.#store.accept(account);
    }
    if (error instanceof GatewayError && error.status === 401) this.#accounts.delete(account);
  }
}

/** What a request will read; where it depends, judging by the copies that this instance has. */
export type Reads = readonly Read[] | ((copyOf: CopyOf) => readonly Read[]);

export type ReaderOf = ReturnType<typeof readers>;

/** Makes readers, each by one question to the store: for what it will read, its window, if any, and its session. */
export function readers({ config, store, clock, digest, metrics }: GatewayDeps, accepted: AcceptedAccounts) {
  const { policyOf } = config;
  const options = { clock, metrics, policyOf };
  return (
    context: RequestContext,
    named: Reads,
    { window, session }: Pick<SnapshotRequest, 'window' | 'session'>,
  ): MaybePromise<Reader> =>
    whenDone(context.account ?? digest.account(context.credential), (account) => {
      context.account = account;
      const owner = (context.owner = accepted.ownerOf(account, context));
      const keyOf = (read: Read) => cacheKeyOf(account, read, policyOf(read.operation));
      const reads = typeof named === 'function' ? named((read) => store.copyOf(keyOf(read))) : named;
      const keys = reads.map(keyOf);
      const { waitUntil } = context;
      const asked = store.snapshot({ account, window, keys, session, waitUntil });
      const soon = asked instanceof Promise ? during(clock, { context }, 'store', asked) : asked;
      return whenDone(soon, (snapshot) => {
        return new Reader({ context, account, owner, snapshot, reads, keys }, options);
      });
    });
}

/** Calls that take no credential, of one address. */
const OPEN_CALLS_PER_MINUTE = 20;
const MINUTE_MS = 60_000;

/** Whether it has been counted for its account: a handler of a host's may read and write several times. */
export const isCounted = ({ limitUse }: RequestContext): boolean => limitUse?.quota.by === 'account';

export type RateLimit = ReturnType<typeof rateLimit>;

/** How many requests an account or a client may make in a minute. `perMinute`: of one account; 0: there is no quota at all. */
export function rateLimit({ clock, metrics }: GatewayDeps, perMinute: number) {
  const quota = (by: Quota['by'], limit: number): Quota | undefined =>
    perMinute === 0 ? undefined : { by, name: requestsBy(by), lengthMs: MINUTE_MS, limit };
  return {
    account: quota('account', perMinute),
    address: quota('address', OPEN_CALLS_PER_MINUTE),
    /** The count of a request, for the headers of its answer. */
    note(context: RequestContext, applied: Quota | undefined, use: WindowUse | undefined): void {
      const isOther = applied?.by === 'address' && isCounted(context); // a handler of a host's may call for both
      if (applied && use && !isOther) context.limitUse = { quota: applied, use };
    },
    /**
     * Notes the count of a request.
     * @throws GatewayError `rate_limited` if it is over the limit
     */
    apply(context: RequestContext, applied: Quota | undefined, use: WindowUse | undefined): void {
      this.note(context, applied, use);
      if (!applied || !use || use.used <= applied.limit) return;
      metrics.refused('rate_limit');
      const detail = `More than ${applied.limit} requests by this ${applied.by} in a minute.`;
      throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter: secondsLeft(use, clock.now()), detail });
    },
  };
}
