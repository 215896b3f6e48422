import { Abortable } from '../core/abortable.ts';
import { canonical } from '../core/canonical.ts';
import { ClientLeft, type ErrorCode, GatewayError } from '../core/errors.ts';
import { isJson } from '../core/json.ts';
import { logFault } from '../core/logger.ts';
import type { IdempotencyOutcome } from '../core/metrics.ts';
import type { ClientRequest, Quota } from '../core/request.ts';
import { stopwatch } from '../core/runtime.ts';
import type { UpstreamCalls } from '../resilience/call.ts';
import {
  type AccountId,
  addressOwner,
  type Begun,
  type NewWrite,
  type OpenState,
  type Owner,
  type WriteAnswer,
  type WriteEnd,
  type WriteRecord,
} from '../store/port.ts';
import { type Invocation, UpstreamCall } from '../upstream/call.ts';
import { checkInput } from '../upstream/input.ts';
import type { Operation } from '../upstream/operation.ts';
import { invalidatedBy } from '../upstream/read.ts';
import { type Admission, isCounted, sessionOver } from './admission.ts';
import type { Waiting } from './waiting.ts';

/** A request with its idempotency key, and the account and limit under which the store counts and keeps its write. */
interface WriteContext {
  readonly request: ClientRequest;
  /** Idempotency key. */
  readonly key: string | undefined;
  /** Undefined for an operation that takes no credential. */
  readonly account: AccountId | undefined;
  /** The account in the store: `account`, or without one the hash of the client's address. */
  readonly storeAccount: AccountId;
  /** Undefined where nothing is limited, or the request has been counted. */
  readonly quota: Quota | undefined;
  /** Whose share of the upstream's connections the write takes. */
  readonly owner: Owner;
}

/** A write that has been checked and may be sent. */
interface Write extends WriteContext {
  readonly invocation: Invocation;
  readonly stored: NewWrite;
  /** Whether the store has to know of it before it is sent. */
  readonly isStored: boolean;
  /** Whether the request's time is over. Right even where the process was stopped meanwhile. */
  readonly isLate: () => boolean;
}

/** What a client asks of a write, once its body has been read. */
type Input = Omit<Invocation, 'operation'>;

export interface Written {
  readonly status: number;
  readonly text: string | null;
  /** The answer to an earlier request with the same key. */
  readonly replayed: boolean;
}

/** What became of an idempotency key. */
export type KeyOutcome =
  | { readonly state: OpenState }
  | { readonly state: 'done'; readonly status: number; readonly at: string };

const KEY_MS = 24 * 60 * 60 * 1000;
/** For how long the upstream may still carry out a write that got no answer. */
const LATE_MS = 60_000;

/** Anything but a GET: counted and stored in one round trip, then sent at most once, never through the cache. */
export class Writes {
  readonly #admission: Admission;
  readonly #calls: UpstreamCalls;
  readonly #waiting: Waiting;

  constructor(admission: Admission, calls: UpstreamCalls, waiting: Waiting) {
    this.#admission = admission;
    this.#calls = calls;
    this.#waiting = waiting;
  }

  /**
   * Makes a write. It goes on in the background if the client leaves, so that the outcome of a write that was sent is
   * recorded. `input` reads the request's body. @throws GatewayError; ClientLeft; what `input` throws
   */
  async write(
    request: ClientRequest,
    operation: Operation,
    input: () => Promise<Input>,
    key = request.idempotencyKey,
  ): Promise<Written> {
    this.#admission.assertNew(request);
    const context = await this.#contextOf(request, key, operation.credential === 'none');
    let write: Write | undefined;
    try {
      write = await this.#checked(context, operation, input);
    } finally {
      if (!write?.isStored) await this.#count(context); // refused requests count too
    }
    const written = this.#carryOut(write);
    request.waitUntil(written.catch(() => undefined));
    return written;
  }

  /**
   * What became of a write of the account, by its idempotency key. Counts the request; sends nothing.
   * @throws GatewayError `outcome_not_found`, see `#recordIn`
   */
  async outcomeOf(request: ClientRequest, key: string): Promise<KeyOutcome> {
    const context = await this.#contextOf(request, key, false);
    const { storeAccount: account, quota: window } = context;
    const { session, waitUntil } = request;
    const question = { account, window, key, session, waitUntil };
    const record = await this.#recordIn(context, this.#admission.deps.store.outcomeOf(question));
    if (!record) throw GatewayError.of('outcome_not_found', { fault: 'not_sent' });
    if (typeof record.outcome === 'string') return { state: record.outcome };
    const { status, at } = record.outcome;
    return { state: 'done', status, at: new Date(at).toISOString() };
  }

  async #contextOf(request: ClientRequest, key: string | undefined, needsNoCredential: boolean): Promise<WriteContext> {
    const { limit, deps } = this.#admission;
    const account = needsNoCredential ? undefined : await this.#admission.accountOf(request);
    // Credentials contain no space, so the hash of an address never equals that of a credential.
    const storeAccount = account ?? (await deps.digest.account(addressOwner(request.address)));
    const owner = this.#admission.accepted.ownerOf(account, request);
    const ofAccount = isCounted(request) ? undefined : limit.account;
    return { request, key, account, owner, storeAccount, quota: account === undefined ? limit.address : ofAccount };
  }

  /** Counts a request whose write the store is not told of. @throws GatewayError `rate_limited` */
  async #count({ storeAccount: account, quota: window, request }: WriteContext): Promise<void> {
    if (!window) return;
    const { store } = this.#admission.deps;
    const { use } = await request.during('store', store.snapshot({ account, window, waitUntil: request.waitUntil }));
    this.#admission.limit.apply(request, window, use);
  }

  /** Reads and checks the input. @throws GatewayError what refuses the write before it is stored; what `input` throws */
  async #checked(context: WriteContext, operation: Operation, input: () => Promise<Input>): Promise<Write> {
    const { clock } = this.#admission.deps;
    const { request, account, key } = context;
    const leftMs = request.endsAt - clock.now();
    const passed = stopwatch(clock);
    const invocation: Invocation = { operation, ...(await input()) };
    // The account may have been accepted while the body came.
    const owner = this.#admission.accepted.ownerOf(account, request);
    checkInput(operation, invocation);
    request.abortable.throwIfAborted();
    const stored = await this.#newWriteOf(context, invocation);
    // A write with a key may be a repetition, which gets its answer even while cooldown or circuit refuses calls.
    if (key === undefined) this.#calls.assertAllowed({ account, owner });
    const isStored = stored.hasCopies || stored.isPurchase || key !== undefined || stored.session !== undefined;
    return { ...context, invocation, owner, stored, isStored, isLate: () => passed() >= leftMs };
  }

  async #newWriteOf(
    { request, account, storeAccount, quota, key }: WriteContext,
    invocation: Invocation,
  ): Promise<NewWrite> {
    const { clock, digest, table } = this.#admission.deps;
    const { endsAt, waitUntil } = request;
    const { operation, id = '', query } = invocation;
    const isPurchase = operation.exclusive === true;
    const isCompared = key !== undefined || isPurchase;
    return {
      account: storeAccount,
      window: quota,
      tags: account === undefined ? [] : invalidatedBy(operation, id),
      hasCopies: account !== undefined && table.invalidatesCached(operation),
      nonce: crypto.randomUUID(),
      now: clock.now(),
      endsAt,
      until: endsAt + LATE_MS,
      key,
      keyMs: KEY_MS,
      fingerprint: isCompared ? await digest.body([operation.id, id, query, comparedBody(invocation)].join(' ')) : '',
      isPurchase,
      session: account === undefined ? undefined : request.session,
      waitUntil,
    };
  }

  /** Stores the write, sends it, and stores how it ended. @throws GatewayError; ClientLeft */
  async #carryOut(write: Write): Promise<Written> {
    const replayed = write.isStored ? await this.#begin(write) : undefined;
    if (replayed) return replayed;
    try {
      const { status, text } = await this.#send(write);
      await this.#end(write, { status, text, at: this.#admission.deps.clock.wall() });
      return { status, text, replayed: false };
    } catch (error) {
      const end = endOf(error);
      await this.#end(write, end);
      if (end !== 'unknown') throw error;
      this.#tellOperator(write);
      throw ofUnknownOutcome(error);
    }
  }

  /**
   * Stores the write before it is sent. Returns the answer that an earlier request with its key got, if there was one.
   * @throws GatewayError `idempotency_key_reused`, `idempotency_in_progress`, `outcome_unknown`; see `#recordIn`
   */
  async #begin(write: Write): Promise<Written | undefined> {
    const { store, metrics } = this.#admission.deps;
    const record = await this.#recordIn(write, store.beginWrite(write.stored));
    if (!record) return undefined;
    const { outcome, fingerprint } = record;
    const refuse = (
      code: ErrorCode,
      as: IdempotencyOutcome,
      more: Pick<GatewayError['particulars'], 'retryAfter' | 'outcome'> = {},
    ) => {
      metrics.idempotency(as);
      return GatewayError.of(code, { fault: 'not_sent', ...more });
    };
    // A record that cannot be opened has no fingerprint.
    if (fingerprint !== '' && fingerprint !== write.stored.fingerprint)
      throw refuse('idempotency_key_reused', 'key_reused');
    if (outcome === 'under_way') throw refuse('idempotency_in_progress', 'in_progress', { retryAfter: 1 });
    if (outcome === 'unknown') throw refuse('outcome_unknown', 'outcome_unknown', { outcome: 'unknown' });
    metrics.idempotency('replayed');
    return { ...outcome, replayed: true };
  }

  /**
   * Waits for the store's reply. Returns the record of an earlier write with the key, or of an equal purchase.
   * @throws GatewayError `rate_limited`, `store_unavailable`, `unauthenticated`
   */
  async #recordIn(context: WriteContext, reply: Promise<Begun>): Promise<WriteRecord | undefined> {
    const { limit } = this.#admission;
    const { request, quota } = context;
    const { use, record, isLimited, isRevoked, refusal } = await request.during('store', reply);
    limit.note(request, quota, use);
    if (!(refusal || isRevoked || record || isLimited)) return undefined;
    limit.apply(request, quota, use);
    if (refusal) throw refusal;
    if (isRevoked) throw sessionOver();
    if (record) return record;
    this.#calls.assertAllowed(context);
    throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter: 1 }); // the cooldown has just ended
  }

  /** Sends the write. A client that leaves cancels it only before it is sent. @throws GatewayError; ClientLeft */
  async #send({ request, invocation, account, owner, key, isLate }: Write): Promise<Pick<Written, 'status' | 'text'>> {
    let isSent = false;
    const abortable = new Abortable();
    const stopListening = request.abortable.onAbort((reason) => {
      if (!isSent) abortable.abort(reason);
    });
    const beforeSend = () => {
      request.abortable.throwIfAborted();
      isSent = true;
    };
    const beforeFirstByte = () => {
      if (isLate()) throw GatewayError.of('upstream_timeout', { fault: 'not_sent' });
    };
    const { endsAt } = request;
    const options = { account, owner, abortable, endsAt, key, beforeSend, beforeFirstByte };
    try {
      return await this.#calls.make(new UpstreamCall(request, invocation, options));
    } catch (error) {
      if (isSent || error instanceof ClientLeft) throw error;
      if (error instanceof GatewayError) throw error.with({ fault: 'not_sent' });
      logFault(this.#admission.deps.logger, request, error);
      throw GatewayError.of('internal_error', { fault: 'not_sent', cause: error });
    } finally {
      stopListening();
    }
  }

  /** Counts the end, tells the store, and wakes the account's requests that wait for a change. */
  async #end({ request, stored, isStored, account }: Write, end: WriteEnd): Promise<void> {
    const { store, metrics } = this.#admission.deps;
    const counted = end === 'unknown' ? 'unknown' : 'released';
    if (stored.key !== undefined || stored.isPurchase)
      metrics.idempotency(typeof end === 'object' ? 'answered' : counted);
    if (isStored) await request.during('store', store.endWrite(stored, end));
    else if (account !== undefined && end !== 'not_sent')
      await request.during('store', store.endUnannounced(stored, end));
    if (account !== undefined) this.#waiting.wake(account);
  }

  /** Records a write with an unknown outcome for the operator, who may ask the upstream about it. */
  #tellOperator({ request: { requestId }, invocation, account, key }: Write): void {
    const { recorder, clock } = this.#admission.deps;
    const operation = invocation.operation.id;
    recorder?.unknown({ requestId, operation, account, hasKey: key !== undefined, at: clock.now() });
  }
}

/** The body in canonical form. A body that the operation does not take may be no JSON: then it is compared as it came. */
function comparedBody({ operation: { notCompared }, body, ignoredBody = '' }: Invocation): string {
  return body !== undefined || isJson(ignoredBody) ? canonical(body ?? ignoredBody, notCompared) : ignoredBody;
}

/**
 * How a write without an answer has ended:
 *
 * | end | what has happened | its key |
 * | --- | --- | --- |
 * | `not_sent` | a check, the connection, its client or its time prevented it | is free again |
 * | `refused` | the upstream answered with a 4xx, or leads back to a gateway and never saw it | is free again |
 * | `credential_refused` | the same with 401 or 403: no copy of the account is valid any more | is free again |
 * | `unknown` | no answer, an unusable one, a 5xx, or a fault of ours | answers 409, so does an equal purchase |
 */
function endOf(error: unknown): Exclude<WriteEnd, WriteAnswer> {
  if (error instanceof ClientLeft) return 'not_sent'; // a client that leaves cancels only what was not sent
  if (!(error instanceof GatewayError)) return 'unknown';
  if (error.isUnsent) return 'not_sent';
  if (error.status === 401 || error.status === 403) return 'credential_refused';
  return error.status < 500 || error.code === 'loop_detected' ? 'refused' : 'unknown';
}

/** The error for the client. A fault of ours becomes `internal_error`; its cause is logged when the request is answered. */
function ofUnknownOutcome(error: unknown): GatewayError {
  const failure = error instanceof GatewayError ? error : GatewayError.of('internal_error', { cause: error });
  return failure.with({ outcome: 'unknown', detail: `${failure.detail} The write may have happened.` });
}
