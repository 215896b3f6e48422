import { GatewayError } from '../core/errors.ts';
import { detailOf } from '../core/problem.ts';
import type { Clock } from '../core/runtime.ts';
import type { NewWrite, Store, WriteAnswer, WriteEnd } from '../store/store.ts';
import { type Caller, ClientLeft } from '../upstream/caller.ts';
import type { Call } from '../upstream/client.ts';
import { checkInput } from '../upstream/input.ts';
import type { Operation } from '../upstream/operation.ts';
import type { OperationInput } from '../upstream/request.ts';
import {
  again,
  countEnd,
  type IdempotencyTools,
  needsStore,
  newWriteOf,
  type Write,
  type Written,
} from './idempotency.ts';

export interface WriteTools extends IdempotencyTools {
  readonly call: Call;
  /** @throws GatewayError where a call of this account would not be let through */
  assertOpen(caller: Caller): void;
  readonly store: Pick<Store, 'snapshot' | 'beginWrite' | 'endWrite'>;
}

interface Wanted {
  readonly operation: Operation;
  readonly input: () => Promise<OperationInput>;
  readonly caller: Caller;
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
  const { caller } = wanted;
  const ready = await readied(tools, wanted).catch(async (error: unknown) => {
    await count(tools, caller); // what is refused counts all the same
    throw error;
  });
  if (!needsStore(ready.wanted)) await count(tools, caller);
  const written = carryOut(tools, ready);
  caller.background(written.catch(() => undefined));
  return written;
}

async function readied(tools: WriteTools, { operation, input, caller }: Wanted): Promise<Ready> {
  const isLate = lateness(tools.clock, caller.endsAt);
  const wanted = { operation, input: await input(), caller };
  checkInput(operation, wanted.input);
  caller.signal().throwIfAborted();
  const begun = await newWriteOf(tools, wanted);
  // Who repeats a key gets its answer also while no call is let through.
  if (begun.key === undefined) tools.assertOpen(caller);
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
async function count({ store, clock }: WriteTools, caller: Caller): Promise<void> {
  const { principal, owner, window, background } = caller;
  if (window) caller.counted((await store.snapshot({ principal, owner, now: clock.now(), window, background })).use);
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
    const isNews = wanted.caller.account !== undefined && how !== 'not_sent';
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
async function begin(tools: WriteTools, { caller }: Write, begun: NewWrite): Promise<Written | undefined> {
  const { use, known, isHeldBack, refusal } = await tools.store.beginWrite(begun);
  caller.counted(use);
  if (refusal) throw refusal;
  if (known) return again(tools, known, begun);
  if (!isHeldBack) return undefined;
  tools.assertOpen(caller);
  throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter: 1 }); // it has just ended
}

/** A client that leaves ends the write only before it is sent. */
async function send(
  { call }: WriteTools,
  { wanted: { operation, input, caller }, isLate }: Ready,
): Promise<WriteAnswer> {
  const { account, owner, from, tally, endsAt, background } = caller;
  let isSent = false;
  const ends = new AbortController();
  const client = caller.signal();
  const leave = () => {
    if (!isSent) ends.abort(client.reason);
  };
  client.addEventListener('abort', leave, { once: true });
  const beforeSend = () => {
    client.throwIfAborted();
    isSent = true;
  };
  const beforeFirstByte = () => {
    if (isLate()) throw GatewayError.of('upstream_timeout', { fault: 'not_sent' });
  };
  const hooks = { beforeSend, beforeFirstByte };
  try {
    const { signal } = ends;
    return await call({ account, owner, operation, input, from, tally, background, signal, endsAt, ...hooks });
  } catch (error) {
    throw !isSent && error instanceof GatewayError ? error.with({ fault: 'not_sent' }) : error;
  } finally {
    client.removeEventListener('abort', leave);
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
