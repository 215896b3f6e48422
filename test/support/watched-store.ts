import { andThen, type Soon } from '../../src/core/runtime.ts';
import type { Snapshot, Store } from '../../src/store/port.ts';

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
  /** When one has passed, its reader has its copy, waits or has joined. */
  readonly lookups: Turnstile;
  /** Ends of fetches, with a copy or with nothing. */
  readonly saves: Turnstile;
  /** Of those, the ones that say that a copy, or everything of an account, is no longer true. */
  readonly drops: Turnstile;
  readonly refusals: Turnstile;
  /** Of writes. */
  readonly begins: Turnstile;
  readonly ends: Turnstile;
}

export const watchedStore = (store: Store): WatchedStore => {
  const turnstiles = {
    lookups: new Turnstile(),
    saves: new Turnstile(),
    drops: new Turnstile(),
    refusals: new Turnstile(),
    begins: new Turnstile(),
    ends: new Turnstile(),
  };
  /** Once it has come out. */
  const passing = async <T>(turnstile: Turnstile, result: Soon<T>): Promise<T> => {
    const out = await result;
    turnstile.pass();
    return out;
  };
  const watched = (snapshot: Snapshot): Snapshot => ({
    use: snapshot.use,
    session: snapshot.session,
    copy: (key) => snapshot.copy(key),
    lookup: (key) => passing(turnstiles.lookups, snapshot.lookup(key)),
    holds: (key, found) => snapshot.holds(key, found),
    async save(key, found, fetched) {
      const saved = await passing(turnstiles.saves, snapshot.save(key, found, fetched));
      if (fetched.drop === 'key') turnstiles.drops.pass();
      if (fetched.drop === 'everything') turnstiles.refusals.pass();
      return saved;
    },
  });
  return {
    ...turnstiles,
    snapshot: (request) => andThen(store.snapshot(request), watched),
    copyOf: (key) => store.copyOf(key),
    beginWrite: (write) => passing(turnstiles.begins, store.beginWrite(write)),
    outcomeOf: (question) => store.outcomeOf(question),
    endWrite: (write, end) => passing(turnstiles.ends, store.endWrite(write, end)),
    endUnannounced: (write, end) => store.endUnannounced(write, end),
    coolDown: (...args) => store.coolDown(...args),
    coolsUntil: (account) => store.coolsUntil(account),
    accept: (account) => store.accept(account),
    epochOf: (account) => store.epochOf(account),
    revoke: (...args) => store.revoke(...args),
  };
};
