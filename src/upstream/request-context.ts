import type { Cancellation } from '../core/cancellation.ts';
import type { Background } from '../core/runtime.ts';
import type { Window } from '../store/shared/engine.ts';
import type { AccountId, Snapshot, WindowUse } from '../store/store.ts';

/** The trace that a request belongs to (W3C Trace Context). */
export interface Trace {
  readonly traceId: string;
  readonly flags: string;
  readonly tracestate: string | undefined;
}

/** How many requests may come in a window, as clients see it named. */
export interface Quota {
  readonly name: 'account' | 'address';
  readonly window: Window;
}

/** One client request, as all see it who work for it. Instants are in milliseconds of the process's clock. */
export interface RequestContext {
  readonly requestId: string;
  readonly trace: Trace;
  /**
   * The key that came with it.
   * @throws GatewayError `unauthenticated`
   */
  readonly credential: string;
  readonly userAgent: string | undefined;
  readonly idempotencyKey: string | undefined;
  /** `no-cache`: a fresh copy, which is stored. `no-store`: neither answered from the cache nor put in it. */
  readonly wants: 'any' | 'no-cache' | 'no-store';
  /** Of the client. */
  readonly address: string;
  /** Scheme and host of the gateway, for links. */
  readonly origin: string;
  readonly startedAt: number;
  /** When `REQUEST_TIMEOUT_MS` is over. */
  readonly endsAt: number;
  readonly background: Background;
  /** Cancelled when the client leaves or its time is up. */
  readonly cancellation: Cancellation;

  /** Whose it is, once that is known. */
  account: AccountId | undefined;
  /** What the store knew of it when the request came. */
  snapshot: Snapshot | undefined;
  /** What it was counted in; absent where no limit applies. */
  counted: { readonly quota: Quota; readonly use: WindowUse } | undefined;
  /** What the work for it has cost so far. */
  upstreamCalls: number;
  upstreamMs: number;
}

/** The client went away; nobody is there to be answered. */
export class ClientLeft extends Error {
  constructor() {
    super('client left');
    this.name = 'ClientLeft';
  }
}
