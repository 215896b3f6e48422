import { onAbort } from '../core/abort.ts';
import { GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';
import type { NewWrite, WriteAnswer, WriteEnd } from '../store/store.ts';
import type { Call, OperationInput } from '../upstream/call.ts';
import { checkInput } from '../upstream/input.ts';
import type { Operation } from '../upstream/operation.ts';
import { ClientLeft } from '../upstream/request-context.ts';
import {
  again,
  countEnd,
  LATE_MS,
  needsStore,
  newWriteOf,
  type Write,
  type Writer,
  type Written,
} from './idempotency.ts';
import type { GatewayDeps } from './deps.ts';
import type { RateLimit } from './rate-limit.ts';
import type { Accepted } from './reader.ts';
import { sessionOver } from './sessions.ts';

interface WriteTools extends GatewayDeps {
  readonly call: Call;
  /** @throws GatewayError if a call of this account would not be let through */
  assertAllowed(writer: Writer): void;
  readonly limit: RateLimit;
  readonly accepted: Accepted;
}

interface WriteRequest {
  readonly operation: Operation;
  readonly input: () => Promise<OperationInput>;
  readonly writer: Writer;
}

/** A write that has been checked and may be sent once it is stored. */
interface Ready {
  readonly wanted: Write;
  readonly newWrite: NewWrite;
  readonly isLate: () => boolean;
}

/**
 * Anything but a GET: counted and stored in one round trip, then sent at most once. Goes on in the background if the
 * client leaves, so that the outcome of a write that was sent is recorded.
 * @throws GatewayError
 */
export async function write(tools: WriteTools, asked: WriteRequest): Promise<Written> {
  const { writer } = asked;
  const ready = await readied(tools, asked).catch(async (error: unknown) => {
    await count(tools, writer); // refused requests count too
    throw error;
  });
  if (!needsStore(ready.wanted)) await count(tools, writer);
  const written = carryOut(tools, ready);
  writer.context.waitUntil(written.catch(() => undefined));
  return written;
}

async function readied(tools: WriteTools, { operation, input: read, writer: asked }: WriteRequest): Promise<Ready> {
  const isLate = lateness(tools.clock, asked.context.endsAt);
  const input = await read();
  // The account may have been accepted while the body came.
  const writer = { ...asked, owner: tools.accepted.ownerOf(asked.account, asked.context) };
  const wanted = { operation, input, writer };
  checkInput(operation, input);
  writer.context.signal.throwIfAborted();
  const newWrite = await newWriteOf(tools, wanted);
  // With a key, the write may be a repetition, which gets its answer even while no call is let through.
  if (newWrite.key === undefined) tools.assertAllowed(writer);
  return { wanted, newWrite, isLate };
}

/**
 * Whether the request's time is up, by the clock that has advanced further: one may stand still while the machine
 * sleeps, and the other may be set back.
 */
function lateness(clock: Clock, endsAt: number): () => boolean {
  const [now, wall] = [clock.now(), clock.wall()];
  return () => Math.max(clock.now() - now, clock.wall() - wall) >= endsAt - now;
}

/** @throws GatewayError `rate_limited` */
async function count({ store, clock, limit }: WriteTools, writer: Writer): Promise<void> {
  const { principal, owner, quota, context } = writer;
  if (!quota) return;
  const { window } = quota;
  const { use } = await store.snapshot({ principal, owner, now: clock.now(), window, waitUntil: context.waitUntil });
  limit.apply(context, quota, use);
}

async function carryOut(tools: WriteTools, ready: Ready): Promise<Written> {
  const { wanted, newWrite } = ready;
  const isStored = needsStore(wanted);
  const known = isStored ? await begin(tools, wanted, newWrite) : undefined;
  if (known) return known;
  const end = async (how: WriteEnd) => {
    countEnd(tools, newWrite, how);
    if (isStored)
      return tools.store.endWrite(how === 'unknown' ? stillOpen(newWrite, tools.clock.now()) : newWrite, how);
    // It was not stored before, but invalidates reads that are under way: reported once, with a mark that expires now.
    const isReported = wanted.writer.account !== undefined && how !== 'not_sent';
    if (isReported) await tools.store.endWrite({ ...newWrite, until: tools.clock.now() }, how);
  };
  try {
    const { status, text } = await send(tools, ready);
    await end({ status, text });
    return { status, text, replayed: false };
  } catch (error) {
    const how = endOf(error);
    await end(how);
    throw how === 'unknown' ? unknown(error) : error;
  }
}

/**
 * Stores the write. Returns the answer if it is known already.
 * @throws GatewayError `rate_limited`, `store_unavailable`, see `again`
 */
async function begin(tools: WriteTools, { writer }: Write, newWrite: NewWrite): Promise<Written | undefined> {
  const { use, known, isLimited, isRevoked, refusal } = await tools.store.beginWrite(newWrite);
  tools.limit.apply(writer.context, writer.quota, use);
  if (refusal) throw refusal;
  if (isRevoked) throw sessionOver();
  if (known) return again(tools, known, newWrite);
  if (!isLimited) return undefined;
  tools.assertAllowed(writer);
  throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter: 1 }); // the cooldown has just ended
}

/** A client that leaves cancels the write only until it is sent. */
async function send({ call }: WriteTools, { wanted, isLate }: Ready): Promise<WriteAnswer> {
  const { operation, input, writer } = wanted;
  const { account, owner, context } = writer;
  let isSent = false;
  const controller = new AbortController();
  const stay = onAbort(context.signal, (reason) => {
    if (!isSent) controller.abort(reason);
  });
  const beforeSend = () => {
    context.signal.throwIfAborted();
    isSent = true;
  };
  const beforeFirstByte = () => {
    if (isLate()) throw GatewayError.of('upstream_timeout', { fault: 'not_sent' });
  };
  const hooks = { beforeSend, beforeFirstByte };
  try {
    const { endsAt } = context;
    return await call({ context, account, owner, operation, input, signal: controller.signal, endsAt, ...hooks });
  } catch (error) {
    throw !isSent && error instanceof GatewayError ? error.with({ fault: 'not_sent' }) : error;
  } finally {
    stay();
  }
}

/** How a write that failed has ended. After a fault of ours the outcome is unknown. */
function endOf(error: unknown): WriteEnd {
  if (error instanceof ClientLeft) return 'not_sent'; // a client that leaves cancels only what was not sent
  if (!(error instanceof GatewayError)) return 'unknown';
  if (error.isUnsent) return 'not_sent';
  if (error.status === 401 || error.status === 403) return 'credential_refused';
  return error.status < 500 ? 'refused' : 'unknown';
}

/** After a stall its mark may be over before anybody knows that the outcome is not known. */
function stillOpen(newWrite: NewWrite, now: number): NewWrite {
  const keyMs = newWrite.now + newWrite.keyMs - now;
  return { ...newWrite, now, keyMs, until: Math.max(newWrite.until, now + LATE_MS) };
}

/** A fault of ours is its cause, which is logged where it is answered. */
function unknown(error: unknown): GatewayError {
  const known = error instanceof GatewayError ? error : GatewayError.of('internal_error', { cause: error });
  return known.with({ outcome: 'unknown', detail: `${known.detail} The write may have happened.` });
}
