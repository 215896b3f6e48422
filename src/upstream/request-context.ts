import type { WaitUntil } from '../core/runtime.ts';
import type { Owner } from '../store/owner.ts';
import type { AccountId, SessionId, Snapshot, Window, WindowUse } from '../store/store.ts';

/** The trace that a request belongs to (W3C Trace Context). */
export interface Trace {
  readonly traceId: string;
  readonly flags: string;
  readonly tracestate: string | undefined;
}

/** How many requests are allowed in a window, with the name that clients see. */
export interface Quota {
  readonly name: 'account' | 'address';
  readonly window: Window;
}

/** One client request, for all code that works on it. Instants are in milliseconds of the process's clock. */
export interface RequestContext {
  readonly requestId: string;
  readonly trace: Trace;
  /**
   * The credential that came with it.
   * @throws GatewayError `unauthenticated`
   */
  readonly credential: string;
  /** Absent if it did not come by a session's cookie. */
  readonly session: SessionId | undefined;
  readonly userAgent: string | undefined;
  readonly idempotencyKey: string | undefined;
  /** `no-cache`: a fresh copy, which is stored. `no-store`: neither answered from the cache nor put in it. */
  readonly wants: 'any' | 'no-cache' | 'no-store';
  /** The client's IP address. */
  readonly address: string;
  /** Scheme and host of the gateway, for links. */
  readonly origin: string;
  readonly startedAt: number;
  /** When `REQUEST_TIMEOUT_MS` is over. */
  readonly endsAt: number;
  readonly waitUntil: WaitUntil;
  /** Aborted when the client leaves or the request's time is up. */
  readonly signal: AbortSignal;

  /** Set once it is known. */
  account: AccountId | undefined;
  /** Whose share of what is bounded it takes; set once it is known. */
  owner: Owner | undefined;
  /** What it sees of the store; set once it has been counted. */
  snapshot: Snapshot | undefined;
  /** The limit that it was counted in; absent if none applies. */
  counted: { readonly quota: Quota; readonly use: WindowUse } | undefined;
  /** Upstream calls made for it so far, and their time. */
  upstreamCalls: number;
  upstreamMs: number;
}

/** The client went away before its answer. */
export class ClientLeft extends Error {
  constructor() {
    super('client left');
    this.name = 'ClientLeft';
  }
}
