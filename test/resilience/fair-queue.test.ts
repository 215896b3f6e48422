import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { FairQueue } from '../../src/resilience/fair-queue.ts';

type Step =
  | { readonly do: 'come'; readonly account: string }
  | { readonly do: 'end'; readonly nth: number }
  | { readonly do: 'leave'; readonly nth: number };

const ACCOUNTS = ['a', 'b', 'c', 'd'];

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('come' as const), account: fc.constantFrom(...ACCOUNTS) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('end' as const), nth: fc.nat(99) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), nth: fc.nat(99) }) },
);

const size = fc.record({ slots: fc.integer({ min: 1, max: 6 }), share: fc.integer({ min: 1, max: 6 }) });

/** Somebody who waits. */
interface Guest {
  readonly account: string;
  readonly leave: () => boolean;
}

/** A queue and the book that is kept of it, complete after each `settle`. */
class Ledger {
  readonly inUse: string[] = [];
  readonly waiting: Guest[] = [];
  readonly #queue: FairQueue;
  readonly #size: { readonly slots: number; readonly share: number };
  /** Who had a turn since an account that waits could have had one. */
  readonly #turns = new Map<string, Set<string>>();
  #granted: Guest[] = [];

  constructor(of: { readonly slots: number; readonly share: number }) {
    this.#size = of;
    this.#queue = new FairQueue(of);
  }

  async play(one: Step): Promise<void> {
    if (one.do === 'come') this.#come(one.account);
    if (one.do === 'end' && this.inUse.length > 0) {
      const [account = ''] = this.inUse.splice(one.nth % this.inUse.length, 1);
      this.#queue.release(account);
    }
    if (one.do === 'leave' && this.waiting.length > 0) {
      const [guest] = this.waiting.splice(one.nth % this.waiting.length, 1);
      expect(guest?.leave()).toBe(true);
      expect(guest?.leave()).toBe(false);
      if (!this.#lineOf(guest?.account)) this.#turns.delete(guest?.account ?? '');
    }
    await Promise.resolve(); // those who were let in have heard of it
    for (const guest of this.#granted.splice(0)) this.#serve(guest);
    this.#check();
  }

  #come(account: string): void {
    const mayEnter = this.#isFree(account) && !this.#lineOf(account);
    const entered = this.#queue.take(account);
    expect(entered).toBe(mayEnter);
    if (entered) return void this.inUse.push(account);
    const ticket = this.#queue.wait(account);
    const guest = { account, leave: () => ticket.leave() };
    this.waiting.push(guest);
    void ticket.granted.then(() => this.#granted.push(guest));
  }

  #serve(guest: Guest): void {
    expect(this.waiting).toContain(guest); // not twice, and not after leaving
    expect(guest.leave()).toBe(false);
    expect(this.#lineOf(guest.account)).toBe(guest);
    this.#takeTurn(guest.account);
    this.waiting.splice(this.waiting.indexOf(guest), 1);
    this.inUse.push(guest.account);
  }

  #takeTurn(account: string): void {
    this.#turns.delete(account);
    const others = ACCOUNTS.filter((other) => other !== account && this.#lineOf(other) && this.#isBelowShare(other));
    for (const other of others) {
      const turns = this.#turns.get(other) ?? new Set();
      expect(turns.has(account)).toBe(false);
      this.#turns.set(other, turns.add(account));
    }
  }

  /** Who is first in it. */
  #lineOf(account: string | undefined): Guest | undefined {
    return this.waiting.find((guest) => guest.account === account);
  }

  #used(account: string): number {
    return this.inUse.filter((one) => one === account).length;
  }

  #isBelowShare(account: string): boolean {
    return this.#used(account) < this.#size.share;
  }

  #isFree(account: string): boolean {
    return this.inUse.length < this.#size.slots && this.#isBelowShare(account);
  }

  #check(): void {
    expect(this.inUse.length).toBeLessThanOrEqual(this.#size.slots);
    for (const account of ACCOUNTS) expect(this.#used(account)).toBeLessThanOrEqual(this.#size.share);
    expect(this.#queue.waiting).toBe(this.waiting.length);
    expect(this.waiting.filter(({ account }) => this.#isFree(account))).toEqual([]); // nobody waits for what is there
  }
}

test('slots are shared fairly in every schedule, and none is lost', async () => {
  await fc.assert(
    fc.asyncProperty(size, fc.array(step, { maxLength: 80 }), async (of, steps) => {
      const ledger = new Ledger(of);
      for (const one of steps) await ledger.play(one);
      // Those who still wait are all served, and then every slot is free.
      while (ledger.inUse.length > 0) await ledger.play({ do: 'end', nth: 0 });
      expect(ledger.waiting).toEqual([]);
      for (const account of ACCOUNTS.slice(0, of.slots)) await ledger.play({ do: 'come', account });
      expect(ledger.inUse).toHaveLength(Math.min(of.slots, ACCOUNTS.length));
    }),
    { numRuns: 300 },
  );
});

const heard = async (queue: FairQueue, comers: readonly string[]) => {
  const served: string[] = [];
  const all = comers.map((name) => {
    const [account = ''] = name;
    return queue.wait(account).granted.then(() => served.push(name));
  });
  for (const name of comers) {
    queue.release(served.at(-1)?.[0] ?? 'x');
    await Promise.resolve();
    await Promise.resolve();
    expect(served.length).toBe(comers.indexOf(name) + 1);
  }
  await Promise.all(all);
  return served;
};

test('accounts take turns, and each has its own in the order of coming', async () => {
  const queue = new FairQueue({ slots: 1, share: 1 });
  expect(queue.take('x')).toBe(true);
  expect(await heard(queue, ['a1', 'a2', 'a3', 'b1', 'c1', 'c2', 'b2'])).toEqual([
    'a1',
    'b1',
    'c1',
    'a2',
    'b2',
    'c2',
    'a3',
  ]);
});
