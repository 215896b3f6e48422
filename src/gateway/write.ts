import { Cancellation } from '../core/cancellation.ts';
import { GatewayError } from '../core/errors.ts';
import { detailOf } from '../core/problem.ts';
import type { Clock } from '../core/runtime.ts';
import type { NewWrite, Store, WriteAnswer, WriteEnd } from '../store/store.ts';
import type { Call } from '../upstream/client.ts';
import { checkInput } from '../upstream/input.ts';
import type { Operation } from '../upstream/operation.ts';
import type { OperationInput } from '../upstream/request.ts';
import { ClientLeft } from '../upstream/request-context.ts';
import {
  again,
  countEnd,
  type IdempotencyTools,
  needsStore,
  newWriteOf,
  type Write,
  type Writer,
  type Written,
} from './idempotency.ts';
import type { RateLimit } from './rate-limit.ts';

export interface WriteTools extends IdempotencyTools {
  readonly call: Call;
  /** @throws GatewayError where a call of this account would not be let through */
  assertOpen(writer: Writer): void;
  readonly limit: RateLimit;
  readonly store: Pick<Store, 'snapshot' | 'beginWrite' | 'endWrite'>;
}

interface Wanted {
  readonly operation: Operation;
  readonly input: () => Promise<OperationInput>;
  readonly writer: Writer;
}

/** A write that may be sent, once the store has been told of it. */
interface Ready {
  readonly wanted: Write;
  readonly begun: NewWrite;
  readonly isLate: () => boolean;
}

/**
 * Anything but a GET: counted and announced to the store in one round trip, then sent, at most once. In the background
 * too: whoever leaves, a write that has begun is seen to its end.
 * @throws GatewayError
 */
export async function write(tools: WriteTools, wanted: Wanted): Promise<Written> {
  const { writer } = wanted;
  const ready = await readied(tools, wanted).catch(async (error: unknown) => {
    await count(tools, writer); // what is refused counts all the same
    throw error;
  });
  if (!needsStore(ready.wanted)) await count(tools, writer);
  const written = carryOut(tools, ready);
  writer.context.background(written.catch(() => undefined));
  return written;
}

async function readied(tools: WriteTools, { operation, input, writer }: Wanted): Promise<Ready> {
  const isLate = lateness(tools.clock, writer.context.endsAt);
  const wanted = { operation, input: await input(), writer };
  checkInput(operation, wanted.input);
  writer.context.cancellation.throwIfCancelled();
  const begun = await newWriteOf(tools, wanted);
  // Who repeats a key gets its answer also while no call is let through.
  if (begun.key === undefined) tools.assertOpen(writer);
  return { wanted, begun, isLate };
}

/**
 * Whether the request's time is up, by the clock that has gone further: one stands still while the machine sleeps, and
 * the other may be set back.
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
  const { use } = await store.snapshot({ principal, owner, now: clock.now(), window, background: context.background });
  limit.counted(context, quota, use);
}

async function carryOut(tools: WriteTools, ready: Ready): Promise<Written> {
  const { wanted, begun } = ready;
  const isAnnounced = needsStore(wanted);
  const known = isAnnounced ? await begin(tools, wanted, begun) : undefined;
  if (known) return known;
  const end = async (how: WriteEnd) => {
    countEnd(tools, begun, how);
    if (isAnnounced) return tools.store.endWrite(begun, how);
    // The store hears, once, that it is over: reads from before it are then old.
    const isNews = wanted.writer.account !== undefined && how !== 'not_sent';
    if (isNews) await tools.store.endWrite({ ...begun, until: tools.clock.now() }, how);
  };
  try {
    const { status, text } = await send(tools, ready);
    await end({ status, text });
    return { status, text, replayed: false };
  } catch (error) {
    const how = endOf(error);
    await end(how);
    throw how === 'unknown' && error instanceof GatewayError ? unknown(error) : error;
  }
}

/**
 * Comes back with the answer where it is known already.
 * @throws GatewayError `rate_limited`, `store_unavailable`, see `again`
 */
async function begin(tools: WriteTools, { writer }: Write, begun: NewWrite): Promise<Written | undefined> {
  const { use, known, isLimited, refusal } = await tools.store.beginWrite(begun);
  tools.limit.counted(writer.context, writer.quota, use);
  if (refusal) throw refusal;
  if (known) return again(tools, known, begun);
  if (!isLimited) return undefined;
  tools.assertOpen(writer);
  throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter: 1 }); // it has just ended
}

/** A client that leaves ends the write only before it is sent. */
async function send(
  { call }: WriteTools,
  { wanted: { operation, input, writer }, isLate }: Ready,
): Promise<WriteAnswer> {
  const { account, owner, context } = writer;
  let isSent = false;
  const cancellation = new Cancellation();
  const leave = (reason: unknown) => {
    if (!isSent) cancellation.cancel(reason);
  };
  context.cancellation.on(leave);
  const beforeSend = () => {
    context.cancellation.throwIfCancelled();
    isSent = true;
  };
  const beforeFirstByte = () => {
    if (isLate()) throw GatewayError.of('upstream_timeout', { fault: 'not_sent' });
  };
  const hooks = { beforeSend, beforeFirstByte };
  try {
    const { endsAt } = context;
    return await call({ context, account, owner, operation, input, cancellation, endsAt, ...hooks });
  } catch (error) {
    throw !isSent && error instanceof GatewayError ? error.with({ fault: 'not_sent' }) : error;
  } finally {
    context.cancellation.off(leave);
  }
}

/** How a write ended that failed. A fault of ours proves nothing. */
function endOf(error: unknown): WriteEnd {
  if (error instanceof ClientLeft) return 'not_sent'; // only who has not been sent yet ends with its client
  if (!(error instanceof GatewayError)) return 'unknown';
  if (error.isUnsent) return 'not_sent';
  if (error.status === 401 || error.status === 403) return 'credential_refused';
  return error.status < 500 ? 'refused' : 'unknown';
}

const unknown = (error: GatewayError) =>
  error.with({ outcome: 'unknown', detail: `${detailOf(error)} The write may have happened.` });
