import type { Background } from '../core/runtime.ts';

interface Flight<T> {
  readonly result: Promise<T>;
  waiting: number;
  /** Ends the work: nobody waits for it any more. */
  abandon(): void;
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

  has(key: string): boolean {
    return this.#flights.has(key);
  }

  join(key: string, boarding: Boarding<T>): { result: Promise<T>; joined: boolean } {
    const known = this.#flights.get(key);
    const flight = known ?? this.#takeOff(key, boarding);
    return { result: wait(flight, boarding.signal), joined: known !== undefined };
  }

  #takeOff(key: string, { start, background }: Boarding<T>): Flight<T> {
    const controller = new AbortController();
    const abandoned = Promise.withResolvers<void>();
    // Workers forbid to abort what another request began; a promise brings it home to the request that began it.
    void abandoned.promise.then(() => controller.abort(new Error('abandoned by all who waited')));
    const remove = () => {
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
    };
    const flight: Flight<T> = {
      result: start(controller.signal).finally(remove),
      waiting: 0,
      abandon() {
        remove();
        abandoned.resolve();
      },
    };
    this.#flights.set(key, flight);
    background(flight.result.catch(() => undefined));
    return flight;
  }
}

function wait<T>(flight: Flight<T>, signal: AbortSignal | undefined): Promise<T> {
  flight.waiting++;
  if (!signal) return flight.result;
  return new Promise<T>((resolve, reject) => {
    const leave = () => {
      reject(signal.reason);
      if (--flight.waiting === 0) flight.abandon();
    };
    const stay = () => signal.removeEventListener('abort', leave);
    if (signal.aborted) return leave();
    signal.addEventListener('abort', leave, { once: true });
    flight.result.finally(stay).then(resolve, reject);
  });
}
