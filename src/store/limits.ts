import type { Clock, MaybePromise, WaitUntil } from '../core/runtime.ts';
import type { Account, OpenWindow } from './account.ts';
import type { Backend } from './backend.ts';
import type { Window, WindowUse } from './port.ts';

/** An instance takes this part of what is left of a limit at once. So a limit is never exceeded, and its last few are counted one by one. */
const GRANT = 1 / 8;

/** Counts requests in windows. Where others count too, an instance asks the store for grants. */
export class Limits {
  readonly #backend: Backend;
  readonly #clock: Clock;

  constructor(backend: Backend, clock: Clock) {
    this.#backend = backend;
    this.#clock = clock;
  }

  /** Counts a request. Rejects where the store does not answer. */
  take(account: Account, window: Window, waitUntil: WaitUntil): MaybePromise<WindowUse> {
    if (this.#backend.isHere) return this.#backend.count(account, window, 1);
    const open = account.windowOf(window.name);
    if (open.endsAt > this.#clock.now()) {
      if (open.left > 0) return this.#use(open);
      if (open.used >= window.limit) return { used: window.limit + 1, endsAt: open.endsAt };
    }
    return open.asking ? this.#wait(account, window, waitUntil) : this.#ask(account, window, waitUntil);
  }

  /** Counts a request by what this instance knows, where the store does not answer. */
  guess(account: Account, { name, lengthMs }: Window): WindowUse {
    const open = account.windowOf(name);
    const now = this.#clock.now();
    if (open.endsAt <= now) Object.assign(open, { used: 0, left: 0, endsAt: now + lengthMs });
    return this.#use(open);
  }

  #use(open: OpenWindow): WindowUse {
    if (open.left > 0) open.left--;
    return { used: ++open.used, endsAt: open.endsAt };
  }

  async #wait(account: Account, window: Window, waitUntil: WaitUntil): Promise<WindowUse> {
    const open = account.windowOf(window.name);
    open.waiting++;
    try {
      await open.asking;
    } finally {
      open.waiting--;
    }
    return this.take(account, window, waitUntil);
  }

  /** The first question of a window counts one, so that credentials which are made up cost nothing more. */
  async #ask(account: Account, window: Window, waitUntil: WaitUntil): Promise<WindowUse> {
    const open = account.windowOf(window.name);
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
