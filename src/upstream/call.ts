import type { Abortable } from '../core/abortable.ts';
import type { Reason } from '../core/errors.ts';
import type { WaitUntil } from '../core/runtime.ts';
import type { CallOutcome, Phase, Timed } from '../core/timeline.ts';
import type { Trace } from '../core/tracing.ts';
import type { AccountId, Entry, Owner, SessionId, Window, WindowUse } from '../store/port.ts';
import type { Operation } from './operation.ts';

/** One client request, for all code that works on it. Instants are in milliseconds of the process's clock. */
export interface RequestContext extends Timed {
  readonly requestId: string;
  readonly trace: Trace;
  /**
   * The credential that came with it.
   * @throws GatewayError `unauthenticated`
   */
  credential: string;
  /** Absent if it did not come by a session's cookie. */
  readonly session?: SessionId | undefined;
  readonly userAgent: string | undefined;
  readonly idempotencyKey?: string | undefined;
  /** The gateways and proxies that it came through, as it says. */
  readonly via?: string | undefined;
  /** `no-cache`: a fresh copy, which is stored. `no-store`: neither answered from the cache nor put in it. */
  cacheMode: 'any' | 'no-cache' | 'no-store';
  /** The client's IP address. */
  readonly address: string;
  /** What links begin with: scheme, host and mount path. */
  readonly origin: string;
  /** The path that the gateway is mounted under; empty where it stands alone. */
  readonly mount: string;
  readonly startedAt: number;
  /** When `REQUEST_TIMEOUT_MS` is over. */
  readonly endsAt: number;
  /** Aborted when the client leaves or the request's time is up. */
  readonly abortable: Abortable;
  readonly waitUntil: WaitUntil;

  /** Set once it is known. */
  account: AccountId | undefined;
  /** Owner whose share of the bounded resources the request takes; set once it is known. */
  owner?: Owner | undefined;
  /** The limit that it was counted in; absent if none applies. */
  limitUse?: { readonly quota: Quota; readonly use: WindowUse } | undefined;
  /** Upstream calls made for it so far, and their time. */
  upstreamCalls: number;
  upstreamMs: number;
  /** Why the upstream failed it last. */
  reason?: Reason | undefined;
}

/** How many requests are allowed in a window. `by`: the name that clients see. */
export interface Quota extends Window {
  readonly by: 'account' | 'address';
}

/** What a client asked of an operation. */
export interface OperationInput {
  /** The `<ID>` of the path, already of the operation's form. */
  readonly id?: string | undefined;
  /** Query as the client sent it, without the question mark. */
  readonly query: string;
  /** JSON text of the body. */
  readonly body?: string | undefined;
  /** Text of a body that the operation does not take. Requests are compared by it, but it is not sent. */
  readonly unsent?: string | undefined;
}

/** A GET, with what the client asked of it. */
export interface Read {
  readonly operation: Operation;
  readonly input: OperationInput;
}

/** The copy that this instance has of a read, valid or not. */
export type CopyOf = (read: Read) => Entry | undefined;

/** What an earlier answer said it can be revalidated with (RFC 9110, section 13.1). */
export interface Validators {
  readonly etag?: string;
  readonly lastModified?: string;
}

/** Who makes a call. */
export interface Whose {
  /** The request that it was begun for. Other requests may wait for it too. */
  readonly context: RequestContext;
  /** Absent for calls that take no credential. */
  readonly account: AccountId | undefined;
  /** Owner whose share of the bounded resources the call takes. */
  readonly owner: Owner;
}

/** One call of an operation. */
export interface UpstreamCall extends Whose {
  readonly operation: Operation;
  readonly input: OperationInput;
  readonly validators?: Validators | undefined;
  /** The part of the request that it is for. */
  readonly leg?: string | undefined;
  /** Idempotency key of a write. */
  readonly key?: string | undefined;
  /** Called when all gates have let the call through, before it waits for a connection; what it throws ends the call. */
  readonly beforeSend?: () => void;
  /** Called right before the first byte is sent; what it throws ends the call with nothing sent. */
  readonly beforeFirstByte?: (() => void) | undefined;
  /** Ends the call with all its attempts; it then rejects with the reason. Aborted too where an attempt takes too long. */
  readonly abortable: Abortable;
  /** When it has to be over, in milliseconds of the process's clock. */
  readonly endsAt: number;
}

/** One attempt at a call. */
export interface Attempt {
  readonly call: UpstreamCall;
  /** When it began to pass the gates, or the last one let it wait no longer; in milliseconds of the process's clock. */
  now: number;
  /** How often its call was sent before. */
  resends: number;
  /** Since it was sent. */
  phase?: Phase;
}

/** One request to the upstream and its answer. */
export type Exchange = (attempt: Attempt) => Promise<UpstreamAnswer>;

/** Limits that the upstream sets on keeping its answer; they only ever shorten what the cache would do. */
export interface Keeping {
  readonly isStorable: boolean;
  /** Upper limit for how long it is fresh, in milliseconds. */
  readonly maxFreshMs?: number;
}

/** A good answer: the JSON text as it came, except for the links of a page; null if there is no body. */
export interface UpstreamAnswer extends Keeping {
  readonly status: number;
  readonly text: string | null;
  /** Places in `text` where the gateway's origin goes. */
  readonly links: readonly number[];
  /** The text parsed once, to check it; not kept. */
  readonly value: unknown;
  readonly validators: Validators;
  /** 304: the copy that the request was conditional on is still valid. */
  readonly notModified: boolean;
}

/** How an attempt ended: an answer, or what it failed with. `now`: when, in milliseconds of the process's clock. */
export interface Outcome {
  readonly kind: CallOutcome;
  readonly answer?: UpstreamAnswer;
  readonly error?: unknown;
  readonly now: number;
}
