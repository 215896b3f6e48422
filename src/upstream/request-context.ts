import type { AccountId, Owner, Snapshot, Window, WindowUse } from '../store/store.ts';
import type { CallContext } from './call.ts';

/** How many requests are allowed in a window, with the name that clients see. */
export interface Quota {
  readonly name: 'account' | 'address';
  readonly window: Window;
}

/** One client request, for all code that works on it. Instants are in milliseconds of the process's clock. */
export interface RequestContext extends CallContext {
  /** `no-cache`: a fresh copy, which is stored. `no-store`: neither answered from the cache nor put in it. */
  readonly wants: 'any' | 'no-cache' | 'no-store';
  /** What links begin with: scheme, host and mount path. */
  readonly origin: string;
  /** The path that the gateway is mounted under; empty where it stands alone. */
  readonly mount: string;
  /** When `REQUEST_TIMEOUT_MS` is over. */
  readonly endsAt: number;
  /** Aborted when the client leaves or the request's time is up. */
  readonly signal: AbortSignal;

  /** Set once it is known. */
  account: AccountId | undefined;
  /** Whose share of what is bounded it takes; set once it is known. */
  owner?: Owner | undefined;
  /** What it sees of the store; set once it has been counted. */
  snapshot?: Snapshot | undefined;
  /** The limit that it was counted in; absent if none applies. */
  counted?: { readonly quota: Quota; readonly use: WindowUse } | undefined;
}

/** The client went away before its answer. */
export class ClientLeft extends Error {
  constructor() {
    super('client left');
    this.name = 'ClientLeft';
  }
}
