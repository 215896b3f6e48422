import { Cancellation } from '../core/cancellation.ts';
import type { Background } from '../core/runtime.ts';

interface Flight<T> {
  readonly result: Promise<T>;
  waiting: number;
  /** Ends the work, for the reason that the last who waited had to leave. */
  readonly abandon: (reason: unknown) => void;
}

/** What a map holds of work under way: nothing once it is over, since V8 keeps the old tables of a map for a while. */
interface Place<T> {
  flight: Flight<T> | undefined;
}

interface Joining<T> {
  /** Begins the work; called only where no equal one is under way. */
  readonly start: (cancellation: Cancellation) => Promise<T>;
  /** Cancelled when the one who waits leaves, who then gets its reason. Left out: never. */
  readonly waiter?: Cancellation | undefined;
  readonly background: Background;
}

/**
 * Equal work under way is done once. It belongs to nobody's request: a waiter who leaves does not end it for the
 * others, the last one to leave does.
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
    // Who has left already begins nothing.
    if (waiter?.isCancelled) return Promise.reject(waiter.reason);
    const flight = this.#flights.get(key)?.flight ?? this.#start(key, joining);
    flight.waiting++;
    return waiter ? wait(flight, waiter, joining.background) : flight.result;
  }

  #start(key: string, { start, background }: Joining<T>): Flight<T> {
    const cancellation = new Cancellation();
    // Workers forbid a request to end what another one has begun. A promise brings it home to that one.
    const abandoned = Promise.withResolvers<unknown>();
    void abandoned.promise.then((reason) => cancellation.cancel(reason));
    const place: Place<T> = { flight: undefined };
    const remove = () => {
      if (this.#flights.get(key) === place) this.#flights.delete(key);
      place.flight = undefined;
    };
    const result = start(cancellation);
    const abandon = (reason: unknown) => {
      remove();
      abandoned.resolve(reason);
    };
    const flight = { result, waiting: 0, abandon };
    place.flight = flight;
    this.#flights.set(key, place);
    background(result.then(remove, remove)); // before anybody who waits goes on
    return flight;
  }
}

function wait<T>(flight: Flight<T>, waiter: Cancellation, background: Background): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const leave = (reason: unknown) => {
      reject(reason);
      if (--flight.waiting > 0) return;
      background(flight.result.catch(() => undefined)); // what it ends with still comes here
      flight.abandon(reason);
    };
    waiter.on(leave);
    flight.result.then(
      (result) => {
        waiter.off(leave);
        resolve(result);
      },
      (error: unknown) => {
        waiter.off(leave);
        reject(error);
      },
    );
  });
}
