import type { Background } from '../core/runtime.ts';

interface Flight<T> {
  readonly result: Promise<T>;
  waiting: number;
  /** Ends the work, for the reason that the last who waited had to leave. */
  abandon(reason: unknown): void;
}

interface Boarding<T> {
  /** Begins the work; called only where no equal one is under way. */
  readonly start: (signal: AbortSignal) => Promise<T>;
  /** Aborted when this waiter leaves; it rejects with the signal's reason. Left out: it never leaves. */
  readonly signal?: AbortSignal;
  readonly background: Background;
}

/**
 * Equal work under way is done once. It belongs to nobody's request: a waiter who leaves does not end it for the
 * others, the last one to leave does.
 */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Flight<T>>();

  get size(): number {
    return this.#flights.size;
  }

  has(key: string): boolean {
    return this.#flights.has(key);
  }

  join(key: string, boarding: Boarding<T>): { result: Promise<T>; joined: boolean } {
    const { signal } = boarding;
    // Who has left already begins nothing.
    if (signal?.aborted) return { result: Promise.reject(signal.reason), joined: false };
    const known = this.#flights.get(key);
    const flight = known ?? this.#takeOff(key, boarding);
    return { result: wait(flight, boarding), joined: known !== undefined };
  }

  #takeOff(key: string, { start, background }: Boarding<T>): Flight<T> {
    const controller = new AbortController();
    const abandoned = Promise.withResolvers<unknown>();
    // Workers forbid to abort what another request began; a promise brings it home to the request that began it.
    void abandoned.promise.then((reason) => controller.abort(reason));
    const remove = () => {
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
    };
    const flight: Flight<T> = {
      result: start(controller.signal).finally(remove),
      waiting: 0,
      abandon(reason) {
        remove();
        abandoned.resolve(reason);
      },
    };
    this.#flights.set(key, flight);
    background(flight.result.catch(() => undefined));
    return flight;
  }
}

function wait<T>(flight: Flight<T>, { signal, background }: Boarding<T>): Promise<T> {
  flight.waiting++;
  if (!signal) return flight.result;
  return new Promise<T>((resolve, reject) => {
    const leave = () => {
      reject(signal.reason);
      if (--flight.waiting > 0) return;
      background(flight.result.catch(() => undefined)); // what it ends with still comes here
      flight.abandon(signal.reason);
    };
    const stay = () => signal.removeEventListener('abort', leave);
    signal.addEventListener('abort', leave, { once: true });
    flight.result.finally(stay).then(resolve, reject);
  });
}
