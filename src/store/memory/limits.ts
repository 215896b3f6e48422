import { BoundedMap } from '../bounded.ts';
import type { Window } from '../shared/engine.ts';
import type { AccountId, Holder, WindowUse } from '../store.ts';

const MAX_WINDOWS = 50_000;
const MAX_COOLDOWNS = 10_000;

/** Ends that differ by less than this, in several replies, are ends of the same window. */
const SAME_END_MS = 1_000;

interface Open {
  used: number;
  readonly endsAt: number;
}

/** Windows and cooldowns of one process. */
export class MemoryLimits {
  readonly #windows = new BoundedMap<string, Open>({ max: MAX_WINDOWS });
  readonly #cooldowns = new BoundedMap<AccountId, number>({ max: MAX_COOLDOWNS });

  take({ principal, owner }: Holder, { name, lengthMs }: Pick<Window, 'name' | 'lengthMs'>, now: number): WindowUse {
    const key = `${principal} ${name}`;
    const known = this.#windows.get(key, owner);
    if (known && known.endsAt > now) return { used: ++known.used, endsAt: known.endsAt };
    const opened = { used: 1, endsAt: now + lengthMs };
    this.#windows.set(key, opened, owner);
    return { ...opened };
  }

  /** Takes over what all instances have counted. In the same window the higher count is right: ours may be pending. */
  learn({ principal, owner }: Holder, name: string, { used, endsAt }: WindowUse): void {
    const key = `${principal} ${name}`;
    const known = this.#windows.get(key);
    const isSame = known !== undefined && Math.abs(known.endsAt - endsAt) < SAME_END_MS;
    this.#windows.set(key, { used: isSame ? Math.max(known.used, used) : used, endsAt }, owner);
  }

  coolDown({ principal, owner }: Holder, until: number): void {
    this.#cooldowns.set(principal, Math.max(until, this.coolsUntil(principal)), owner);
  }

  /** Nearly always no account cools down: then the lookup is saved. */
  coolsUntil(account: AccountId): number {
    return this.#cooldowns.size === 0 ? 0 : (this.#cooldowns.get(account) ?? 0);
  }

  usage() {
    return { windows: this.#windows.size + this.#cooldowns.size };
  }
}
