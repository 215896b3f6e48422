import { Abortable } from '../core/abortable.ts';
import type { ClientRequest } from '../core/request.ts';
import type { WaitUntil } from '../core/runtime.ts';

const NEVER = new Promise<never>(() => undefined);

/** A call that is under way for all requests that wait for it. It belongs to none of them. */
export class Flight<T> {
  /** The request that began it. `end` drops this and the result, since V8 keeps the old tables of a map for a while. */
  begunBy: ClientRequest | undefined;
  result: Promise<T> = NEVER;
  /** Begun for a request with `no-cache`. */
  readonly isForced: boolean;
  #waiting = 0;
  readonly #abandoned = Promise.withResolvers<unknown>();

  constructor(begunBy: ClientRequest, isForced: boolean, start: (abortable: Abortable) => Promise<T>) {
    const abortable = new Abortable();
    // On Workers a request may not abort what another one has begun. This reaction runs in the request that began the work.
    void this.#abandoned.promise.then((reason) => abortable.abort(reason));
    this.begunBy = begunBy;
    this.isForced = isForced;
    this.result = start(abortable);
  }

  /** Waits for the result. A waiter that is aborted rejects with the reason; the last one to leave aborts the work. */
  join(waiter: Abortable, waitUntil: WaitUntil, onAbandoned: () => void): Promise<T> {
    const { result } = this;
    this.#waiting++;
    return new Promise((resolve, reject) => {
      const stopListening = waiter.onAbort((reason) => {
        reject(reason);
        if (--this.#waiting > 0) return;
        waitUntil(result.catch(() => undefined)); // keeps this request alive until the work has ended
        onAbandoned();
        this.#abandoned.resolve(reason);
      });
      void result.then(
        (value) => {
          stopListening();
          resolve(value);
        },
        (error: unknown) => {
          stopListening();
          reject(error);
        },
      );
    });
  }

  /** Waits for the result for good: whoever else leaves does not abort the work. */
  keep(): Promise<T> {
    this.#waiting++;
    return this.result;
  }

  /** Called when nobody can join it any more. */
  end(): void {
    this.begunBy = undefined;
    this.result = NEVER;
  }
}

interface Joining<T> {
  readonly request: ClientRequest;
  /** Begins the work; called only if there is none to join. Never rejects. */
  readonly start: (abortable: Abortable) => Promise<T>;
  /** Called with the request that began the flight, if one is joined. */
  readonly onJoined?: (begunBy: ClientRequest) => void;
  /** Aborted when the waiter leaves. Absent: the work goes on whoever leaves. */
  readonly waiter?: Abortable | undefined;
}

/** Makes equal calls that are under way at the same time once (single flight). */
export class Flights<T> {
  readonly #flights = new Map<string, Flight<T>>();

  get size(): number {
    return this.#flights.size;
  }

  /** Joins the flight with this key, or begins it. A request with `no-cache` joins only a flight begun with `no-cache`. */
  join(key: string, { request, start, onJoined, waiter }: Joining<T>): Promise<T> {
    const { cacheMode, waitUntil } = request;
    if (waiter?.isAborted) return Promise.reject(waiter.reason); // a client that has left begins nothing
    const isForced = cacheMode === 'no-cache';
    let flight = this.#flights.get(key);
    if (flight && (flight.isForced || !isForced)) {
      if (flight.begunBy) onJoined?.(flight.begunBy);
    } else {
      const begun = (flight = new Flight(request, isForced, start));
      this.#flights.set(key, begun);
      const remove = () => this.#remove(key, begun);
      waitUntil(begun.result.then(remove, remove)); // removed before any waiter continues
    }
    const joined = flight;
    return waiter ? joined.join(waiter, waitUntil, () => this.#remove(key, joined)) : joined.keep();
  }

  #remove(key: string, flight: Flight<T>): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
    flight.end();
  }
}
