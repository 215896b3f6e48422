import { andThen } from '../../src/core/runtime.ts';
import type { Answers, Store } from '../../src/store/store.ts';

/** Counts events and lets a test wait for the next ones. */
class Turnstile {
  total = 0;
  #waiters: { readonly until: number; readonly resolve: () => void }[] = [];

  pass(): void {
    this.total++;
    for (const { until, resolve } of this.#waiters) if (this.total >= until) resolve();
    this.#waiters = this.#waiters.filter(({ until }) => this.total < until);
  }

  /** Resolves once that many more have passed. */
  next(more = 1): Promise<void> {
    const until = this.total + more;
    return new Promise((resolve) => void this.#waiters.push({ until, resolve }));
  }
}

export interface WatchedStore extends Store {
  /** A memory store answers at once: when one has passed, its reader waits or has joined. */
  readonly lookups: Turnstile;
  /** Attempts, successful or not. */
  readonly saves: Turnstile;
  readonly drops: Turnstile;
  readonly touches: Turnstile;
  /** Of writes. */
  readonly ends: Turnstile;
}

export const watchedStore = (store: Store): WatchedStore => {
  const { answers } = store;
  const turnstiles = {
    lookups: new Turnstile(),
    saves: new Turnstile(),
    drops: new Turnstile(),
    touches: new Turnstile(),
    ends: new Turnstile(),
  };
  const passing = <T>(turnstile: Turnstile, result: T): T => {
    turnstile.pass();
    return result;
  };
  const watched: Answers = {
    lookup: (place, now) => passing(turnstiles.lookups, answers.lookup(place, now)),
    save: (place, entry, versions) => passing(turnstiles.saves, answers.save(place, entry, versions)),
    drop: (place) => passing(turnstiles.drops, answers.drop(place)),
    touch: (account, tags) => passing(turnstiles.touches, answers.touch(account, tags)),
  };
  return {
    ...turnstiles,
    records: store.records,
    limits: store.limits,
    answers: watched,
    beginWrite: (write) => store.beginWrite(write),
    endWrite: (write, end) => passing(turnstiles.ends, store.endWrite(write, end)),
    visit: (arrival) =>
      andThen(store.visit(arrival), ({ use, known }) => ({
        use,
        known: { lookup: (place, now) => passing(turnstiles.lookups, known.lookup(place, now)) },
      })),
  };
};
