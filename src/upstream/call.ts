import type { Abortable } from '../core/abortable.ts';
import type { ClientRequest } from '../core/request.ts';
import type { CallOutcome, Phase } from '../core/timeline.ts';
import type { AccountId, Entry, Owner } from '../store/port.ts';
import type { Operation } from './operation.ts';

/** What is asked of an operation: a `Read`, or a write. */
export interface Asked {
  readonly operation: Operation;
  /** The `<ID>` of the path, already of the operation's form. */
  readonly id?: string | undefined;
  /** Query as the client sent it, without the question mark. */
  readonly query: string;
  /** JSON text of the body. */
  readonly body?: string | undefined;
  /** Text of a body that the operation does not take. Requests are compared by it, but it is not sent. */
  readonly unsent?: string | undefined;
}

/** Path and query below `{base_url}`, from the template alone, so that no raw path ever gets upstream. */
export function targetOf({ operation, id, query }: Asked): string {
  const path = id === undefined ? operation.path : operation.path.replace('{id}', id);
  return query === '' ? path : `${path}?${query}`;
}

interface Particulars {
  /** Absent for calls that take no credential. */
  readonly account: AccountId | undefined;
  /** Owner whose share of the bounded resources the call takes. */
  readonly owner: Owner;
  /** The part of the request that it is for. */
  readonly leg?: string | undefined;
  readonly validators?: Entry['validators'] | undefined;
  /** Ends the call with all its attempts; it then rejects with the reason. Aborted too where an attempt takes too long. */
  readonly abortable: Abortable;
  /** When it has to be over, in milliseconds of the process's clock. */
  readonly endsAt: number;
  /** Idempotency key of a write. */
  readonly key?: string | undefined;
  /** Called when all checks have let the call through, before it waits for a connection; what it throws ends the call. */
  readonly beforeSend?: (() => void) | undefined;
  /** Called right before the first byte is sent; what it throws ends the call with nothing sent. */
  readonly beforeFirstByte?: (() => void) | undefined;
}

/** A call of the upstream, and the attempt at it that is under way. Instants are in milliseconds of the process's clock. */
export class UpstreamCall {
  /** The request that it was begun for. Other requests may wait for it too. */
  readonly request: ClientRequest;
  readonly asked: Asked;
  readonly account: AccountId | undefined;
  readonly owner: Owner;
  readonly leg: string | undefined;
  readonly validators: Entry['validators'] | undefined;
  readonly abortable: Abortable;
  readonly endsAt: number;
  readonly key: string | undefined;
  readonly beforeSend: (() => void) | undefined;
  readonly beforeFirstByte: (() => void) | undefined;
  /** When the attempt began to pass the checks, or the last one let it wait no longer. */
  attemptAt = 0;
  /** How often it was sent before. */
  resends = 0;
  /** The attempt since it was sent. */
  phase: Phase | undefined;

  constructor(request: ClientRequest, asked: Asked, particulars: Particulars) {
    this.request = request;
    this.asked = asked;
    this.account = particulars.account;
    this.owner = particulars.owner;
    this.leg = particulars.leg;
    this.validators = particulars.validators;
    this.abortable = particulars.abortable;
    this.endsAt = particulars.endsAt;
    this.key = particulars.key;
    this.beforeSend = particulars.beforeSend;
    this.beforeFirstByte = particulars.beforeFirstByte;
    this.phase = undefined;
  }

  get operation(): Operation {
    return this.asked.operation;
  }
}

/** A good answer: the JSON text as it came, except for the links of a page; null if there is no body. */
export interface UpstreamAnswer {
  readonly status: number;
  readonly text: string | null;
  /** Places in `text` where the gateway's origin goes. */
  readonly links: readonly number[];
  /** The text parsed once, to check it; not kept. */
  readonly value: unknown;
  readonly validators: Entry['validators'];
  /** 304: the copy that the request was conditional on is still valid. */
  readonly notModified: boolean;
  /** What the upstream allows of keeping it, which only ever shortens what the cache would do. */
  readonly isStorable: boolean;
  /** Upper limit for how long it is fresh, in milliseconds. */
  readonly maxFreshMs?: number | undefined;
}

/** How an attempt ended: an answer, or what it failed with. `now`: when, in milliseconds of the process's clock. */
export interface Outcome {
  readonly kind: CallOutcome;
  readonly answer: UpstreamAnswer | undefined;
  readonly error: unknown;
  readonly now: number;
}

/** Whose call it is. */
export type Caller = Pick<UpstreamCall, 'account' | 'owner'>;
