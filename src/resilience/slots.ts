import type { Clock } from '../core/runtime.ts';
import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import { isAddress, type Owner } from '../store/port.ts';
import type { UpstreamCall } from '../upstream/call.ts';

/** One owner may have this part of the slots that others leave, but always one. */
const SHARE = 1 / 4;
/** Credentials that the upstream has not accepted may together have this part of all slots. */
const STRANGERS_SHARE = 1 / 2;

/**
 * How long a call may wait for a slot (controlled delay, RFC 8289, adapted to servers). Normally long enough for a burst
 * to be served; but once a queue has stood for `STANDS_AFTER_MS` it is overload, and calls wait only briefly.
 */
const BURST_MS = 1_000;
const STANDING_MS = 50;
const STANDS_AFTER_MS = 500;

interface Waiter {
  readonly share: Share;
  readonly start: () => void;
}

/** The slots of all accounts together, or of all addresses. */
interface Pool {
  readonly max: number;
  used: number;
  /** Owners with waiting calls, in the order of their turns. */
  readonly queue: Set<Share>;
}

/** The slots of one owner. An owner without slots is kept: adding and deleting it would cost 4 µs of each call. */
interface Share {
  readonly pool: Pool;
  held: number;
  readonly waiting: Set<Waiter>;
}

/** With more owners than this, those without a slot are forgotten. */
const MANY = 10_000;

interface Tools {
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/**
 * Bounds the calls under way, and each owner's share of them. The next slot goes to the waiting owner with the fewest. A call
 * that waits for too long is refused with `overloaded`.
 */
export class Slots {
  readonly #tools: Tools;
  readonly #accounts: Pool;
  readonly #strangers: Pool;
  readonly #shares = new Map<Owner, Share>();
  #free: number;
  #waiting = 0;
  #waitingSince = 0;
  #fullSince: number | undefined;

  constructor(tools: Tools, count: number) {
    this.#tools = tools;
    this.#accounts = { max: count, used: 0, queue: new Set() };
    this.#strangers = { max: Math.ceil(count * STRANGERS_SHARE), used: 0, queue: new Set() };
    this.#free = count;
    tools.metrics.watch('waiting_calls', () => this.#waiting);
    tools.metrics.watch('calls_limit', () => count);
  }

  /** Takes a slot. Returns false where the owner has to wait for one. */
  take(owner: Owner): boolean {
    const share = this.#shareOf(owner);
    const isFree = this.#mayHaveMore(share);
    if (isFree) this.#count(share, 1);
    return isFree;
  }

  release(owner: Owner): void {
    this.#count(this.#shareOf(owner), -1);
    for (let next = this.#next(); next; next = this.#next()) {
      this.#leave(next);
      this.#count(next.share, 1);
      next.start();
    }
    if (this.#free > 0) this.#fullSince = undefined;
  }

  #shareOf(owner: Owner): Share {
    const known = this.#shares.get(owner);
    if (known) return known;
    if (this.#shares.size >= MANY)
      for (const [one, { held, waiting }] of this.#shares) if (held + waiting.size === 0) this.#shares.delete(one);
    const pool = isAddress(owner) ? this.#strangers : this.#accounts;
    const share = { pool, held: 0, waiting: new Set<Waiter>() };
    this.#shares.set(owner, share);
    return share;
  }

  #mayHaveMore({ pool, held }: Share): boolean {
    const isInShare = held === 0 || held + 1 <= (this.#free + held) * SHARE;
    return this.#free > 0 && pool.used < pool.max && isInShare;
  }

  #count(share: Share, change: 1 | -1): void {
    share.held += change;
    share.pool.used += change;
    this.#free -= change;
    if (this.#free === 0) this.#fullSince ??= this.#tools.clock.now();
  }

  /** Resolves when the call has got a slot. @throws GatewayError `overloaded`; the reason of the call's abort */
  wait({ owner, abortable }: UpstreamCall, now: number): Promise<void> {
    const waitMs = this.#maxWaitMs(now);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const share = this.#shareOf(owner);
    const waiter = { share, start: resolve };
    share.waiting.add(waiter);
    share.pool.queue.add(share);
    this.#waiting++;
    const leave = (reason: unknown) => {
      if (this.#leave(waiter)) reject(reason);
    };
    const stopTimer = this.#tools.clock.after(waitMs, () => leave(this.#overloaded()));
    const stopListening = abortable.onAbort(leave);
    return promise.finally(() => {
      stopTimer();
      stopListening();
    });
  }

  /** Removes a waiter. Its owner goes to the end of the queue, so that owners take turns. */
  #leave(waiter: Waiter): boolean {
    const { share } = waiter;
    if (!share.waiting.delete(waiter)) return false;
    this.#waiting--;
    share.pool.queue.delete(share);
    if (share.waiting.size > 0) share.pool.queue.add(share);
    return true;
  }

  /** The first call of the waiting owner with the fewest slots. If that owner may have no more, no other may. */
  #next(): Waiter | undefined {
    if (this.#waiting === 0) return undefined;
    let next: Share | undefined;
    for (const { used, max, queue } of [this.#accounts, this.#strangers]) {
      if (used >= max) continue;
      for (const share of queue) {
        if (share.held < (next?.held ?? Infinity)) next = share;
        if (share.held === 0) break;
      }
    }
    if (!next || !this.#mayHaveMore(next)) return undefined;
    const [first] = next.waiting;
    return first;
  }

  /** How long a call that comes now may wait, in milliseconds. */
  #maxWaitMs(now: number): number {
    if (this.#waiting === 0) this.#waitingSince = now;
    // While slots are free, an owner waits only because its own share is used up: that is no queue.
    const standsSince = Math.max(this.#waitingSince, this.#fullSince ?? now);
    return now - standsSince > STANDS_AFTER_MS ? STANDING_MS : BURST_MS;
  }

  #overloaded(): GatewayError {
    this.#tools.metrics.refused('slots');
    return GatewayError.of('overloaded', { fault: 'not_sent', retryAfter: 1 });
  }
}
