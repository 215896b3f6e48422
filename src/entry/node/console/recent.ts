const STEPS = 20;
/** Names that are told apart; any more are one together. */
const MAX_NAMES = 5_000;
const OTHERS = '';

interface Count {
  calls: number;
  marked: number;
}

type Counts = Map<string, Count>;

/** Requests of the last `spanMs`, and how many of them were marked, by account; forgotten in steps of a twentieth of it. */
export class Recent {
  readonly #stepMs: number;
  /** Those of each step of time. Steps are numbered since the epoch, the oldest first. */
  readonly #steps = new Map<number, Counts>();
  /** The sums of all steps. */
  readonly #sums: Counts = new Map();
  /** The number of the oldest step that is not over. */
  #first = 0;

  constructor(spanMs: number) {
    this.#stepMs = spanMs / STEPS;
  }

  count(what: keyof Count, now: number, name: string): void {
    this.#forget(now);
    const isToldApart = this.#sums.has(name) || this.#sums.size < MAX_NAMES - 1;
    const key = isToldApart ? name : OTHERS;
    const number = Math.floor(now / this.#stepMs);
    const step = this.#steps.get(number) ?? this.#begin(number);
    countIn(this.#sums, key)[what]++;
    countIn(step, key)[what]++;
  }

  /** The names with most calls, the first with most of all. Takes some ms with all of them. */
  most(now: number, count: number): readonly (readonly [name: string, Readonly<Count>])[] {
    this.#forget(now);
    const named = Array.from(this.#sums).filter(([name]) => name !== OTHERS);
    return named.toSorted(([, a], [, b]) => b.calls - a.calls).slice(0, count);
  }

  #begin(number: number): Counts {
    const step: Counts = new Map();
    this.#steps.set(number, step);
    return step;
  }

  #forget(now: number): void {
    const first = Math.floor(now / this.#stepMs) - STEPS + 1;
    if (first === this.#first) return;
    this.#first = first;
    for (const [number, step] of this.#steps) {
      if (number >= first) return;
      this.#steps.delete(number);
      for (const [name, { calls, marked }] of step) {
        const sum = countIn(this.#sums, name);
        sum.calls -= calls;
        sum.marked -= marked;
        if (sum.calls === 0 && sum.marked === 0) this.#sums.delete(name);
      }
    }
  }
}

function countIn(counts: Counts, name: string): Count {
  const known = counts.get(name);
  if (known) return known;
  const count = { calls: 0, marked: 0 };
  counts.set(name, count);
  return count;
}
