import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Attempt } from '../../src/resilience/gates.ts';
import { SlotTable } from '../../src/resilience/slot-table.ts';
import { manualClock } from '../support/clock.ts';
import { operations } from '../../src/upstream/operations/index.ts';
import type { UpstreamCall } from '../../src/upstream/client.ts';
import { callFor } from './layer.ts';

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

/** An attempt of an account, sent at `now`. */
const attemptOf = (account: string, now = 0, changes: Partial<UpstreamCall> = {}): Attempt => ({
  call: callFor(manualClock(), { account, owner: account, ...changes }),
  now,
  controller: new AbortController(),
});

/** Somebody who waits. */
interface Guest {
  readonly attempt: Attempt;
  readonly leave: () => boolean;
}

/** A queue and the book that is kept of it, complete after each `settle`. */
class Ledger {
  readonly inUse: Attempt[] = [];
  readonly waiting: Guest[] = [];
  readonly #queue: SlotTable;
  readonly #size: { readonly slots: number; readonly share: number };
  /** Who had a turn since an account that waits could have had one. */
  readonly #turns = new Map<string, Set<string>>();
  #granted: Guest[] = [];

  constructor(of: { readonly slots: number; readonly share: number }) {
    this.#size = of;
    this.#queue = new SlotTable(of);
  }

  async play(one: Step): Promise<void> {
    if (one.do === 'come') this.#come(one.account);
    if (one.do === 'end' && this.inUse.length > 0) {
      const [ended] = this.inUse.splice(one.nth % this.inUse.length, 1);
      this.#queue.release(ended!);
    }
    if (one.do === 'leave' && this.waiting.length > 0) {
      const [guest] = this.waiting.splice(one.nth % this.waiting.length, 1);
      expect(guest?.leave()).toBe(true);
      expect(guest?.leave()).toBe(false);
      const account = guest?.attempt.call.account;
      if (!this.#lineOf(account)) this.#turns.delete(account ?? '');
    }
    await Promise.resolve(); // lets the granted promises resolve
    for (const guest of this.#granted.splice(0)) this.#serve(guest);
    this.#check();
  }

  #come(account: string): void {
    const mayEnter = this.#isFree(account) && !this.#lineOf(account);
    const attempt = attemptOf(account);
    const entered = this.#queue.take(attempt);
    expect(entered).toBe(mayEnter);
    if (entered) return void this.inUse.push(attempt);
    const ticket = this.#queue.wait(attempt);
    const guest = { attempt, leave: () => ticket.leave() };
    this.waiting.push(guest);
    void ticket.granted.then(() => this.#granted.push(guest));
  }

  #serve(guest: Guest): void {
    expect(this.waiting).toContain(guest); // not twice, and not after leaving
    expect(guest.leave()).toBe(false);
    const account = guest.attempt.call.account ?? '';
    expect(this.#lineOf(account)).toBe(guest);
    this.#takeTurn(account);
    this.waiting.splice(this.waiting.indexOf(guest), 1);
    this.inUse.push(guest.attempt);
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
    return this.waiting.find(({ attempt }) => attempt.call.account === account);
  }

  #used(account: string): number {
    return this.inUse.filter(({ call }) => call.account === account).length;
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
    expect(this.waiting.filter(({ attempt }) => this.#isFree(attempt.call.account ?? ''))).toEqual([]); // nobody waits for what is there
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

/** Of a table with one slot, in the order in which they are let in. */
const letIn = async (table: SlotTable, first: Attempt, comers: readonly Attempt[]) => {
  const served: Attempt[] = [];
  for (const one of comers) void table.wait(one).granted.then(() => served.push(one));
  for (let under: Attempt | undefined = first; under; under = served.at(-1) === under ? undefined : served.at(-1)) {
    table.release(under);
    await Promise.resolve();
    await Promise.resolve();
  }
  return served;
};

const oneSlot = () => {
  const table = new SlotTable({ slots: 1, share: 1 });
  const first = attemptOf('x');
  expect(table.take(first)).toBe(true);
  return { table, first };
};

test('accounts take turns, and each has its own in the order of coming', async () => {
  const { table, first } = oneSlot();
  const names = ['a1', 'a2', 'a3', 'b1', 'c1', 'c2', 'b2'];
  const comers = names.map((name) => attemptOf(name.slice(0, 1)));
  const served = await letIn(table, first, comers);
  expect(served.map((one) => names[comers.indexOf(one)])).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'c2', 'a3']);
});

test('a thousand unaccepted credentials of one address have one turn together', async () => {
  const { table, first } = oneSlot();
  const unaccepted = Array.from({ length: 1000 }, (_, n) =>
    attemptOf(`unaccepted-${n}`, 0, { owner: 'address 10.0.0.1' }),
  );
  const known = attemptOf('known');
  const served = await letIn(table, first, [...unaccepted, known]);
  expect(served.indexOf(known)).toBe(1);
});

const address = (one: string) => ({ owner: `address ${one}` });
const WRITE = { operation: operations.createApiKey };

/** Takes the slots for these, one after the other, and says whom a newcomer ends. */
const loserOf = (all: readonly Attempt[], comer: Attempt, before = Infinity) => {
  const table = new SlotTable({ slots: all.length, share: all.length });
  for (const one of all) expect(table.take(one)).toBe(true);
  return table.takeOver(comer, before);
};

describe('where all slots are in use', () => {
  test('the longest read of whoever has most makes room', () => {
    const [a1, a2, a3, b] = [attemptOf('a', 1), attemptOf('a', 2), attemptOf('a', 3), attemptOf('b', 0)];
    expect(loserOf([b, a1, a2, a3], attemptOf('c'))).toBe(a1);
  });

  test('nobody has to make room for who would then have as many', () => {
    expect(loserOf([attemptOf('a'), attemptOf('a'), attemptOf('b')], attemptOf('b'))).toBeUndefined();
    expect(loserOf([attemptOf('a'), attemptOf('b')], attemptOf('c'))).toBeUndefined();
    expect(loserOf([attemptOf('a'), attemptOf('a')], attemptOf('a'))).toBeUndefined();
  });

  test('a write does not', () => {
    const [write, read] = [attemptOf('a', 0, WRITE), attemptOf('a', 1)];
    expect(loserOf([write, read], attemptOf('b'))).toBe(read);
    expect(loserOf([write, attemptOf('c', 1, WRITE)], attemptOf('b'))).toBeUndefined();
  });

  test('so writes leave some to others, and to reads', () => {
    const table = new SlotTable({ slots: 32, share: 8 });
    const accounts = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    for (let n = 0; n < 12; n++) for (const account of accounts) table.take(attemptOf(account, 0, WRITE));
    expect(table.isFull).toBe(false);
    for (let n = 0; n < 8; n++) expect(table.take(attemptOf('quiet'))).toBe(true);
    const unaccepted = new SlotTable({ slots: 32, share: 8 });
    const isTaken = (n: number) => unaccepted.take(attemptOf(`s${n}`, 0, { ...WRITE, ...address('1') }));
    expect(Array.from({ length: 32 }, (_, n) => isTaken(n)).filter(Boolean)).toHaveLength(8);
  });

  test('nor does one that was sent a moment ago', () => {
    expect(loserOf([attemptOf('a', 5), attemptOf('a', 6)], attemptOf('b'), 4)).toBeUndefined();
    expect(loserOf([attemptOf('a', 4), attemptOf('a', 6)], attemptOf('b'), 4)?.now).toBe(4);
  });

  test('what was never accepted makes room first, and of it the address with most', () => {
    const known = [attemptOf('a'), attemptOf('a'), attemptOf('a')];
    const unaccepted = ['s', 't', 'u'].map((name, n) => attemptOf(name, n, address(n === 0 ? '1' : '2')));
    expect(loserOf([...known, ...unaccepted], attemptOf('b'))).toBe(unaccepted[1]);
    expect(loserOf(unaccepted.slice(0, 1), attemptOf('b'))).toBeUndefined(); // it has no more than b would have
  });

  test('an unaccepted credential takes from accounts while all such have less than an eighth', () => {
    const table = new SlotTable({ slots: 16, share: 16 });
    for (let n = 0; n < 16; n++) table.take(attemptOf('a', n));
    const losers = [1, 2, 3].map((n) => table.takeOver(attemptOf(`s${n}`, 99, address(`${n}`)), 50)?.now);
    expect(losers).toEqual([0, 1, undefined]);
  });

  test('of one address, the credential with most', () => {
    const [s1, s2, t] = ['s', 's', 't'].map((name) => attemptOf(name, 0, address('1')));
    expect(loserOf([t!, s1!, s2!], attemptOf('u', 0, address('1')))).toBe(s1);
  });

  test('who has lost its slot gives none back', () => {
    const table = new SlotTable({ slots: 2, share: 2 });
    const [a1, a2, b] = [attemptOf('a'), attemptOf('a'), attemptOf('b')];
    for (const one of [a1, a2]) table.take(one);
    expect(table.takeOver(b, Infinity)).toBe(a1);
    table.release(a1);
    expect(table.isFull).toBe(true);
    table.release(b);
    table.release(a2);
    expect([table.take(a1), table.take(a2), table.take(b)]).toEqual([true, true, false]);
  });
});
