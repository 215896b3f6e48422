import { onAbort } from '../core/abort.ts';
import type { WaitUntil } from '../core/runtime.ts';

interface Flight<T> {
  readonly result: Promise<T>;
  waiting: number;
  /** Aborts the work, with the reason of the last waiter that left. */
  readonly abandon: (reason: unknown) => void;
}

/**
 * The value in the map of flights. It is emptied when the work is over, since V8 keeps the old tables of a map, and what
 * they refer to, for a while.
 */
interface Place<T> {
  flight: Flight<T> | undefined;
}

interface Joining<T> {
  /** Begins the work; called only if no equal work is under way. */
  readonly start: (signal: AbortSignal) => Promise<T>;
  /** Aborted when the waiter leaves, which then gets its reason. Absent: the waiter never leaves. */
  readonly waiter?: AbortSignal | undefined;
  readonly waitUntil: WaitUntil;
}

/**
 * Equal work that is under way at the same time is done once. It belongs to no request: a waiter that leaves does not
 * end it for the others; only the last one to leave aborts it.
 */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Place<T>>();

  get size(): number {
    return this.#flights.size;
  }

  has(key: string): boolean {
    return this.#flights.has(key);
  }

  join(key: string, joining: Joining<T>): Promise<T> {
    const { waiter } = joining;
    // A waiter that has left already begins nothing.
    if (waiter?.aborted) return Promise.reject(waiter.reason);
    const flight = this.#flights.get(key)?.flight ?? this.#start(key, joining);
    flight.waiting++;
    return waiter ? wait(flight, waiter, joining.waitUntil) : flight.result;
  }

  #start(key: string, { start, waitUntil }: Joining<T>): Flight<T> {
    const controller = new AbortController();
    // On Workers a request may not abort what another one has begun. Through a promise, this runs in the
    // request that began the work.
    const abandoned = Promise.withResolvers<unknown>();
    void abandoned.promise.then((reason) => controller.abort(reason));
    const place: Place<T> = { flight: undefined };
    const remove = () => {
      if (this.#flights.get(key) === place) this.#flights.delete(key);
      place.flight = undefined;
    };
    const result = start(controller.signal);
    const abandon = (reason: unknown) => {
      remove();
      abandoned.resolve(reason);
    };
    const flight = { result, waiting: 0, abandon };
    place.flight = flight;
    this.#flights.set(key, place);
    waitUntil(result.then(remove, remove)); // removed before any waiter continues
    return flight;
  }
}

function wait<T>(flight: Flight<T>, waiter: AbortSignal, waitUntil: WaitUntil): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const leave = (reason: unknown) => {
      reject(reason);
      if (--flight.waiting > 0) return;
      waitUntil(flight.result.catch(() => undefined)); // keeps this request alive until it has ended
      flight.abandon(reason);
    };
    const stay = onAbort(waiter, leave);
    flight.result.then(
      (result) => {
        stay();
        resolve(result);
      },
      (error: unknown) => {
        stay();
        reject(error);
      },
    );
  });
}
