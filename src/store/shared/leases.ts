import { type Clock, onAbort, type WaitUntil } from '../../core/runtime.ts';
import type { CacheKey } from '../store.ts';
import { LEASE_MS } from './engine.ts';

interface LeasesOptions {
  readonly clock: Clock;
  readonly waitUntil: WaitUntil;
  /** How long another instance's fetch is waited for at most. */
  readonly waitMs: number;
  /** Asks the engine for all that is waited for, in one question. */
  readonly ask: (keys: readonly CacheKey[]) => Promise<unknown>;
  /** Nonce of the lease on a key, by the engine's last reply. */
  readonly leaseOn: (key: CacheKey) => string | undefined;
  /** Asks the engine to keep a lease of ours for longer. */
  readonly renew: (key: CacheKey) => Promise<unknown>;
}

interface Wait {
  readonly key: CacheKey;
  readonly lease: string;
  readonly end: () => void;
}

const FIRST_PAUSE_MS = 25;
const MAX_PAUSE_MS = 400;
const RENEW_MS = LEASE_MS / 3;
const nothing = () => undefined;

/** The leases of one request: its own while it fetches, and those of others that it waits for. */
export class RequestLeases {
  readonly #options: LeasesOptions;
  readonly #waits = new Map<string, Wait>();
  /** Stops renewing, for each that is or was used. */
  readonly #used = new Map<string, () => void>();
  #isPolling = false;

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  /** The lease on a key that is waited for. */
  waitedFor({ key }: CacheKey): string | undefined {
    return this.#waits.get(key)?.lease;
  }

  /** Resolves when the lease is over, or after `waitMs`. Rejects with the signal's reason. */
  async wait(key: CacheKey, lease: string, signal: AbortSignal): Promise<void> {
    const over = Promise.withResolvers<void>();
    this.#waits.set(key.key, { key, lease, end: over.resolve });
    const stay = onAbort(signal, over.reject);
    if (!this.#isPolling) this.#options.waitUntil(this.#poll());
    try {
      await over.promise;
    } finally {
      stay();
      this.#waits.delete(key.key);
    }
  }

  /** Whether a fetch uses it, or is about to. */
  isUsed({ key }: CacheKey): boolean {
    return this.#used.has(key);
  }

  reserve({ key }: CacheKey): void {
    if (!this.#used.has(key)) this.#used.set(key, nothing);
  }

  /** Renews a lease of ours until `end`. */
  use(key: CacheKey): void {
    const { clock, waitUntil, renew } = this.#options;
    const again = () => {
      this.use(key);
      waitUntil(renew(key).catch(nothing));
    };
    this.#used.set(key.key, clock.after(RENEW_MS, again));
  }

  end({ key }: CacheKey): void {
    this.#used.get(key)?.();
    this.#used.set(key, nothing);
  }

  /** Asks for all that is waited for, with growing pauses. */
  async #poll(): Promise<void> {
    const { clock, waitMs, ask, leaseOn } = this.#options;
    const until = clock.now() + waitMs;
    this.#isPolling = true;
    for (let ms = FIRST_PAUSE_MS; this.#waits.size > 0; ms = Math.min(2 * ms, MAX_PAUSE_MS)) {
      await new Promise<void>((resolve) => void clock.after(ms, resolve));
      const waits = [...this.#waits.values()];
      await ask(waits.map(({ key }) => key));
      for (const { key, lease, end } of waits) if (leaseOn(key) !== lease || clock.now() >= until) end();
    }
    this.#isPolling = false;
  }
}
