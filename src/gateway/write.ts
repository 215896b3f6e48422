import { invalidatedBy } from '../cache/keys.ts';
import { Abortable } from '../core/abortable.ts';
import { canonical } from '../core/canonical.ts';
import { ClientLeft, type ErrorCode, GatewayError } from '../core/errors.ts';
import { logFault } from '../core/logger.ts';
import { isJson } from '../core/json.ts';
import type { IdempotencyOutcome } from '../core/metrics.ts';
import { stopwatch } from '../core/runtime.ts';
import { during } from '../core/timeline.ts';
import {
  addressOwner,
  type Begun,
  type NewWrite,
  type WriteAnswer,
  type WriteEnd,
  type WriteRecord,
} from '../store/port.ts';
import type { UpstreamCalls } from '../resilience/call.ts';
import type { OperationInput, RequestContext } from '../upstream/call.ts';
import { checkInput } from '../upstream/input.ts';
import type { Operation } from '../upstream/operation.ts';
import type { GatewayDeps } from './deps.ts';
import { type AcceptedAccounts, isCounted, type RateLimit } from './who.ts';
import { sessionOver } from './sessions.ts';
import type { Waiting } from './waiting.ts';

export interface WriteTools extends GatewayDeps {
  readonly calls: UpstreamCalls;
  readonly limit: RateLimit;
  readonly accepted: AcceptedAccounts;
  readonly waiting: Waiting;
}

/** A request that is about a write. */
interface Asked {
  readonly operation: Pick<Operation, 'credential'>;
  readonly context: RequestContext;
  /** Idempotency key. */
  readonly key: string | undefined;
}

/** What a client asks for. */
interface WriteRequest extends Asked {
  readonly operation: Operation;
  readonly input: () => Promise<OperationInput>;
}

/** Who writes. The request is counted together with its write. */
export type Writer = Awaited<ReturnType<typeof writerOf>>;

/** A write that has been checked and may be sent. */
type Ready = Awaited<ReturnType<typeof readied>>;

/** What the upstream answered. */
type Sent = Pick<WriteAnswer, 'status' | 'text'>;

export interface Written extends Sent {
  /** The answer to an earlier request with the same key. */
  readonly replayed: boolean;
}

/**
 * Anything but a GET: counted and stored in one round trip, then sent at most once. Goes on in the background if the
 * client leaves, so that the outcome of a write that was sent is recorded.
 * @throws GatewayError
 */
export async function write(tools: WriteTools, asked: WriteRequest): Promise<Written> {
  const writer = await writerOf(tools, asked);
  let ready: Ready | undefined;
  try {
    ready = await readied(tools, asked, writer);
  } finally {
    if (!ready?.isStored) await count(tools, writer); // refused requests count too
  }
  const written = carryOut(tools, ready);
  asked.context.waitUntil(written.catch(() => undefined));
  return written;
}

export async function writerOf({ digest, limit, accepted }: WriteTools, { operation, context, key }: Asked) {
  // What takes no credential is stored by the client's address.
  const takesNone = operation.credential === 'none';
  const account = takesNone ? undefined : (context.account ??= await digest.account(context.credential));
  // Credentials contain no space, so the hash of an address never equals that of a credential.
  const storedAs = account ?? (await digest.account(addressOwner(context.address)));
  const owner = (context.owner = accepted.ownerOf(account, context));
  const counting = isCounted(context) ? undefined : limit.account;
  const quota = account === undefined ? limit.address : counting;
  return { context, key, account, storedAs, owner, quota };
}

/** @throws GatewayError `rate_limited` */
async function count({ store, clock, limit }: WriteTools, writer: Writer): Promise<void> {
  const { storedAs: account, quota: window, context } = writer;
  if (!window) return;
  const asked = store.snapshot({ account, window, waitUntil: context.waitUntil });
  const { use } = asked instanceof Promise ? await during(clock, { context }, 'store', asked) : asked;
  limit.apply(context, window, use);
}

async function readied(tools: WriteTools, { operation, input: readInput, context }: WriteRequest, earlier: Writer) {
  const leftMs = context.endsAt - tools.clock.now();
  const passed = stopwatch(tools.clock);
  const isLate = () => passed() >= leftMs;
  const input = await readInput();
  // The account may have been accepted while the body came.
  const writer = { ...earlier, owner: tools.accepted.ownerOf(earlier.account, context) };
  checkInput(operation, input);
  context.abortable.throwIfAborted();
  const newWrite = await newWriteOf(tools, operation, input, writer);
  // With a key, the write may be a repetition, which gets its answer even while no call is let through.
  if (newWrite.key === undefined) tools.calls.assertAllowed(writer);
  const isStored = needsStore(newWrite); // before it is sent
  return { ...writer, operation, input, newWrite, isStored, isLate };
}

const KEY_MS = 24 * 60 * 60 * 1000;
/** How long the upstream may still carry out a write that got no answer. */
const LATE_MS = 60_000;

async function newWriteOf(
  { clock, digest, table }: GatewayDeps,
  operation: Operation,
  input: OperationInput,
  { account, storedAs, quota, context, key }: Writer,
): Promise<NewWrite> {
  const { endsAt, waitUntil } = context;
  const isPurchase = operation.exclusive === true;
  const isCompared = key !== undefined || isPurchase;
  const asked = () => [operation.id, input.id ?? '', input.query, comparedBody(operation, input)].join(' ');
  return {
    account: storedAs,
    window: quota,
    tags: account === undefined ? [] : invalidatedBy(operation, input),
    hasCopies: account !== undefined && table.invalidatesCached(operation),
    nonce: crypto.randomUUID(),
    now: clock.now(),
    endsAt,
    until: endsAt + LATE_MS,
    key,
    keyMs: KEY_MS,
    fingerprint: isCompared ? await digest.body(asked()) : '',
    isPurchase,
    session: account === undefined ? undefined : context.session,
    waitUntil,
  };
}

/** The body in canonical form. One that the operation does not take may be no JSON: then as it came. */
function comparedBody({ notCompared }: Operation, { body, unsent = '' }: OperationInput): string {
  return body !== undefined || isJson(unsent) ? canonical(body ?? unsent, notCompared) : unsent;
}

/** If it invalidates cached answers, has a key, is a purchase, or comes by cookie. */
const needsStore = ({ hasCopies, isPurchase, key, session }: NewWrite): boolean =>
  hasCopies || isPurchase || key !== undefined || session !== undefined;

async function carryOut(tools: WriteTools, ready: Ready): Promise<Written> {
  const replay = ready.isStored ? await begin(tools, ready) : undefined;
  if (replay) return replay;
  try {
    const { status, text } = await send(tools, ready);
    await end(tools, ready, { status, text, at: tools.clock.wall() });
    return { status, text, replayed: false };
  } catch (error) {
    const how = endOf(error);
    await end(tools, ready, how);
    if (how === 'unknown') remember(tools, ready);
    throw how === 'unknown' ? ofUnknownOutcome(error) : error;
  }
}

/**
 * Stores the write. Returns the answer that an earlier request with its key got.
 * @throws GatewayError see `recordIn` and `again`
 */
async function begin(tools: WriteTools, ready: Ready): Promise<Written | undefined> {
  const record = await recordIn(tools, ready, tools.store.beginWrite(ready.newWrite));
  return record && again(tools, record, ready.newWrite);
}

/**
 * The record that the store has of a key, or of an equal purchase, where there is one.
 * @throws GatewayError `rate_limited`, `store_unavailable`, `unauthenticated`
 */
export async function recordIn(
  tools: WriteTools,
  writer: Writer,
  asked: Promise<Begun>,
): Promise<WriteRecord | undefined> {
  const { context, quota } = writer;
  const { use, record, isLimited, isRevoked, refusal } = await during(tools.clock, writer, 'store', asked);
  tools.limit.note(context, quota, use);
  const isBegun = !(refusal || isRevoked || record || isLimited);
  if (isBegun) return undefined;
  tools.limit.apply(context, quota, use);
  if (refusal) throw refusal;
  if (isRevoked) throw sessionOver();
  if (record) return record;
  tools.calls.assertAllowed(writer);
  throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter: 1 }); // the cooldown has just ended
}

/**
 * The answer that the store has a record of, of the key or of an equal purchase.
 * @throws GatewayError `idempotency_key_reused`, `idempotency_in_progress`, `outcome_unknown`
 */
function again({ metrics }: GatewayDeps, record: WriteRecord, { fingerprint }: NewWrite): Written {
  const { outcome } = record;
  const refuse = (
    code: ErrorCode,
    as: IdempotencyOutcome,
    more: Pick<GatewayError['particulars'], 'retryAfter' | 'outcome'> = {},
  ) => {
    metrics.idempotency(as);
    return GatewayError.of(code, { fault: 'not_sent', ...more });
  };
  // One that cannot be opened has none.
  if (record.fingerprint !== '' && record.fingerprint !== fingerprint)
    throw refuse('idempotency_key_reused', 'key_reused');
  if (outcome === 'under_way') throw refuse('idempotency_in_progress', 'in_progress', { retryAfter: 1 });
  if (outcome === 'unknown') throw refuse('outcome_unknown', 'outcome_unknown', { outcome: 'unknown' });
  metrics.idempotency('replayed');
  return { ...outcome, replayed: true };
}

/** A client that leaves cancels the write only until it is sent. */
async function send({ calls, logger }: WriteTools, ready: Ready): Promise<Sent> {
  const { context, key, isLate, account, owner, operation, input } = ready;
  let isSent = false;
  const abortable = new Abortable();
  const stay = context.abortable.onAbort((reason) => {
    if (!isSent) abortable.abort(reason);
  });
  const beforeSend = () => {
    context.abortable.throwIfAborted();
    isSent = true;
  };
  const beforeFirstByte = () => {
    if (isLate()) throw GatewayError.of('upstream_timeout', { fault: 'not_sent' });
  };
  const hooks = { beforeSend, beforeFirstByte, abortable, endsAt: context.endsAt, key };
  try {
    return await calls.make({ context, account, owner, operation, input, ...hooks });
  } catch (error) {
    if (isSent || error instanceof ClientLeft) throw error;
    if (error instanceof GatewayError) throw error.with({ fault: 'not_sent' });
    logFault(logger, context, error);
    throw GatewayError.of('internal_error', { fault: 'not_sent', cause: error });
  } finally {
    stay();
  }
}

/**
 * All ways in which a write ends, besides with its answer:
 *
 * | end | what has happened | its key |
 * | --- | --- | --- |
 * | `not_sent` | a gate, the connection, its client or its time prevented it | is free again |
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

/** Counts the end, reports it to the store, and wakes who waits for a change. */
async function end(tools: WriteTools, ready: Ready, how: WriteEnd): Promise<void> {
  const { store, clock, metrics, waiting } = tools;
  const { newWrite, isStored, account } = ready;
  const told = (ending: Promise<void>) => during(clock, ready, 'store', ending);
  const counted = how === 'unknown' ? 'unknown' : 'released';
  if (newWrite.key !== undefined || newWrite.isPurchase)
    metrics.idempotency(typeof how === 'object' ? 'answered' : counted);
  if (isStored) await told(store.endWrite(newWrite, how));
  else if (account !== undefined && how !== 'not_sent') await told(store.endUnannounced(newWrite, how));
  if (account !== undefined) waiting.wake(account);
}

/** For the operator, who may ask the upstream what has become of it. */
function remember({ recorder, clock }: WriteTools, { context, operation, account, key }: Ready): void {
  const { requestId } = context;
  recorder?.unknown({ requestId, operation: operation.id, account, hasKey: key !== undefined, at: clock.now() });
}

/** A fault of ours is its cause, which is logged where it is answered. */
function ofUnknownOutcome(error: unknown): GatewayError {
  const failure = error instanceof GatewayError ? error : GatewayError.of('internal_error', { cause: error });
  return failure.with({ outcome: 'unknown', detail: `${failure.detail} The write may have happened.` });
}
