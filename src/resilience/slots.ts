import { onAbort } from '../core/abort.ts';
import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import type { Attempt, Gate } from './gates.ts';
import { SlotTable } from './slot-table.ts';

/** An account may have a quarter of the slots, but at least `LEAST_SHARE`. */
const LEAST_SHARE = 8;
const SHARE = 1 / 4;

/**
 * How long a call may wait for a slot (controlled delay, RFC 8289, adapted to servers). Normally long enough for a burst
 * to be served; but once a queue has stood for `STANDS_AFTER_MS` it is overload, and calls wait only briefly.
 */
const BURST_MS = 1_000;
const STANDING_MS = 50;
const STANDS_AFTER_MS = 500;
/** A read that takes longer than this may lose its slot at once. */
const SLOW_MS = 500;

/**
 * Bounds the calls under way, and one account's share of them. When all slots are in use, the owner that has most loses
 * its longest read to one that has fewer. Refuses with `overloaded`. `count` undefined: the platform limits them.
 */
export function slots({ clock, metrics }: { clock: Clock; metrics: Metrics }, count: number | undefined): Gate {
  if (count === undefined) return {};
  const share = Math.min(count, Math.max(LEAST_SHARE, Math.ceil(count * SHARE)));
  const table = new SlotTable({ slots: count, share });
  metrics.watch('waiting_calls', () => table.waiting);
  let waitingSince = clock.now();
  let fullSince: number | undefined;

  const overloaded = () => {
    metrics.refused('slots');
    return GatewayError.of('overloaded', { fault: 'not_sent', retryAfter: 1 });
  };

  /** Gives the attempt the slot of a read that has taken `minMs`; returns whether there was one. */
  const takeOver = (attempt: Attempt, minMs: number): boolean => {
    const read = table.takeOver(attempt, clock.now() - minMs);
    read?.controller.abort(overloaded());
    return read !== undefined;
  };

  /** How long a call that comes now may wait. */
  const maxWaitMs = (now: number): number => {
    if (table.waiting === 0) waitingSince = now;
    // While slots are free, an account waits only because its own share is used up: that is no queue.
    const standsSince = Math.max(waitingSince, fullSince ?? now);
    return now - standsSince > STANDS_AFTER_MS ? STANDING_MS : BURST_MS;
  };

  const wait = async (attempt: Attempt): Promise<void> => {
    const waitMs = maxWaitMs(attempt.now);
    const ticket = table.wait(attempt);
    const gone = Promise.withResolvers<void>();
    const cancel = clock.after(waitMs, () => {
      if (!ticket.leave()) return;
      if (takeOver(attempt, 0)) gone.resolve();
      else gone.reject(overloaded());
    });
    const stay = onAbort(attempt.call.signal, (reason) => {
      if (ticket.leave()) gone.reject(reason);
    });
    try {
      await Promise.race([ticket.granted, gone.promise]);
    } finally {
      cancel();
      stay();
    }
  };

  const noteFull = () => {
    fullSince = table.isFull ? (fullSince ?? clock.now()) : undefined;
  };

  return {
    admit(attempt) {
      if (!table.take(attempt) && !takeOver(attempt, SLOW_MS)) return wait(attempt).then(noteFull);
      return noteFull();
    },
    settled(attempt) {
      table.release(attempt);
      noteFull();
    },
  };
}
