import type { Background } from '../core/runtime.ts';
import type { Window } from '../store/shared/engine.ts';
import type { Owner } from '../store/owner.ts';
import type { AccountId, Snapshot, WindowUse } from '../store/store.ts';
import type { Provenance } from './request.ts';

/** What the work for one client request has cost so far. */
export interface Tally {
  upstreamCalls: number;
  upstreamMs: number;
}

/** Who upstream data is wanted for, and how. One per client request. */
export interface Caller {
  /** Absent for the social calls, which take no credential. */
  readonly account: AccountId | undefined;
  /** Whose limits and idempotency keys count: the account's, for the social calls the client's address. */
  readonly principal: AccountId;
  /** Whose share of what is bounded it takes. */
  readonly owner: Owner;
  /** What the request counts in; absent where no limit applies. */
  readonly window: Window | undefined;
  /**
   * To be told what came of counting a write.
   * @throws GatewayError `rate_limited`
   */
  counted(use: WindowUse | undefined): void;
  readonly from: Provenance;
  /** `no-cache`: a fresh copy, which is stored. `no-store`: neither answered from the cache nor put in it. */
  readonly wants: 'any' | 'no-cache' | 'no-store';
  readonly tally: Tally;
  readonly background: Background;
  /** Aborted when the client leaves or its time is up; its reason is the error to end with. */
  signal(): AbortSignal;
  /** When `REQUEST_TIMEOUT_MS` is over, in milliseconds since the epoch. */
  readonly endsAt: number;
}

/** One that reads; it has been counted. */
export interface Reader extends Caller {
  readonly account: AccountId;
  /** Whether the upstream has accepted the credential, as far as this instance has seen. */
  readonly isAccepted: boolean;
  /** What the store knew of the account when the request came. */
  readonly snapshot: Snapshot;
}

/** The client went away; nobody is there to be answered. */
export class ClientLeft extends Error {
  constructor() {
    super('client left');
    this.name = 'ClientLeft';
  }
}
