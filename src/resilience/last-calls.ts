import { SlidingWindow } from './sliding-window.ts';

const SPAN_MS = 10_000;
/** Fewer calls than this say nothing. */
const LEAST_CALLS = 20;
/** How many calls of an account count, where enough accounts have called. */
const EACH = 5;
/** Accounts beyond this number count as one. */
const MAX_ACCOUNTS = 5_000;
const OTHERS = '';
/** How often accounts are forgotten that have not called for the whole span. */
const FORGET_MS = SPAN_MS / 20;

interface Call {
  readonly at: number;
  readonly isBad: boolean;
}

/**
 * The calls of the last ten seconds. Of each account the last five count; where fewer than four accounts have called, an equal
 * part of 20. So an account has the same weight however often it calls. Adding a call costs the same with any number of
 * accounts.
 */
export class LastCalls {
  /** Up to 20 calls of each account, the oldest first. The account that called last stands last. */
  readonly #accounts = new Map<string, Call[]>();
  /** The last five calls of each account. */
  readonly #calls = new SlidingWindow(SPAN_MS);
  readonly #bad = new SlidingWindow(SPAN_MS);
  #forgetsAt = 0;

  add(account: string, call: Call): void {
    this.#forget(call.at);
    const isToldApart = this.#accounts.has(account) || this.#accounts.size < MAX_ACCOUNTS;
    const name = isToldApart ? account : OTHERS;
    const calls = this.#accounts.get(name) ?? [];
    this.#accounts.delete(name);
    this.#accounts.set(name, calls);
    calls.push(call);
    this.#count(call, 1);
    const replaced = calls.at(-1 - EACH);
    if (replaced) this.#count(replaced, -1);
    if (calls.length > LEAST_CALLS) calls.shift();
  }

  /** Whether 20 or more calls count, and half of them were bad. To be asked right after `add`. */
  areHalfBad(now: number): boolean {
    const areFew = this.#accounts.size * EACH < LEAST_CALLS;
    const [calls, bad] = areFew ? this.#ofFew(now) : [this.#calls.sum(now), this.#bad.sum(now)];
    return calls >= LEAST_CALLS && bad * 2 >= calls;
  }

  #ofFew(now: number): readonly [calls: number, bad: number] {
    const part = Math.ceil(LEAST_CALLS / this.#accounts.size);
    const each = Array.from(this.#accounts.values(), (calls) => calls.slice(-part));
    const calls = each.flat().filter(({ at }) => at > now - SPAN_MS);
    return [calls.length, calls.filter(({ isBad }) => isBad).length];
  }

  #count({ at, isBad }: Call, change: 1 | -1): void {
    this.#calls.add(at, change);
    if (isBad) this.#bad.add(at, change);
  }

  /** Forgets accounts that have not called for the whole span, from time to time. */
  #forget(now: number): void {
    if (now < this.#forgetsAt) return;
    this.#forgetsAt = now + FORGET_MS;
    for (const [name, calls] of this.#accounts) {
      if ((calls.at(-1)?.at ?? 0) > now - SPAN_MS) return;
      this.#accounts.delete(name);
    }
  }
}
