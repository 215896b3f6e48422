import type { Abortable } from '../core/abortable.ts';
import type { ClientRequest } from '../core/request.ts';
import type { CallOutcome, Phase } from '../core/timeline.ts';
import type { AccountId, Entry, Owner } from '../store/port.ts';
import type { Linked } from './links.ts';
import type { Operation } from './operation.ts';
import { pathWith } from './path.ts';

/** An operation and what it is called with: a `Read`, or a write. */
export interface Invocation {
  readonly operation: Operation;
  /** The values of the path's parameters, joined by slashes, already of the operation's forms. */
  readonly id?: string | undefined;
  /** Query as the client sent it, without the question mark. */
  readonly query: string;
  /** JSON text of the body. */
  readonly body?: string | undefined;
  /** Text of a body that the operation does not take: never sent, but part of the write's fingerprint. */
  readonly ignoredBody?: string | undefined;
}

/** Path and query below `{base_url}`. The path is made of the row's template: a client's own path never gets upstream. */
export function targetOf({ operation, id, query }: Invocation): string {
  const path = pathWith(operation, id);
  return query === '' ? path : `${path}?${query}`;
}

interface Options {
  /** Absent for calls that take no credential. */
  readonly account: AccountId | undefined;
  /** Whose share of the bounded resources the call takes. */
  readonly owner: Owner;
  /** The leg of the request that it is for: a section or an item. */
  readonly leg?: string | undefined;
  readonly validators?: Entry['validators'] | undefined;
  /** Aborting it ends the call with all its attempts; the call then rejects with the reason. An attempt's timeout aborts it too. */
  readonly abortable: Abortable;
  /** When the call has to be over, in milliseconds of the process's clock. */
  readonly endsAt: number;
  /** Idempotency key of a write. */
  readonly key?: string | undefined;
  /** Called after all checks, before the call waits for a connection. What it throws ends the call. */
  readonly beforeSend?: (() => void) | undefined;
  /** Called right before the first byte is sent. What it throws ends the call with nothing sent. */
  readonly beforeFirstByte?: (() => void) | undefined;
}

/** A call of the upstream, and its current attempt. Instants are in milliseconds of the process's clock. */
export class UpstreamCall {
  /** The request that it was begun for. Other requests may wait for it too. */
  readonly request: ClientRequest;
  readonly invocation: Invocation;
  readonly account: AccountId | undefined;
  readonly owner: Owner;
  readonly leg: string | undefined;
  readonly validators: Entry['validators'] | undefined;
  readonly abortable: Abortable;
  readonly endsAt: number;
  readonly key: string | undefined;
  readonly beforeSend: (() => void) | undefined;
  readonly beforeFirstByte: (() => void) | undefined;
  /** When the attempt began; for one that waited for a slot, when it got it. */
  attemptAt = 0;
  /** How often the call was sent before this attempt. */
  resends = 0;
  /** The attempt's phase, from when it is sent. */
  phase: Phase | undefined;

  constructor(request: ClientRequest, invocation: Invocation, options: Options) {
    this.request = request;
    this.invocation = invocation;
    this.account = options.account;
    this.owner = options.owner;
    this.leg = options.leg;
    this.validators = options.validators;
    this.abortable = options.abortable;
    this.endsAt = options.endsAt;
    this.key = options.key;
    this.beforeSend = options.beforeSend;
    this.beforeFirstByte = options.beforeFirstByte;
    this.phase = undefined;
  }

  get operation(): Operation {
    return this.invocation.operation;
  }
}

/** A good answer. */
export interface UpstreamAnswer {
  readonly status: number;
  /** The JSON as it came, except for the links of a page; null if there is no body. */
  readonly text: string | null;
  /** Places in `text` where the gateway's origin goes. */
  readonly links: readonly number[];
  /** The links of the header to other pages. */
  readonly link?: Linked | undefined;
  /** The text parsed once, to check it; not kept. */
  readonly value: unknown;
  readonly validators: Entry['validators'];
  /** 304: the copy that the request was conditional on is still valid. */
  readonly notModified: boolean;
  /** Whether the upstream allows keeping it. Its word only ever shortens what the cache would do. */
  readonly isStorable: boolean;
  /** What the upstream says of a copy's age; undefined if it says nothing. */
  readonly limits?: Pick<Entry, 'maxFreshMs' | 'isNeverStale'> | undefined;
}

/** How an attempt ended: with an answer or an error, at `now`, in milliseconds of the process's clock. */
export interface Outcome {
  readonly kind: CallOutcome;
  readonly answer: UpstreamAnswer | undefined;
  readonly error: unknown;
  readonly now: number;
}

/** Whose call it is. */
export type Caller = Pick<UpstreamCall, 'account' | 'owner'>;
