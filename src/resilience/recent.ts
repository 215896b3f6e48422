import type { UpstreamCall } from '../upstream/client.ts';

const SLOTS = 20;
/** Callers that are told apart; any more count in the totals only. */
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

const none = (): Count => ({ calls: 0, marked: 0 });

const isMostlyMarked = ({ calls, marked }: Count) => marked * 2 > calls;

/**
 * Calls of the last `spanMs`, and how many of them were marked; forgotten in steps of a twentieth of it. Sums are kept
 * up to date, so that neither counting a call nor asking depends on how many callers there are.
 */
export class Recent {
  readonly #slotMs: number;
  /** Oldest first. */
  #slots: readonly Slot[] = [];
  readonly #all = none();
  readonly #callers = new Map<string, Count>();
  /** Of the callers, those with most of their calls marked. */
  #bad = 0;
  /** Looked for when it is asked for, and once after each step. */
  #worst: Readonly<Count> | undefined;

  constructor(spanMs: number) {
    this.#slotMs = spanMs / SLOTS;
  }

  count(what: keyof Count, now: number, caller: string): void {
    const slot = this.#slotAt(now);
    slot[what]++;
    this.#all[what]++;
    const sum = this.#callers.get(caller) ?? this.#begin(caller);
    if (!sum) return;
    const own = slot.by.get(caller);
    if (own) own[what]++;
    else slot.by.set(caller, { ...none(), [what]: 1 });
    this.#add(sum, what, 1);
    if (this.#worst && sum.marked > this.#worst.marked) this.#worst = sum;
  }

  totals(now: number): Readonly<Count> {
    this.#slotAt(now);
    return this.#all;
  }

  of(caller: string, now: number): Readonly<Count> {
    this.#slotAt(now);
    return this.#callers.get(caller) ?? none();
  }

  /** How many callers there were, and how many of them have most of their calls marked. */
  callers(now: number): { readonly seen: number; readonly bad: number } {
    this.#slotAt(now);
    return { seen: this.#callers.size, bad: this.#bad };
  }

  /** The counts of the caller with most marked calls. */
  worst(now: number): Readonly<Count> {
    this.#slotAt(now);
    return (this.#worst ??= this.#findWorst());
  }

  #findWorst(): Count {
    let worst = none();
    for (const sum of this.#callers.values()) if (sum.marked > worst.marked) worst = sum;
    return worst;
  }

  #begin(caller: string): Count | undefined {
    if (this.#callers.size >= MAX_CALLERS) return undefined;
    const sum = none();
    this.#callers.set(caller, sum);
    return sum;
  }

  #add(sum: Count, what: keyof Count, count: number): void {
    if (isMostlyMarked(sum)) this.#bad--;
    sum[what] += count;
    if (isMostlyMarked(sum)) this.#bad++;
  }

  /** The current slot. Forgets those that are over. */
  #slotAt(now: number): Slot {
    const number = Math.floor(now / this.#slotMs);
    const last = this.#slots.at(-1);
    if (last && last.number >= number) return last;
    const slot: Slot = { ...none(), number, by: new Map() };
    const isOver = (other: Slot) => other.number <= number - SLOTS;
    for (const other of this.#slots) if (isOver(other)) this.#forget(other);
    this.#slots = [...this.#slots.filter((other) => !isOver(other)), slot];
    return slot;
  }

  #forget({ calls, marked, by }: Slot): void {
    this.#all.calls -= calls;
    this.#all.marked -= marked;
    for (const [caller, own] of by) {
      const sum = this.#callers.get(caller);
      if (!sum) continue;
      this.#add(sum, 'calls', -own.calls);
      this.#add(sum, 'marked', -own.marked);
      if (sum.calls === 0 && sum.marked === 0) this.#callers.delete(caller);
    }
    this.#worst = undefined;
  }
}

/** Whose call it is. */
export type Caller = Pick<UpstreamCall, 'account' | 'owner' | 'context'>;

/** What tells accounts apart; calls without a credential are those of their address. */
export const accountOf = ({ account, owner }: Caller): string => account ?? owner;

export const addressOf = ({ context }: Caller): string => context.address;

/** The same calls by account and by address. */
export class RecentCalls {
  readonly accounts: Recent;
  readonly addresses: Recent;

  constructor(spanMs: number) {
    this.accounts = new Recent(spanMs);
    this.addresses = new Recent(spanMs);
  }

  count(what: keyof Count, now: number, caller: Caller): void {
    this.accounts.count(what, now, accountOf(caller));
    this.addresses.count(what, now, addressOf(caller));
  }
}
