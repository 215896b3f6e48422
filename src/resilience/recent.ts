const SLOTS = 20;

interface Slot {
  /** Number of the span of time that it counts, since the epoch. */
  number: number;
  calls: number;
  marked: number;
}

/** Calls of the last `spanMs`, and how many of them were marked; forgotten in steps of a twentieth of it. */
export class Recent {
  readonly #slotMs: number;
  readonly #slots: Slot[] = Array.from({ length: SLOTS }, () => ({ number: -1, calls: 0, marked: 0 }));

  constructor(spanMs: number) {
    this.#slotMs = spanMs / SLOTS;
  }

  call(now: number): void {
    this.#slotAt(now).calls++;
  }

  mark(now: number): void {
    this.#slotAt(now).marked++;
  }

  totals(now: number): { calls: number; marked: number } {
    const oldest = this.#numberOf(now) - SLOTS;
    const slots = this.#slots.filter(({ number }) => number > oldest);
    return slots.reduce((sum, slot) => ({ calls: sum.calls + slot.calls, marked: sum.marked + slot.marked }), {
      calls: 0,
      marked: 0,
    });
  }

  #numberOf(now: number): number {
    return Math.floor(now / this.#slotMs);
  }

  #slotAt(now: number): Slot {
    const number = this.#numberOf(now);
    const at = number % SLOTS;
    const known = this.#slots[at];
    if (known?.number === number) return known;
    const slot = { number, calls: 0, marked: 0 };
    this.#slots[at] = slot;
    return slot;
  }
}
