import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import type { Layer } from '../upstream/client.ts';
import { FairQueue } from './fair-queue.ts';

interface BulkheadOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Calls under way at once; undefined where the platform sees to it. */
  readonly slots: number | undefined;
}

/** An account may have a quarter of the slots, or these where that is fewer: quiet ones find some free. */
const LEAST_SHARE = 8;
const SHARE = 1 / 4;

/**
 * How long a call may wait for a slot: a burst is served, a queue that has stood for longer than a burst is cut
 * short, since all who come would wait to the end of it (controlled delay, RFC 8289, in the form for servers).
 */
const BURST_MS = 1_000;
const STANDING_MS = 50;
const STANDS_AFTER_MS = 500;

/**
 * Bounds the calls under way, the waiting for them, and the share of one account in both.
 * @throws GatewayError `overloaded`
 */
export function bulkhead({ clock, metrics, slots }: BulkheadOptions): Layer {
  if (slots === undefined) return (next) => next;
  const share = Math.min(slots, Math.max(LEAST_SHARE, Math.ceil(slots * SHARE)));
  const queue = new FairQueue({ slots, share });
  metrics.watch('waiting_calls', () => queue.waiting);
  let waitingSince = clock.now();
  let fullSince: number | undefined;

  const stand = async (account: string, signal: AbortSignal): Promise<void> => {
    const now = clock.now();
    if (queue.waiting === 0) waitingSince = now;
    // With slots free it is only its own share that an account waits for, and no queue for others.
    const standsSince = Math.max(waitingSince, fullSince ?? now);
    const waitMs = now - standsSince > STANDS_AFTER_MS ? STANDING_MS : BURST_MS;
    const ticket = queue.wait(account);
    const gone = Promise.withResolvers<never>();
    const cancel = clock.after(waitMs, () => {
      if (!ticket.leave()) return;
      metrics.refused('slots');
      gone.reject(GatewayError.of('overloaded', { fault: 'not_sent', retryAfter: 1 }));
    });
    const abandon = () => {
      if (ticket.leave()) gone.reject(signal.reason);
    };
    signal.addEventListener('abort', abandon, { once: true });
    if (signal.aborted) abandon();
    try {
      await Promise.race([ticket.granted, gone.promise]);
    } finally {
      cancel();
      signal.removeEventListener('abort', abandon);
    }
  };

  return (next) => async (call) => {
    const account = call.account ?? '';
    if (!queue.take(account)) await stand(account, call.signal);
    if (queue.isFull) fullSince ??= clock.now();
    try {
      return await next(call);
    } finally {
      queue.release(account);
      if (!queue.isFull) fullSince = undefined;
    }
  };
}
