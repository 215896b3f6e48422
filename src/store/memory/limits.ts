import { BoundedMap } from '../bounded.ts';
import type { Window } from '../shared/engine.ts';
import type { AccountId, Holder, WindowUse } from '../store.ts';

const MAX_WINDOWS = 60_000;

/** How far apart the ends of one window may be, as several replies tell it. */
const SAME_END_MS = 1_000;

interface Open {
  used: number;
  readonly endsAt: number;
}

/** Windows and cooldowns of one process. */
export class MemoryLimits {
  readonly #windows = new BoundedMap<string, Open>({ max: MAX_WINDOWS });

  take({ principal, owner }: Holder, { name, lengthMs }: Pick<Window, 'name' | 'lengthMs'>, now: number): WindowUse {
    const key = `${principal} ${name}`;
    const known = this.#windows.get(key, owner);
    if (known && known.endsAt > now) return { used: ++known.used, endsAt: known.endsAt };
    const opened = { used: 1, endsAt: now + lengthMs };
    this.#windows.set(key, opened, owner);
    return { ...opened };
  }

  /** What all instances have counted. Of the same window the more is true: not all of ours has been told yet. */
  learn({ principal, owner }: Holder, name: string, { used, endsAt }: WindowUse): void {
    const key = `${principal} ${name}`;
    const known = this.#windows.get(key);
    const isSame = known !== undefined && Math.abs(known.endsAt - endsAt) < SAME_END_MS;
    this.#windows.set(key, { used: isSame ? Math.max(known.used, used) : used, endsAt }, owner);
  }

  coolDown({ principal, owner }: Holder, until: number): void {
    this.#windows.set(cooldownOf(principal), { used: 0, endsAt: Math.max(until, this.coolsUntil(principal)) }, owner);
  }

  coolsUntil(account: AccountId): number {
    return this.#windows.get(cooldownOf(account))?.endsAt ?? 0;
  }

  usage() {
    return { windows: this.#windows.size };
  }
}

const cooldownOf = (account: AccountId) => `${account} cooldown`;
