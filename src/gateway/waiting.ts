import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import type { AccountId } from '../store/port.ts';

/** How many requests may wait for a change at once, of all accounts and of one. */
const MOST = 5_000;
const MOST_OF_ACCOUNT = 4;

interface Tools {
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Aborted when the process ends. */
  readonly ending?: AbortSignal | undefined;
}

/** A request that waits for a change, or reads the first time and may have to wait. */
export class Wait {
  hasPlace = false;
  #isWoken = false;
  #goOn: (() => void) | undefined;

  wake(): void {
    this.#isWoken = true;
    this.#goOn?.();
  }

  /** Resolves after `ms` milliseconds or when woken; at once if it was woken since the last pause. */
  async pause(clock: Clock, ms: number): Promise<void> {
    if (!this.#isWoken) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#goOn = resolve;
      const stop = clock.after(ms, resolve);
      await promise;
      stop(); // here, since on Workers a timer belongs to its request
    }
    this.#isWoken = false;
    this.#goOn = undefined;
  }
}

/** The requests of this instance that wait for a change of what they have read. */
export class Waiting {
  readonly #tools: Tools;
  readonly #waits = new Map<AccountId, Set<Wait>>();
  #size = 0;

  constructor(tools: Tools) {
    this.#tools = tools;
    tools.metrics.watch('waits', () => this.#size);
    tools.ending?.addEventListener('abort', () => {
      for (const account of this.#waits.keys()) this.wake(account);
    });
  }

  get isEnding(): boolean {
    return this.#tools.ending?.aborted === true;
  }

  /** Begins a wait, which writes of the account wake from now on. It takes no place until the first reading is over. */
  begin(account: AccountId): Wait {
    const wait = new Wait();
    this.#waits.set(account, (this.#waits.get(account) ?? new Set()).add(wait));
    return wait;
  }

  /** Takes a place until `end`. Returns false if there is none left. */
  takePlace(account: AccountId, wait: Wait): boolean {
    const ofAccount = Array.from(this.#waits.get(account) ?? []).filter(({ hasPlace }) => hasPlace).length;
    if (this.isEnding || this.#size >= MOST || ofAccount >= MOST_OF_ACCOUNT) return false;
    this.#size++;
    return (wait.hasPlace = true);
  }

  end(account: AccountId, wait: Wait): void {
    const waits = this.#waits.get(account);
    waits?.delete(wait);
    if (waits?.size === 0) this.#waits.delete(account);
    if (wait.hasPlace) this.#size--;
  }

  /** Wakes the account's waits, after a write. */
  wake(account: AccountId): void {
    for (const wait of this.#waits.get(account) ?? []) wait.wake();
  }
}
