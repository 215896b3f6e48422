import type { Clock, MaybePromise } from '../core/runtime.ts';
import type { Backend } from './backend.ts';
import { recent } from './bounded.ts';
import type { AccountId, Requested, Window, WindowUse } from './port.ts';

const MOST_WINDOWS = 100_000;
/** An instance takes this part of what is left of a limit at once. So a limit is never exceeded, and its last few are counted one by one. */
const GRANT = 1 / 8;

/** What this instance knows of a window. */
interface Open {
  used: number;
  /** Counted by the store already, and not used yet. */
  left: number;
  endsAt: number;
  /** The question under way, and how many wait for it. */
  asking: Promise<unknown> | undefined;
  waiting: number;
}

/** Counts requests in windows. Where others count too, an instance asks the store for grants. */
export class Limits {
  readonly #open = recent<string, Open>(MOST_WINDOWS);
  readonly #backend: Backend;
  readonly #clock: Clock;

  constructor(backend: Backend, clock: Clock) {
    this.#backend = backend;
    this.#clock = clock;
  }

  /** Counts a request. Rejects where the store does not answer. */
  take(request: Requested, window: Window): MaybePromise<WindowUse> {
    const { account } = request;
    if (this.#backend.isHere) return this.#backend.count(account, window, 1);
    const open = this.#windowOf(account, window);
    if (open.endsAt > this.#clock.now()) {
      if (open.left > 0) return this.#use(open);
      if (open.used >= window.limit) return { used: window.limit + 1, endsAt: open.endsAt };
    }
    return open.asking ? this.#wait(open, request, window) : this.#ask(open, request, window);
  }

  /** Counts a request by what this instance knows, where the store does not answer. */
  guess(account: AccountId, window: Window): WindowUse {
    const open = this.#windowOf(account, window);
    const now = this.#clock.now();
    if (open.endsAt <= now) Object.assign(open, { used: 0, left: 0, endsAt: now + window.lengthMs });
    return this.#use(open);
  }

  #windowOf(account: AccountId, { name }: Window): Open {
    const key = `${account} ${name}`;
    const known = this.#open.get(key);
    if (known) return known;
    const made = { used: 0, left: 0, endsAt: 0, asking: undefined, waiting: 0 };
    this.#open.set(key, made);
    return made;
  }

  #use(open: Open): WindowUse {
    if (open.left > 0) open.left--;
    return { used: ++open.used, endsAt: open.endsAt };
  }

  async #wait(open: Open, request: Requested, window: Window): Promise<WindowUse> {
    open.waiting++;
    try {
      await open.asking;
    } finally {
      open.waiting--;
    }
    return this.take(request, window);
  }

  /** The first question of a window counts one, so that credentials which are made up cost nothing more. */
  async #ask(open: Open, { account, waitUntil }: Requested, window: Window): Promise<WindowUse> {
    const { limit } = window;
    const isFirst = open.endsAt <= this.#clock.now();
    const granted = isFirst ? 1 : Math.max(1 + open.waiting, Math.floor((limit - open.used) * GRANT));
    const asking = Promise.resolve(this.#backend.count(account, window, granted));
    open.asking = asking;
    waitUntil(asking.catch(() => undefined)); // others may wait for it
    try {
      const { used, endsAt } = await asking;
      open.used = used - granted;
      open.left = Math.max(0, Math.min(granted, limit - open.used));
      open.endsAt = this.#clock.now() + endsAt - this.#backend.now();
    } finally {
      open.asking = undefined;
    }
    if (open.left === 0) open.used = Math.max(open.used, limit);
    return this.#use(open);
  }
}
