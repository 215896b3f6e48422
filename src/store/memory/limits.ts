import { boundedMap } from '../bounded.ts';
import type { AccountId, Limits, Window, WindowUse } from '../store.ts';

/** A flood of made-up credentials opens windows too; then those used least recently begin anew. */
const MAX_WINDOWS = 50_000;
const MAX_HOLDS = 10_000;

interface Open {
  used: number;
  readonly endsAt: number;
}

/** Windows and holds of one process. */
export class MemoryLimits implements Limits {
  readonly #windows = boundedMap<string, Open>({ max: MAX_WINDOWS });
  readonly #holds = boundedMap<AccountId, number>({ max: MAX_HOLDS });

  take({ account, name, lengthMs, now }: Window): WindowUse {
    const key = `${account} ${name}`;
    const known = this.#windows.get(key);
    if (known && known.endsAt > now) {
      known.used++;
      return { ...known };
    }
    const opened = { used: 1, endsAt: now + lengthMs };
    this.#windows.set(key, opened);
    return { ...opened };
  }

  hold(account: AccountId, until: number): void {
    this.#holds.set(account, Math.max(until, this.#holds.get(account) ?? 0));
  }

  heldUntil(account: AccountId): number {
    return this.#holds.get(account) ?? 0;
  }

  usage() {
    return { windows: this.#windows.size + this.#holds.size };
  }
}
