import type { Clock } from '../core/runtime.ts';
import { GatewayError } from '../core/errors.ts';
import { Tally } from '../core/tally.ts';
import type { Metrics } from '../core/metrics.ts';
import { isAddress, type Owner } from '../store/port.ts';
import type { UpstreamCall } from '../upstream/call.ts';

/** The part of the slots which others leave that one owner may have. One is always enough for who has none. */
const SHARE = 1 / 4;
/** The part of all slots that credentials may have together which the upstream has not accepted. */
const STRANGERS_SHARE = 1 / 2;

/**
 * How long a call may wait for a slot (controlled delay, RFC 8289, adapted to servers). Normally long enough for a burst
 * to be served; but once a queue has stood for `STANDS_AFTER_MS` it is overload, and calls wait only briefly.
 */
const BURST_MS = 1_000;
const STANDING_MS = 50;
const STANDS_AFTER_MS = 500;

interface Waiter {
  readonly owner: Owner;
  readonly start: () => void;
}

/** Owners that are accounts, or those that are addresses: how many slots they may have and have, and who waits. */
interface Pool {
  readonly max: number;
  used: number;
  readonly queues: Map<Owner, Set<Waiter>>;
}

interface Tools {
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/**
 * Bounds the calls under way, and each owner's share of them. Of those who wait the one with fewest calls under way is
 * next. Refuses with `overloaded` who waits for too long.
 */
export class Slots {
  readonly #tools: Tools;
  readonly #accounts: Pool;
  readonly #strangers: Pool;
  readonly #held = new Tally();
  #free: number;
  #waiting = 0;
  #waitingSince = 0;
  #fullSince: number | undefined;

  constructor(tools: Tools, count: number) {
    this.#tools = tools;
    this.#accounts = { max: count, used: 0, queues: new Map() };
    this.#strangers = { max: Math.ceil(count * STRANGERS_SHARE), used: 0, queues: new Map() };
    this.#free = count;
    tools.metrics.watch('waiting_calls', () => this.#waiting);
    tools.metrics.watch('calls_limit', () => count);
  }

  /** False where the owner has to wait for one. */
  take(owner: Owner): boolean {
    const isFree = this.#mayHaveMore(owner);
    if (isFree) this.#count(owner, 1);
    return isFree;
  }

  release(held: Owner): void {
    this.#count(held, -1);
    for (let next = this.#next(); next; next = this.#next()) {
      this.#leave(next);
      this.#count(next.owner, 1);
      next.start();
    }
    if (this.#free > 0) this.#fullSince = undefined;
  }

  #poolOf(owner: Owner): Pool {
    return isAddress(owner) ? this.#strangers : this.#accounts;
  }

  #mayHaveMore(owner: Owner): boolean {
    const { used, max } = this.#poolOf(owner);
    const held = this.#held.of(owner);
    const isInShare = held === 0 || held + 1 <= (this.#free + held) * SHARE;
    return this.#free > 0 && used < max && isInShare;
  }

  #count(owner: Owner, change: 1 | -1): void {
    this.#held.add(owner, change);
    this.#poolOf(owner).used += change;
    this.#free -= change;
    if (this.#free === 0) this.#fullSince ??= this.#tools.clock.now();
  }

  /** Resolves when the call has got one. @throws GatewayError `overloaded`; the reason of the call's abort */
  wait({ owner, abortable }: UpstreamCall, now: number): Promise<void> {
    const waitMs = this.#maxWaitMs(now);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { owner, start: resolve };
    const { queues } = this.#poolOf(owner);
    queues.set(owner, (queues.get(owner) ?? new Set()).add(waiter));
    this.#waiting++;
    const leave = (reason: unknown) => {
      if (this.#leave(waiter)) reject(reason);
    };
    const stopTimer = this.#tools.clock.after(waitMs, () => leave(this.#overloaded()));
    const stay = abortable.onAbort(leave);
    return promise.finally(() => {
      stopTimer();
      stay();
    });
  }

  /** Removes a waiter. Its owner goes to the end of the queue, so that owners take turns. */
  #leave(waiter: Waiter): boolean {
    const { queues } = this.#poolOf(waiter.owner);
    const queue = queues.get(waiter.owner);
    if (!queue?.delete(waiter)) return false;
    this.#waiting--;
    queues.delete(waiter.owner);
    if (queue.size > 0) queues.set(waiter.owner, queue);
    return true;
  }

  /** Who waits and has fewest slots, if he may have one. If he may not, neither may those who have more. */
  #next(): Waiter | undefined {
    let next: Waiter | undefined;
    let fewest = Infinity;
    for (const { used, max, queues } of [this.#accounts, this.#strangers]) {
      if (used >= max) continue;
      for (const [owner, [first]] of queues) {
        const held = this.#held.of(owner);
        if (held < fewest) [next, fewest] = [first, held];
        if (held === 0) break;
      }
    }
    return next && this.#mayHaveMore(next.owner) ? next : undefined;
  }

  /** How long a call that comes now may wait. */
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
