import { GatewayError } from '../core/errors.ts';
import { detailOf } from '../core/problem.ts';
import { EVERYTHING, type Store, type WriteAnswer, type WriteEnd } from '../store/store.ts';
import { ClientLeft } from '../upstream/caller.ts';
import type { Call } from '../upstream/client.ts';
import { checkInput } from '../upstream/input.ts';
import { again, countEnd, type IdempotencyTools, newWriteOf, type Write, type Written } from './idempotency.ts';

export interface WriteTools extends IdempotencyTools {
  readonly call: Call;
  readonly store: Pick<Store, 'answers' | 'beginWrite' | 'endWrite'>;
}

/**
 * Anything but a GET: announced to the store, then sent, at most once. In the background too: whoever leaves, a write
 * that has begun is seen to its end.
 * @throws GatewayError
 */
export async function write(tools: WriteTools, wanted: Write): Promise<Written> {
  const { operation, input, caller } = wanted;
  checkInput(operation, input);
  caller.signal().throwIfAborted();
  const written = carryOut(tools, wanted);
  caller.background(written.catch(() => undefined));
  return written;
}

async function carryOut(tools: WriteTools, wanted: Write): Promise<Written> {
  const begun = await newWriteOf(tools, wanted);
  const known = begun && (await tools.store.beginWrite(begun));
  if (known) return again(tools, known, begun);
  const end = async (how: WriteEnd) => {
    if (!begun) return;
    countEnd(tools, begun, how);
    try {
      await tools.store.endWrite(begun, how);
    } catch {
      // The client still learns how the write ended. The store never takes an unsettled record for free.
    }
  };
  try {
    const { status, text } = await send(tools, wanted);
    await end({ status, text });
    return { status, text, replayed: false };
  } catch (error) {
    const how = endOf(error);
    await end(how);
    const { account } = wanted.caller;
    const isRefused = error instanceof GatewayError && (error.status === 401 || error.status === 403);
    if (isRefused && account !== undefined) await tools.store.answers.touch(account, [EVERYTHING]);
    throw how === 'unknown' && error instanceof GatewayError ? unknown(error) : error;
  }
}

/** A client that leaves ends the write only before it is sent. */
async function send({ call }: WriteTools, { operation, input, caller }: Write): Promise<WriteAnswer> {
  const { account, from, tally, endsAt } = caller;
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
  try {
    return await call({ account, operation, input, from, tally, signal: ends.signal, endsAt, beforeSend });
  } catch (error) {
    throw !isSent && error instanceof GatewayError ? error.with({ fault: 'withheld' }) : error;
  } finally {
    client.removeEventListener('abort', leave);
  }
}

/** How a write ended that failed. A fault of ours proves nothing. */
function endOf(error: unknown): 'refused' | 'unknown' | 'not_sent' {
  if (error instanceof ClientLeft) return 'not_sent'; // only who has not been sent yet ends with its client
  if (!(error instanceof GatewayError)) return 'unknown';
  if (error.isUnsent) return 'not_sent';
  return error.status < 500 ? 'refused' : 'unknown';
}

const unknown = (error: GatewayError) =>
  error.with({ outcome: 'unknown', detail: `${detailOf(error)} The write may have been carried out.` });
