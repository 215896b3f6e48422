import { setImmediate } from 'node:timers/promises';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Gate, Settled } from '../../src/resilience/gates.ts';
import type { Attempt } from '../../src/upstream/call.ts';
import { slots } from '../../src/resilience/slots.ts';
import { isAddress } from '../../src/store/store.ts';
import { manualClock } from '../support/clock.ts';
import { callFor, metrics } from './layer.ts';

type Step =
  | { readonly do: 'come'; readonly owner: string }
  | { readonly do: 'end'; readonly nth: number }
  | { readonly do: 'leave'; readonly nth: number };

const OWNERS = ['a', 'b', 'c', 'd', 'address 10.0.0.1', 'address 10.0.0.2'];

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('come' as const), owner: fc.constantFrom(...OWNERS) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('end' as const), nth: fc.nat(99) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), nth: fc.nat(99) }) },
);

const OUTCOME = { now: 0 };

/** A call of an owner that has come to the gate. */
interface Guest {
  readonly owner: string;
  readonly attempt: Attempt;
  readonly leave: () => void;
  release?: Settled;
}

/** A gate and the book that is kept of it, complete after each `play`. */
class Ledger {
  readonly clock = manualClock();
  readonly inUse: Guest[] = [];
  readonly waiting: Guest[] = [];
  readonly #slots: number;
  readonly #gate: Gate;

  constructor(count: number) {
    this.#slots = count;
    this.#gate = slots({ clock: this.clock, metrics }, count);
  }

  async play(one: Step): Promise<void> {
    if (one.do === 'come') this.come(one.owner);
    if (one.do === 'end' && this.inUse.length > 0) this.end(this.inUse[one.nth % this.inUse.length]!);
    if (one.do === 'leave' && this.waiting.length > 0) {
      const [guest] = this.waiting.splice(one.nth % this.waiting.length, 1);
      guest?.leave();
    }
    await setImmediate(); // lets those who were granted one go on
    this.#check();
  }

  come(owner: string): void {
    const controller = new AbortController();
    const call = callFor(this.clock, { account: owner, owner, controller });
    const attempt: Attempt = { call, now: this.clock.now(), resends: 0 };
    const guest: Guest = { owner, attempt, leave: () => controller.abort(new Error('left')) };
    const answer = this.#gate(attempt);
    if (!(answer instanceof Promise)) return this.#serve(guest, answer!);
    this.waiting.push(guest);
    const served = (release: Settled) => {
      expect(this.waiting.find((other) => other.owner === owner)).toBe(guest); // an owner's own are in order
      this.waiting.splice(this.waiting.indexOf(guest), 1);
      this.#serve(guest, release);
    };
    answer.then(served, (error: unknown) => expect(error).toBe(controller.signal.reason));
  }

  end(guest: Guest): void {
    this.inUse.splice(this.inUse.indexOf(guest), 1);
    guest.release?.(guest.attempt, OUTCOME);
  }

  #serve(guest: Guest, release: Settled): void {
    guest.release = release;
    this.inUse.push(guest);
  }

  #used(owner: string): number {
    return this.inUse.filter((guest) => guest.owner === owner).length;
  }

  #strangers(): number {
    return this.inUse.filter(({ owner }) => isAddress(owner)).length;
  }

  /** Whether an owner may have one more. */
  #isFree(owner: string): boolean {
    const free = this.#slots - this.inUse.length;
    const used = this.#used(owner);
    if (free === 0 || (isAddress(owner) && this.#strangers() >= Math.ceil(this.#slots / 2))) return false;
    return used === 0 || used + 1 <= (free + used) / 4;
  }

  #check(): void {
    expect(this.inUse.length).toBeLessThanOrEqual(this.#slots);
    for (const owner of OWNERS) expect(this.#used(owner)).toBeLessThanOrEqual(Math.max(1, this.#slots / 4));
    expect(this.#strangers()).toBeLessThanOrEqual(Math.ceil(this.#slots / 2));
    expect(this.waiting.filter(({ owner }) => this.#isFree(owner))).toEqual([]); // nobody waits for what is there
    expect(this.clock.pending()).toBe(this.waiting.length);
  }
}

test('slots are shared fairly in every schedule, and none is lost', async () => {
  const size = fc.integer({ min: 1, max: 16 });
  await fc.assert(
    fc.asyncProperty(size, fc.array(step, { maxLength: 80 }), async (count, steps) => {
      const ledger = new Ledger(count);
      for (const one of steps) await ledger.play(one);
      // Those who still wait are all served, and then every slot is free.
      while (ledger.inUse.length > 0) await ledger.play({ do: 'end', nth: 0 });
      expect(ledger.waiting).toEqual([]);
      for (let n = 0; n < count; n++) ledger.come(`account ${n}`);
      expect(ledger.inUse).toHaveLength(count);
    }),
    { numRuns: 300 },
  );
});

/** Of a gate with so many slots that are all in use, the owners in the order in which they are let in. */
const orderOf = async (first: readonly string[], comers: readonly string[]) => {
  const ledger = new Ledger(first.length);
  for (const owner of [...first, ...comers]) ledger.come(owner);
  const order: string[] = [];
  while (order.length < comers.length) {
    await ledger.play({ do: 'end', nth: 0 });
    order.push(ledger.inUse.at(-1)!.owner);
  }
  return order;
};

test('owners take turns', async () => {
  const comers = ['a', 'a', 'a', 'b', 'c', 'c', 'b'];
  expect(await orderOf(['x'], comers)).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'a']);
});

test('who has fewer under way is served before who has more, and came first', async () => {
  expect(await orderOf(['x', 'a'], ['a', 'b'])).toEqual(['b', 'a']);
});

test('a thousand unaccepted credentials of one address have one turn together', async () => {
  const comers = [...Array.from({ length: 1000 }, () => 'address 10.0.0.1'), 'known'];
  expect((await orderOf(['x'], comers)).indexOf('known')).toBeLessThan(2);
});
