import { Abortable } from '../core/abortable.ts';
import type { ClientRequest } from '../core/request.ts';
import type { WaitUntil } from '../core/runtime.ts';

const OVER = new Promise<never>(() => undefined);

/** Work that is under way for all who wait for it. It belongs to none of them. */
export class Flight<T> {
  /** Who has begun it. This and the result are let go once the work is over: V8 keeps the old tables of a map for a while. */
  begunBy: ClientRequest | undefined;
  result: Promise<T> = OVER;
  /** Begun as new, for a client that takes no copy. */
  readonly isForced: boolean;
  #waiting = 0;
  readonly #abandoned = Promise.withResolvers<unknown>();

  constructor(begunBy: ClientRequest, isForced: boolean, start: (abortable: Abortable) => Promise<T>) {
    const abortable = new Abortable();
    // On Workers a request may not abort what another one has begun. Through a promise, this runs in the request
    // that began the work.
    void this.#abandoned.promise.then((reason) => abortable.abort(reason));
    this.begunBy = begunBy;
    this.isForced = isForced;
    this.result = start(abortable);
  }

  /** Waits for the result. Whoever is aborted leaves with the reason, and the last one to leave aborts the work. */
  join(waiter: Abortable, waitUntil: WaitUntil, onAbandoned: () => void): Promise<T> {
    const { result } = this;
    this.#waiting++;
    return new Promise((resolve, reject) => {
      const stay = waiter.onAbort((reason) => {
        reject(reason);
        if (--this.#waiting > 0) return;
        waitUntil(result.catch(() => undefined)); // keeps this request alive until it has ended
        onAbandoned();
        this.#abandoned.resolve(reason);
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

  /** Nobody can wait for it any more. */
  end(): void {
    this.begunBy = undefined;
    this.result = OVER;
  }
}

interface Joining<T> {
  readonly request: ClientRequest;
  /** Begins the work; called only if there is none to join. Never rejects. */
  readonly start: (abortable: Abortable) => Promise<T>;
  /** Told who has begun what it joins. */
  readonly onJoined?: (begunBy: ClientRequest) => void;
  /** Aborted when the waiter leaves. Absent: nobody waits, and nobody can end it. */
  readonly waiter?: Abortable | undefined;
}

/** Equal work that is under way at the same time is done once. */
export class Flights<T> {
  readonly #flights = new Map<string, Flight<T>>();

  get size(): number {
    return this.#flights.size;
  }

  /** With `no-cache` a request joins only what was begun so too. Any may join what that begins. */
  join(key: string, { request, start, onJoined, waiter }: Joining<T>): Promise<T> {
    const { cacheMode, waitUntil } = request;
    if (waiter?.isAborted) return Promise.reject(waiter.reason); // who has left already begins nothing
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
    return waiter ? joined.join(waiter, waitUntil, () => this.#remove(key, joined)) : joined.result;
  }

  #remove(key: string, flight: Flight<T>): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
    flight.end();
  }
}
