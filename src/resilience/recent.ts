const SLOTS = 20;
/** Callers that are counted separately in one slot; any more count in the totals only. */
const MAX_CALLERS = 5_000;

interface Count {
  calls: number;
  marked: number;
}

interface Slot extends Count {
  /** Which span of time it counts, numbered since the epoch. */
  readonly number: number;
  readonly by: Map<string, Count>;
}

const NONE: Readonly<Count> = { calls: 0, marked: 0 };

const slotOf = (number: number): Slot => ({ ...NONE, number, by: new Map() });

/** Calls of the last `spanMs`, and how many of them were marked; forgotten in steps of a twentieth of it. */
export class Recent {
  readonly #slotMs: number;
  readonly #slots = Array.from({ length: SLOTS }, () => slotOf(-1));

  constructor(spanMs: number) {
    this.#slotMs = spanMs / SLOTS;
  }

  count(what: keyof Count, now: number, caller?: string): void {
    const slot = this.#slotAt(now);
    slot[what]++;
    if (caller === undefined) return;
    const known = slot.by.get(caller);
    if (known) known[what]++;
    else if (slot.by.size < MAX_CALLERS) slot.by.set(caller, { ...NONE, [what]: 1 });
  }

  totals(now: number): Count {
    return sum(this.#live(now));
  }

  /** The counts of the caller with most marked calls. */
  worst(now: number): Count {
    const callers = new Map<string, Count>();
    for (const { by } of this.#live(now))
      for (const [caller, count] of by) callers.set(caller, sum([callers.get(caller) ?? NONE, count]));
    let worst: Count = NONE;
    for (const count of callers.values()) if (count.marked > worst.marked) worst = count;
    return worst;
  }

  #live(now: number): Slot[] {
    const oldest = Math.floor(now / this.#slotMs) - SLOTS;
    return this.#slots.filter(({ number }) => number > oldest);
  }

  #slotAt(now: number): Slot {
    const number = Math.floor(now / this.#slotMs);
    const known = this.#slots[number % SLOTS];
    if (known?.number === number) return known;
    const slot = slotOf(number);
    this.#slots[number % SLOTS] = slot;
    return slot;
  }
}

const sum = (counts: readonly Count[]): Count =>
  counts.reduce((all, { calls, marked }) => ({ calls: all.calls + calls, marked: all.marked + marked }), NONE);
