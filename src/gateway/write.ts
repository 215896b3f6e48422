import { GatewayError } from '../core/errors.ts';
import { touchedBy } from '../cache/key.ts';
import type { MaybePromise } from '../core/runtime.ts';
import { type Answers, EVERYTHING, type Tag } from '../store/store.ts';
import type { UpstreamAnswer } from '../upstream/answer.ts';
import type { Call } from '../upstream/client.ts';
import { checkInput } from '../upstream/input.ts';
import { type IdempotencyTools, isUnknown, once, type Write, type Written } from './idempotency.ts';

export interface WriteTools extends IdempotencyTools {
  readonly call: Call;
  readonly answers: Answers;
}

/**
 * Anything but a GET. In the background too: whoever leaves, a write that has begun is seen to its end.
 * @throws GatewayError
 */
export async function write(tools: WriteTools, wanted: Write): Promise<Written> {
  const { operation, input, caller } = wanted;
  checkInput(operation, input);
  caller.signal().throwIfAborted();
  const written = once(tools, wanted, (begin) => carryOut(tools, wanted, begin));
  caller.background(written.catch(() => undefined));
  return written;
}

/**
 * What the write touches is made worthless before it is sent, so that reads under way are not stored, and again when
 * it is over, so that reads from in between are not kept; whatever its outcome. One that is held back touches nothing.
 */
async function carryOut(
  { call, answers }: WriteTools,
  wanted: Write,
  begin: () => MaybePromise<void>,
): Promise<UpstreamAnswer> {
  const { operation, input, caller } = wanted;
  const touch = async (tags: readonly Tag[], isPatient = false) => {
    if (caller.account !== undefined && tags.length > 0) await answers.touch(caller.account, tags, isPatient);
  };
  const tags = touchedBy(operation, input);
  let isSent = false;
  const ends = new AbortController();
  const client = caller.signal();
  const leave = () => {
    if (!isSent) ends.abort(client.reason);
  };
  client.addEventListener('abort', leave, { once: true });
  const beforeSend = async () => {
    await Promise.all([begin(), touch(tags)]);
    client.throwIfAborted();
    isSent = true; // from here on it is followed to its end, even if the client leaves
  };
  const { account, from, tally, endsAt } = caller;
  try {
    return await call({ account, operation, input, from, tally, signal: ends.signal, endsAt, beforeSend });
  } catch (thrown) {
    const error = !isSent && thrown instanceof GatewayError ? thrown.with({ fault: 'withheld' }) : thrown;
    if (error instanceof GatewayError && (error.status === 401 || error.status === 403)) await touch([EVERYTHING]);
    throw error instanceof GatewayError && isUnknown(error) ? error.with({ outcome: 'unknown' }) : error;
  } finally {
    client.removeEventListener('abort', leave);
    if (isSent) await touch(tags, true); // its client may read elsewhere the moment it has its answer
  }
}
