import { boundedMap } from '../bounded.ts';
import type { Window } from '../shared/engine.ts';
import type { AccountId, WindowUse } from '../store.ts';

/** A flood of made-up credentials opens windows too; then those used least recently begin anew. */
const MAX_WINDOWS = 50_000;
const MAX_COOLDOWNS = 10_000;

/** How far apart the ends of one window may be, as several replies tell it. */
const SAME_END_MS = 1_000;

interface Open {
  used: number;
  readonly endsAt: number;
}

/** Windows and cooldowns of one process. */
export class MemoryLimits {
  readonly #windows = boundedMap<string, Open>({ max: MAX_WINDOWS });
  readonly #cooldowns = boundedMap<AccountId, number>({ max: MAX_COOLDOWNS });

  take(account: AccountId, { name, lengthMs }: Pick<Window, 'name' | 'lengthMs'>, now: number): WindowUse {
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

  /** What all instances have counted. Of the same window the more is true: not all of ours has been told yet. */
  learn(account: AccountId, name: string, { used, endsAt }: WindowUse): void {
    const key = `${account} ${name}`;
    const known = this.#windows.get(key);
    const isSame = known !== undefined && Math.abs(known.endsAt - endsAt) < SAME_END_MS;
    this.#windows.set(key, { used: isSame ? Math.max(known.used, used) : used, endsAt });
  }

  coolDown(account: AccountId, until: number): void {
    this.#cooldowns.set(account, Math.max(until, this.coolsUntil(account)));
  }

  coolsUntil(account: AccountId): number {
    return this.#cooldowns.get(account) ?? 0;
  }

  usage() {
    return { windows: this.#windows.size + this.#cooldowns.size };
  }
}
