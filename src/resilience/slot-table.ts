import { Holdings } from '../store/bounded.ts';
import { isAddress, type Owner } from '../store/owner.ts';
import type { Attempt } from './gates.ts';

/** A place in the queue. */
interface Ticket {
  /** Resolves when a slot is the holder's. */
  readonly granted: Promise<void>;
  /** Gives the place up; says whether there was still one to give up. */
  leave(): boolean;
}

interface Waiter {
  readonly attempt: Attempt;
  readonly start: () => void;
}

/** Of the slots, the part that writes may have in all; and of what is left of that, the part that one owner may have. */
const WRITES_SHARE = 3 / 4;
const WRITES_PART = 1 / 2;
/** What strangers may take from accounts, of all slots. */
const STRANGERS_SHARE = 1 / 8;

/** Calls that wait: owners take turns, of an owner its accounts, and each has its own in the order of coming. */
type Lines = Map<Owner, Map<string, Set<Waiter>>>;

/** Slots that accounts share: none has more than its share of them. */
export class SlotTable {
  readonly #slots: number;
  readonly #share: number;
  /** Writes are not taken back: each owner may have a part of what they leave. */
  readonly #writes: Holdings;
  /** By account, those under way for longest first. */
  readonly #underWay = new Map<string, Attempt[]>();
  readonly #ofOwner = new Map<Owner, number>();
  readonly #lines: Lines = new Map();
  #free: number;
  #waiting = 0;

  /** `share`: slots that one account may have at once. */
  constructor({ slots, share }: { slots: number; share: number }) {
    this.#free = slots;
    this.#slots = slots;
    this.#share = share;
    this.#writes = new Holdings({ max: Math.ceil(slots * WRITES_SHARE), part: WRITES_PART });
  }

  get isFull(): boolean {
    return this.#free === 0;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Takes a slot, if the account may have one now. */
  take(attempt: Attempt): boolean {
    if (this.#free === 0 || !this.#mayHaveMore(attempt)) return false;
    this.#grant(attempt);
    return true;
  }

  /**
   * Takes the slot of the longest read of whoever has most, if it was sent before `before`. Comes back with that read;
   * with none where nobody has more than the account of the attempt would have.
   */
  takeOver(attempt: Attempt, before: number): Attempt | undefined {
    if (this.#free > 0 || !this.#mayHaveMore(attempt)) return undefined;
    const read = this.#toMakeRoomFor(attempt);
    if (!read || read.now > before) return undefined;
    this.#remove(read);
    this.#grant(attempt);
    return read;
  }

  wait(attempt: Attempt): Ticket {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter = { attempt, start: resolve };
    const { owner } = attempt.call;
    const accounts = this.#lines.get(owner) ?? new Map<string, Set<Waiter>>();
    const line = accounts.get(accountOf(attempt)) ?? new Set();
    this.#lines.set(owner, accounts.set(accountOf(attempt), line.add(waiter)));
    this.#waiting++;
    return { granted: promise, leave: () => this.#leave(waiter) };
  }

  /** Of an attempt that has lost its slot, does nothing. */
  release(attempt: Attempt): void {
    if (this.#remove(attempt)) this.#serveNext();
  }

  #serveNext(): void {
    for (const [owner, accounts] of this.#lines) {
      for (const [account, line] of accounts) {
        const [first] = line;
        if (!first || !this.#mayHaveMore(first.attempt)) continue;
        this.#leave(first);
        if (accounts.delete(account)) accounts.set(account, line);
        if (this.#lines.delete(owner)) this.#lines.set(owner, accounts);
        this.#grant(first.attempt);
        first.start();
        return;
      }
    }
  }

  #mayHaveMore(attempt: Attempt): boolean {
    const isBelowShare = this.#held(attempt) < this.#share;
    return isBelowShare && (isRead(attempt) || this.#writes.hasRoomFor(attempt.call.owner));
  }

  #grant(attempt: Attempt): void {
    const account = accountOf(attempt);
    const { owner } = attempt.call;
    this.#free--;
    if (!isRead(attempt)) this.#writes.add(owner, 1);
    const own = this.#underWay.get(account);
    if (own) own.push(attempt);
    else this.#underWay.set(account, [attempt]);
    this.#ofOwner.set(owner, (this.#ofOwner.get(owner) ?? 0) + 1);
  }

  #remove(attempt: Attempt): boolean {
    const account = accountOf(attempt);
    const { owner } = attempt.call;
    const own = this.#underWay.get(account);
    const at = own?.indexOf(attempt) ?? -1;
    if (!own || at < 0) return false;
    own.copyWithin(at, at + 1).pop(); // unlike `splice`, leaves nothing of what was last behind
    if (!isRead(attempt)) this.#writes.add(owner, -1);
    const left = (this.#ofOwner.get(owner) ?? 1) - 1;
    if (own.length === 0) this.#underWay.delete(account);
    if (left === 0) this.#ofOwner.delete(owner);
    else this.#ofOwner.set(owner, left);
    this.#free++;
    return true;
  }

  /**
   * The read that makes room for an attempt. Strangers, whom the upstream has never accepted, make room before accounts.
   * They take from accounts only while all strangers together have few slots.
   */
  #toMakeRoomFor(attempt: Attempt): Attempt | undefined {
    const reads = [...this.#underWay.values()].map((all) => all.find(isRead)).filter((read) => read !== undefined);
    const ofStrangers = reads.filter(isStranger);
    const ofAccounts = reads.filter((read) => !isStranger(read));
    if (isStranger(attempt)) {
      const mayTakeFromAccounts = this.#strangers() < this.#slots * STRANGERS_SHARE;
      return this.#most(ofStrangers, attempt) ?? (mayTakeFromAccounts ? this.#most(ofAccounts, attempt) : undefined);
    }
    const haveStrangersMore = this.#strangers() > this.#held(attempt) + 1;
    return (haveStrangersMore ? this.#most(ofStrangers) : undefined) ?? this.#most(ofAccounts, attempt);
  }

  /** That of whoever has most; with `than`, only if it is more than the account of that attempt would have with it. */
  #most(reads: readonly Attempt[], than?: Attempt): Attempt | undefined {
    const [first] = reads;
    const most = first && reads.reduce((best, read) => (this.#hasMore(read, best, 0) ? read : best), first);
    return most && (!than || this.#hasMore(most, than, 1)) ? most : undefined;
  }

  /** Whether one owner has more than the other would have with so many more; of one owner, which account. */
  #hasMore(one: Attempt, other: Attempt, more: number): boolean {
    const [owner, others] = [one.call.owner, other.call.owner];
    const ahead = owner === others ? 0 : (this.#ofOwner.get(owner) ?? 0) - (this.#ofOwner.get(others) ?? 0) - more;
    return ahead === 0 ? this.#held(one) - this.#held(other) - more > 0 : ahead > 0;
  }

  /** Slots of all addresses. */
  #strangers(): number {
    let all = 0;
    for (const [owner, count] of this.#ofOwner) if (isAddress(owner)) all += count;
    return all;
  }

  #held(attempt: Attempt): number {
    return this.#underWay.get(accountOf(attempt))?.length ?? 0;
  }

  #leave(waiter: Waiter): boolean {
    const { owner } = waiter.attempt.call;
    const accounts = this.#lines.get(owner);
    const account = accountOf(waiter.attempt);
    const line = accounts?.get(account);
    if (!accounts || !line?.delete(waiter)) return false;
    if (line.size === 0) accounts.delete(account);
    if (accounts.size === 0) this.#lines.delete(owner);
    this.#waiting--;
    return true;
  }
}

const isRead = ({ call }: Attempt) => call.operation.method === 'GET';

const isStranger = ({ call }: Attempt) => isAddress(call.owner);

const accountOf = ({ call: { account, owner } }: Attempt) => account ?? owner;
