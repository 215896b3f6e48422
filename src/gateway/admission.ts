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

/** The copy that this instance has of a read, valid or not. */
export type CopyOf = (read: Read) => Entry | undefined;

/** What a request will read; where it depends, judging by the copies that this instance has. */
export type Reads = readonly Read[] | ((copyOf: CopyOf) => readonly Read[]);

/** Who asks: whether it may, and what the store knows of its account. */
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
   * Counts the request and asks the store for the keys of what it will read; without waiting where state and hashes are this
   * process's.
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

  /** One question to the store: for what a request will read, its window, if any, and its session. */
  snapshot(
    request: ClientRequest,
    reads: Reads,
    { window, session }: Pick<SnapshotRequest, 'window' | 'session'>,
  ): MaybePromise<Snapshot> {
    const { store } = this.deps;
    return whenDone(this.accountOf(request), (account) => {
      request.owner = this.accepted.ownerOf(account, request);
      const keys = typeof reads === 'function' ? reads((read) => store.copyOf(account, read)) : reads;
      const asked = store.snapshot({ account, window, keys, session, waitUntil: request.waitUntil });
      return asked instanceof Promise ? request.during('store', asked) : asked;
    });
  }

  /** The account of the request's credential. @throws GatewayError `unauthenticated` */
  accountOf(request: ClientRequest): MaybePromise<AccountId> {
    if (request.account !== undefined) return request.account;
    return whenDone(this.deps.digest.account(request.credential), (account) => (request.account = account));
  }
}

const NONE: readonly Read[] = [];

/** 401 and 403 refuse the account, not only what was read. */
export const isRefusal = ({ status }: GatewayError): boolean => status === 401 || status === 403;

/** Whether the upstream has accepted the credential of a request that has been admitted. */
export const isOfAccepted = ({ owner = '' }: ClientRequest): boolean => !isAddress(owner);

/** Calls that take no credential, of one address. */
const OPEN_CALLS_PER_MINUTE = 20;

const quotaOf = (by: Quota['by'], limit: number): Quota => ({ by, name: requestsBy(by), lengthMs: 60_000, limit });

/** How many requests an account or a client may make in a minute (`contract.md` section 3). */
export class RateLimit {
  /** Undefined where there is none. */
  readonly account: Quota | undefined;
  readonly address: Quota | undefined;
  readonly #clock: Clock;
  readonly #metrics: Metrics;

  /** `perMinute`: of one account; 0: there is no limit at all. */
  constructor({ clock, metrics }: { readonly clock: Clock; readonly metrics: Metrics }, perMinute: number) {
    this.account = perMinute === 0 ? undefined : quotaOf('account', perMinute);
    this.address = perMinute === 0 ? undefined : quotaOf('address', OPEN_CALLS_PER_MINUTE);
    this.#clock = clock;
    this.#metrics = metrics;
  }

  /** The count of a request, for the headers of its answer. */
  note(request: ClientRequest, quota: Quota | undefined, use: WindowUse | undefined): void {
    const isOther = quota?.by === 'address' && isCounted(request); // a handler of a host's may call for both
    if (quota && use && !isOther) request.limitUse = { quota, use };
  }

  /** Notes the count of a request. @throws GatewayError `rate_limited` if it is over the limit */
  apply(request: ClientRequest, quota: Quota | undefined, use: WindowUse | undefined): void {
    this.note(request, quota, use);
    if (!quota || !use || use.used <= quota.limit) return;
    this.#metrics.refused('rate_limit');
    const detail = `More than ${quota.limit} requests by this ${quota.by} in a minute.`;
    const retryAfter = secondsLeft(use, this.#clock.now());
    throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter, detail });
  }
}

/** Whether it has been counted for its account: a handler of a host's may read and write several times. */
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

  /** Learns from how a call ended. */
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
 * Reads several things. Until the upstream has accepted the credential they are read one after another, and a 401 or 403
 * is then the answer to all that are left; after that the rest is read at once.
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

/** For a request whose session was revoked. */
export const sessionOver = (): GatewayError =>
  GatewayError.of('unauthenticated', {
    detail: 'The session has ended. Sign in again.',
    fault: 'not_sent',
    headers: { 'WWW-Authenticate': 'Token' },
  });

/** An upstream that does not accept a session's key any more ends that session, and no other. */
export function endSession(
  store: Store,
  { session, waitUntil }: ClientRequest,
  account: AccountId | undefined,
  error: unknown,
): void {
  const isRefused = error instanceof GatewayError && error.status === 401 && !error.isUnsent;
  if (isRefused && session && account !== undefined) waitUntil(store.revoke({ account, waitUntil }, session, 'one'));
}
