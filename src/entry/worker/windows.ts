import type { Use, Window } from '../../store/store.ts';
import type { Rows } from './rows.ts';

interface Open {
  used: number;
  /** The count up to which no row is written again, and how many more after the next row. */
  upTo: number;
  ahead: number;
  readonly endsAt: number;
}

/**
 * Counts in memory, and writes a row at each eighth of the limit: the count up to the next row. An object that was
 * evicted goes on from that count. It may forget a window below its first eighth, never a limit that was reached. It
 * then writes more often at first (after 1, 2, 4 … more), or a few evictions would use up the limit.
 */
export class Windows {
  readonly #rows: Rows;
  readonly #open = new Map<string, Open>();

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  count(window: Window, now: number): Use {
    const { name, lengthMs, limit } = window;
    const step = Math.max(1, Math.ceil(limit / 8));
    const open = this.#find(window, now) ?? { used: 0, upTo: step - 1, ahead: step, endsAt: now + lengthMs };
    const { endsAt } = open;
    this.#open.set(name, open);
    open.used++;
    if (open.used > open.upTo && open.used <= limit) {
      open.upTo = open.used + open.ahead - 1;
      open.ahead = Math.min(step, 2 * open.ahead);
      this.#rows.put('window', name, { facts: { upTo: open.upTo, endsAt }, until: endsAt });
    }
    return { used: open.used, leftMs: endsAt - now };
  }

  /** One that ends later than it could is from before the clock was set back. */
  #find({ name, lengthMs }: Window, now: number): Open | undefined {
    const isOpen = ({ endsAt }: { readonly endsAt: number }) => endsAt > now && endsAt <= now + lengthMs;
    const open = this.#open.get(name);
    if (open) return isOpen(open) ? open : undefined;
    const facts = this.#rows.find('window', name, now);
    return facts && isOpen(facts) ? { ...facts, used: facts.upTo, ahead: 1 } : undefined;
  }
}
