import type { UpstreamCall } from '../upstream/call.ts';

const STEPS = 20;
/** Callers that are told apart; any more are one caller together. */
const MAX_CALLERS = 5_000;
const OTHERS = '';

interface Count {
  calls: number;
  marked: number;
}

type Counts = Map<string, Count>;

/** Calls of the last `spanMs`, and how many of them were marked; forgotten in steps of a twentieth of it. */
export class Recent {
  readonly #stepMs: number;
  /** The calls of each caller in each step of time. Steps are numbered since the epoch, the oldest first. */
  readonly #steps = new Map<number, Counts>();
  readonly #all: Count = { calls: 0, marked: 0 };
  /** The sums of all steps. */
  readonly #callers: Counts = new Map();

  constructor(spanMs: number) {
    this.#stepMs = spanMs / STEPS;
  }

  count(what: keyof Count, now: number, caller: string): void {
    this.#forget(now);
    const isToldApart = this.#callers.has(caller) || this.#callers.size < MAX_CALLERS - 1;
    const name = isToldApart ? caller : OTHERS;
    const number = Math.floor(now / this.#stepMs);
    const step = this.#steps.get(number) ?? new Map<string, Count>();
    this.#steps.set(number, step);
    for (const count of [this.#all, countIn(this.#callers, name), countIn(step, name)]) count[what]++;
  }

  totals(now: number): Readonly<Count> {
    this.#forget(now);
    return this.#all;
  }

  of(caller: string, now: number): Readonly<Count> {
    this.#forget(now);
    return this.#callers.get(caller) ?? { calls: 0, marked: 0 };
  }

  /** How many callers there were, and how many of them have most of their calls marked. Takes 50 µs with all of them. */
  callers(now: number): { readonly seen: number; readonly bad: number } {
    this.#forget(now);
    let bad = 0;
    for (const { calls, marked } of this.#callers.values()) if (marked * 2 > calls) bad++;
    return { seen: this.#callers.size, bad };
  }

  /** The counts of the caller with most marked calls. */
  worst(now: number): Readonly<Count> {
    this.#forget(now);
    let worst = { calls: 0, marked: 0 };
    for (const count of this.#callers.values()) if (count.marked > worst.marked) worst = count;
    return worst;
  }

  #forget(now: number): void {
    const first = Math.floor(now / this.#stepMs) - STEPS + 1;
    for (const [number, step] of this.#steps) {
      if (number >= first) return;
      this.#steps.delete(number);
      for (const [caller, { calls, marked }] of step) {
        const sum = countIn(this.#callers, caller);
        for (const count of [this.#all, sum]) {
          count.calls -= calls;
          count.marked -= marked;
        }
        if (sum.calls === 0 && sum.marked === 0) this.#callers.delete(caller);
      }
    }
  }
}

function countIn(counts: Counts, caller: string): Count {
  const known = counts.get(caller);
  if (known) return known;
  const count = { calls: 0, marked: 0 };
  counts.set(caller, count);
  return count;
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
