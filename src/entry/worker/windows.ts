import type { Span, Use } from '../../store/store.ts';
import type { Rows } from './rows.ts';

interface Open {
  used: number;
  /** The count up to which no row is written again, and how many more after the next row. */
  upTo: number;
  ahead: number;
  readonly endsAt: number;
}

/** Without a limit: of the budget. */
type MaybeLimited = Span & { readonly limit?: number };

/** Of the budget. */
const ASSUMED_LIMIT = 64;

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

  look(span: Span, now: number): Use {
    const open = this.#find(span, now);
    return { used: open?.used ?? 0, leftMs: open ? open.endsAt - now : span.lengthMs };
  }

  count(span: MaybeLimited, now: number): Use {
    const { lengthMs, limit } = span;
    const name = nameOf(span);
    const step = Math.max(1, Math.ceil((limit ?? ASSUMED_LIMIT) / 8));
    const open = this.#find(span, now) ?? { used: 0, upTo: step - 1, ahead: step, endsAt: now + lengthMs };
    const { endsAt } = open;
    this.#open.set(name, open);
    open.used++;
    if (open.used > open.upTo && open.used <= (limit ?? Infinity)) {
      open.upTo = open.used + open.ahead - 1;
      open.ahead = Math.min(step, 2 * open.ahead);
      this.#rows.put('window', name, { facts: { upTo: open.upTo, endsAt }, until: endsAt });
    }
    return { used: open.used, leftMs: endsAt - now };
  }

  /** One that ends later than it could is from before the clock was set back. */
  #find(span: MaybeLimited, now: number): Open | undefined {
    const name = nameOf(span);
    const isOpen = ({ endsAt }: { readonly endsAt: number }) => endsAt > now && endsAt <= now + span.lengthMs;
    const open = this.#open.get(name);
    if (open) return isOpen(open) ? open : undefined;
    const facts = this.#rows.find('window', name, now);
    return facts && isOpen(facts) ? { ...facts, used: facts.upTo, ahead: 1 } : undefined;
  }
}

const nameOf = ({ name, limit }: MaybeLimited) => (limit === undefined ? `budget ${name}` : name);
