import { Abortable } from '../core/abortable.ts';
import type { WaitUntil } from '../core/runtime.ts';

interface Flight<T, By> {
  by: By | undefined;
  /** This and `abandon` are replaced once the work is over: V8 keeps the old tables of a map, and what they refer to, for a while. */
  result: Promise<T>;
  waiting: number;
  readonly force: boolean;
  /** Aborts the work, with the reason of the last waiter that left. */
  abandon: (reason: unknown) => void;
}

const OVER = new Promise<never>(() => undefined);
const nothing = () => undefined;

export interface Joining<T, By> {
  /** Who begins it. */
  readonly by: By;
  /** Told who has begun what it joins. */
  readonly onJoined?: (by: By) => void;
  /** Begins the work; called only if there is none to join. */
  readonly start: (abortable: Abortable) => Promise<T>;
  /** Joins only what was begun as new too. Any may join what it begins. */
  readonly force: boolean;
  /** Aborted when the waiter leaves, which then gets its reason. Absent: the waiter never leaves. */
  readonly waiter?: Abortable | undefined;
  readonly waitUntil: WaitUntil;
}

/**
 * Equal work that is under way at the same time is done once. It belongs to no request: a waiter that leaves does not
 * end it for the others; only the last one to leave aborts it.
 */
export class SingleFlight<T, By> {
  readonly #flights = new Map<string, Flight<T, By>>();

  get size(): number {
    return this.#flights.size;
  }

  join(key: string, joining: Joining<T, By>): Promise<T> {
    const { force, waiter, waitUntil } = joining;
    // A waiter that has left already begins nothing.
    if (waiter?.isAborted) return Promise.reject(waiter.reason);
    const equal = this.#flights.get(key);
    const joined = equal && (equal.force || !force) ? equal : undefined;
    if (joined?.by) joining.onJoined?.(joined.by);
    const flight = joined ?? this.#start(key, joining);
    flight.waiting++;
    const { result } = flight;
    if (!waiter) return result;
    return new Promise((resolve, reject) => {
      const stay = waiter.onAbort((reason) => {
        reject(reason);
        if (--flight.waiting > 0) return;
        waitUntil(result.catch(() => undefined)); // keeps this request alive until it has ended
        flight.abandon(reason);
      });
      void result.then(
        (value) => {
          stay();
          resolve(value);
        },
        (error: unknown) => {
          stay();
          reject(error);
        },
      );
    });
  }

  #start(key: string, { by, start, force, waitUntil }: Joining<T, By>): Flight<T, By> {
    const abortable = new Abortable();
    // On Workers a request may not abort what another one has begun. Through a promise, this runs in the
    // request that began the work.
    const abandoned = Promise.withResolvers<unknown>();
    void abandoned.promise.then((reason) => abortable.abort(reason));
    const remove = () => {
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
      flight.by = undefined;
      flight.result = OVER;
      flight.abandon = nothing;
    };
    const abandon = (reason: unknown) => {
      remove();
      abandoned.resolve(reason);
    };
    const flight: Flight<T, By> = { by, result: start(abortable), waiting: 0, force, abandon };
    this.#flights.set(key, flight);
    waitUntil(flight.result.then(remove, remove)); // removed before any waiter continues
    return flight;
  }
}
