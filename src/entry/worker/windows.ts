import type { Use, Window } from '../../store/shared/engine.ts';
import type { Facts, Rows } from './rows.ts';

interface Open extends Facts<'window'> {
  readonly used: number;
  /** How much may be counted after the next row is written. */
  readonly ahead: number;
}

type Span = Omit<Window, 'limit'> & Partial<Window>;

/** Of the budget, whose window has no limit. */
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

  look(span: Omit<Window, 'limit'>, now: number): Use {
    const open = this.#find(nameOf(span), now);
    return { used: open?.used ?? 0, leftMs: open ? open.endsAt - now : span.lengthMs };
  }

  count(span: Span, now: number): Use {
    const { lengthMs, limit } = span;
    const name = nameOf(span);
    const step = Math.max(1, Math.ceil((limit ?? ASSUMED_LIMIT) / 8));
    const open = this.#find(name, now) ?? { used: 0, upTo: step - 1, ahead: step, endsAt: now + lengthMs };
    const used = open.used + 1;
    const isWritten = used > open.upTo && used <= (limit ?? Infinity);
    this.#open.set(name, isWritten ? this.#write(name, { ...open, used }, step) : { ...open, used });
    return { used, leftMs: open.endsAt - now };
  }

  #write(name: string, { used, ahead, endsAt }: Open, step: number): Open {
    const facts = { upTo: used + ahead - 1, endsAt };
    this.#rows.put('window', name, { facts, until: endsAt });
    return { ...facts, used, ahead: Math.min(step, 2 * ahead) };
  }

  #find(name: string, now: number): Open | undefined {
    const open = this.#open.get(name);
    if (open) return open.endsAt > now ? open : undefined;
    const facts = this.#rows.find('window', name, now);
    return facts && { ...facts, used: facts.upTo, ahead: 1 };
  }
}

const nameOf = ({ name, limit }: Span) => (limit === undefined ? `budget ${name}` : name);
