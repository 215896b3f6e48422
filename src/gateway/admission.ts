import type { ReadResult } from '../cache/read.ts';
import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { ClientRequest, Quota } from '../core/request.ts';
import { type Clock, type MaybePromise, whenDone } from '../core/runtime.ts';
import { recent } from '../store/bounded.ts';
import {
  type AccountId,
  addressOwner,
  type Entry,
  isAddress,
  type Owner,
  requestsBy,
  secondsLeft,
  type SnapshotRequest,
  type WindowUse,
} from '../store/port.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { Store } from '../store/store.ts';
import type { Caller, Outcome } from '../upstream/call.ts';
import type { Read } from '../upstream/read.ts';
import { Via } from '../upstream/via.ts';
import type { GatewayDeps } from './deps.ts';

/** Returns the copy that this instance has of a read, valid or not. */
export type CopyOf = (read: Read) => Entry | undefined;

/** What a request will read. An overview guesses it from the copies that this instance has. */
export type Reads = readonly Read[] | ((copyOf: CopyOf) => readonly Read[]);

/** Lets a request in: finds its account, counts it, and asks the store what is known of the account. */
export class Admission {
  readonly deps: GatewayDeps;
  readonly limit: RateLimit;
  readonly accepted: AcceptedAccounts;
  readonly via: Via;

  constructor(deps: GatewayDeps) {
    this.deps = deps;
    this.limit = new RateLimit(deps, deps.config.rateLimitPerMinute);
    this.accepted = new AcceptedAccounts(deps.store);
    this.via = new Via(deps.digest.gatewayId);
  }

  /** @throws GatewayError `loop_detected` for a request that has been here */
  assertNew(request: ClientRequest): void {
    this.via.assertNew(request.header('via'));
  }

  /**
   * Counts the request, and takes a snapshot of what the store has of its reads. A promise only where the store or the hashes
   * are not in this process.
   * @throws GatewayError `loop_detected`, `unauthenticated`, `rate_limited`
   */
  admit(request: ClientRequest, reads: Reads = NONE): MaybePromise<Snapshot> {
    this.assertNew(request);
    const window = isCounted(request) ? undefined : this.limit.account;
    return whenDone(this.snapshot(request, reads, { window, session: request.session }), (snapshot) => {
      this.limit.apply(request, this.limit.account, snapshot.use);
      if (snapshot.session?.isOver) throw sessionOver();
      return snapshot;
    });
  }

  /** Asks the store once: for the copies that the request will read, for its count in `window`, and for its session. */
  snapshot(
    request: ClientRequest,
    reads: Reads,
    { window, session }: Pick<SnapshotRequest, 'window' | 'session'>,
  ): MaybePromise<Snapshot> {
    const { store } = this.deps;
    return whenDone(this.accountOf(request), (account) => {
      request.owner = this.accepted.ownerOf(account, request);
      const keys = typeof reads === 'function' ? reads((read) => store.copyOf(account, read)) : reads;
      return request.during('store', store.snapshot({ account, window, keys, session, waitUntil: request.waitUntil }));
    });
  }

  /** The account of the request's credential. @throws GatewayError `unauthenticated` */
  accountOf(request: ClientRequest): MaybePromise<AccountId> {
    if (request.account !== undefined) return request.account;
    return whenDone(this.deps.digest.account(request.credential), (account) => (request.account = account));
  }
}

const NONE: readonly Read[] = [];

/** Whether the upstream refuses the account, and not only this read. */
export const isRefusal = ({ status }: GatewayError): boolean => status === 401 || status === 403;

/** Whether the upstream has accepted the credential of an admitted request before. */
export const hasAcceptedCredential = ({ owner = '' }: ClientRequest): boolean => !isAddress(owner);

/** Calls that take no credential, per address. */
const OPEN_CALLS_PER_MINUTE = 20;

const quotaOf = (by: Quota['by'], limit: number): Quota => ({ by, name: requestsBy(by), lengthMs: 60_000, limit });

/** How many requests an account or a client may make in a minute (`contract.md` section 3). */
export class RateLimit {
  /** Both undefined where nothing is limited. */
  readonly account: Quota | undefined;
  readonly address: Quota | undefined;
  readonly #clock: Clock;
  readonly #metrics: Metrics;

  /** `perMinute`: how many requests an account may make; 0: nothing is limited. */
  constructor({ clock, metrics }: { readonly clock: Clock; readonly metrics: Metrics }, perMinute: number) {
    this.account = perMinute === 0 ? undefined : quotaOf('account', perMinute);
    this.address = perMinute === 0 ? undefined : quotaOf('address', OPEN_CALLS_PER_MINUTE);
    this.#clock = clock;
    this.#metrics = metrics;
  }

  /** Notes how far its limit is used, for the headers of the answer. */
  note(request: ClientRequest, quota: Quota | undefined, use: WindowUse | undefined): void {
    const isOther = quota?.by === 'address' && isCounted(request); // a handler of a host's may call for both
    if (quota && use && !isOther) request.limitUse = { quota, use };
  }

  /** Notes how far the limit is used. @throws GatewayError `rate_limited` if the request is over the limit */
  apply(request: ClientRequest, quota: Quota | undefined, use: WindowUse | undefined): void {
    this.note(request, quota, use);
    if (!quota || !use || use.used <= quota.limit) return;
    this.#metrics.refused('rate_limit');
    const detail = `More than ${quota.limit} requests by this ${quota.by} in a minute.`;
    const retryAfter = secondsLeft(use, this.#clock.now());
    throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter, detail });
  }
}

/** Whether a request has been counted for its account. A host's handler may read and write several times. */
export const isCounted = ({ limitUse }: ClientRequest): boolean => limitUse?.quota.by === 'account';

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

  /** Learns from the end of a call whether the upstream accepts the account. */
  learn({ account, owner }: Caller, { answer, error }: Outcome): void {
    if (account === undefined) return;
    if (answer && owner !== account) {
      this.#accounts.set(account, true);
      this.#store.accept(account);
    }
    if (error instanceof GatewayError && error.status === 401) this.#accounts.delete(account);
  }
}

/**
 * Reads several items. Until the upstream has accepted the credential, they are read one after another, and a 401 or 403
 * answers all that are left. As soon as it has, the rest is read at once.
 */
export async function firstAlone<Item>(
  items: readonly Item[],
  read: (item: Item, at: number) => Promise<ReadResult | GatewayError>,
  wasAccepted: boolean,
): Promise<(ReadResult | GatewayError)[]> {
  const outcomes: Promise<ReadResult | GatewayError>[] = [];
  let hasProof = wasAccepted;
  let refusal: GatewayError | undefined;
  for (const [at, item] of items.entries()) {
    const outcome = refusal ? Promise.resolve(refusal) : read(item, at);
    outcomes.push(outcome);
    if (hasProof) continue;
    const first = await outcome;
    if (!(first instanceof GatewayError)) hasProof = true;
    else if (isRefusal(first)) refusal = first;
  }
  return Promise.all(outcomes);
}

/** The error of a request whose session was revoked. */
export const sessionOver = (): GatewayError =>
  GatewayError.of('unauthenticated', {
    detail: 'The session has ended. Sign in again.',
    fault: 'not_sent',
  });

/** Ends the request's session, and no other, if `error` says that the upstream no longer accepts its key. */
export function endSession(
  store: Store,
  { session, waitUntil }: ClientRequest,
  account: AccountId | undefined,
  error: unknown,
): void {
  const isRefused = error instanceof GatewayError && error.status === 401 && !error.isUnsent;
  if (isRefused && session && account !== undefined) waitUntil(store.revoke({ account, waitUntil }, session, 'one'));
}
