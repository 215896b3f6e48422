/** A point at which a scripted server stops until the test lets it go on. Instead of sleeping. */
export interface Barrier {
  /** Resolves at the first arrival. */
  readonly reached: Promise<void>;
  /** Resolves once that many have arrived. */
  count(arrivals: number): Promise<void>;
  /** Lets all who wait go on, and whoever arrives later pass. */
  release(): void;
  /** For the server: resolves on release. */
  arrive(): Promise<void>;
}

interface Waiter {
  readonly arrivals: number;
  readonly resolve: () => void;
}

export const barrier = (): Barrier => {
  const released = Promise.withResolvers<void>();
  let waiters: readonly Waiter[] = [];
  let arrived = 0;

  const count = (arrivals: number) => {
    if (arrived >= arrivals) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    waiters = [...waiters, { arrivals, resolve }];
    return promise;
  };

  const arrive = () => {
    arrived += 1;
    for (const waiter of waiters) if (arrived >= waiter.arrivals) waiter.resolve();
    waiters = waiters.filter((waiter) => arrived < waiter.arrivals);
    return released.promise;
  };

  return { reached: count(1), count, release: () => released.resolve(), arrive };
};
