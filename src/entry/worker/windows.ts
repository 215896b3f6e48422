import type { Use, Window } from '../../store/shared/engine.ts';
import type { Kept, Rows } from './rows.ts';

interface Open extends Kept<'window'> {
  readonly used: number;
  /** How much of it may be counted with the next row written. */
  readonly ahead: number;
}

type Span = Pick<Window, 'name' | 'lengthMs'> & Partial<Pick<Window, 'limit'>>;

/** Of a window without a limit, the budget. */
const USUAL_LIMIT = 64;

/**
 * Counts in memory, and writes at each eighth of the limit how far it may count until the next one. From there an
 * object goes on that was put away: it forgets less than an eighth, of a window that had not come so far, and never
 * that the limit was reached. It then writes more often at first (after 1, 2, 4 … more), since the limit would else be
 * used up by being put away often.
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
    const step = Math.max(1, Math.ceil((limit ?? USUAL_LIMIT) / 8));
    const open = this.#find(name, now) ?? { used: 0, upTo: step - 1, ahead: step, endsAt: now + lengthMs };
    const used = open.used + 1;
    const isWritten = used > open.upTo && used <= (limit ?? Infinity);
    this.#open.set(name, isWritten ? this.#write(name, { ...open, used }, step) : { ...open, used });
    return { used, leftMs: open.endsAt - now };
  }

  #write(name: string, { used, ahead, endsAt }: Open, step: number): Open {
    const kept = { upTo: used + ahead - 1, endsAt };
    this.#rows.put('window', name, { facts: kept, until: endsAt });
    return { ...kept, used, ahead: Math.min(step, 2 * ahead) };
  }

  #find(name: string, now: number): Open | undefined {
    const open = this.#open.get(name);
    if (open) return open.endsAt > now ? open : undefined;
    const kept = this.#rows.find('window', name, now);
    return kept && { ...kept, used: kept.upTo, ahead: 1 };
  }
}

const nameOf = ({ name, limit }: Span) => (limit === undefined ? `budget ${name}` : name);
