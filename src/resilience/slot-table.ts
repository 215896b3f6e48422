import { Holdings } from '../store/bounded.ts';
import { isAddress, type Owner } from '../store/owner.ts';
import type { Attempt } from './gates.ts';

/** A place in the queue. */
interface Ticket {
  /** Resolves when the waiter has its slot. */
  readonly granted: Promise<void>;
  /** Leaves the queue; returns false if the waiter was in it no more. */
  leave(): boolean;
}

interface Waiter {
  readonly attempt: Attempt;
  readonly start: () => void;
}

/** The part of all slots that writes may have together, and the part of what is left of it that one owner may have. */
const WRITES_SHARE = 3 / 4;
const WRITES_PART = 1 / 2;
/** The part of all slots up to which unaccepted credentials may take slots from accounts. */
const UNACCEPTED_SHARE = 1 / 8;

/** Waiting calls. Owners take turns, and so do the accounts of an owner; an account's own calls are in order. */
type Queues = Map<Owner, Map<string, Set<Waiter>>>;

/** The slots, of which no account has more than its share. */
export class SlotTable {
  readonly #slots: number;
  readonly #share: number;
  /** Slots of writes are not taken back, so each owner may have only a part of what is left. */
  readonly #writes: Holdings;
  /** By account, the oldest first. */
  readonly #underWay = new Map<string, Attempt[]>();
  readonly #countByOwner = new Map<Owner, number>();
  readonly #queues: Queues = new Map();
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
   * Gives the attempt the slot of another one's longest read, if that was sent before `before`: of the owner that has
   * most slots. Returns that read; none if no owner has more than the attempt's own would then have.
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
    const accounts = this.#queues.get(owner) ?? new Map<string, Set<Waiter>>();
    const queue = accounts.get(accountOf(attempt)) ?? new Set();
    this.#queues.set(owner, accounts.set(accountOf(attempt), queue.add(waiter)));
    this.#waiting++;
    return { granted: promise, leave: () => this.#leave(waiter) };
  }

  /** Does nothing if the attempt has lost its slot. */
  release(attempt: Attempt): void {
    if (this.#remove(attempt)) this.#serveNext();
  }

  #serveNext(): void {
    for (const [owner, accounts] of this.#queues) {
      for (const [account, queue] of accounts) {
        const [first] = queue;
        if (!first || !this.#mayHaveMore(first.attempt)) continue;
        this.#leave(first);
        if (accounts.delete(account)) accounts.set(account, queue);
        if (this.#queues.delete(owner)) this.#queues.set(owner, accounts);
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
    this.#countByOwner.set(owner, (this.#countByOwner.get(owner) ?? 0) + 1);
  }

  #remove(attempt: Attempt): boolean {
    const account = accountOf(attempt);
    const { owner } = attempt.call;
    const own = this.#underWay.get(account);
    const at = own?.indexOf(attempt) ?? -1;
    if (!own || at < 0) return false;
    own.copyWithin(at, at + 1).pop(); // unlike `splice`, keeps no reference to the last one
    if (!isRead(attempt)) this.#writes.add(owner, -1);
    const left = (this.#countByOwner.get(owner) ?? 1) - 1;
    if (own.length === 0) this.#underWay.delete(account);
    if (left === 0) this.#countByOwner.delete(owner);
    else this.#countByOwner.set(owner, left);
    this.#free++;
    return true;
  }

  /**
   * The read whose slot the attempt gets. Credentials that the upstream has not accepted lose slots before accounts do.
   * They take slots from accounts only while all of them together have few.
   */
  #toMakeRoomFor(attempt: Attempt): Attempt | undefined {
    const reads = [...this.#underWay.values()].map((all) => all.find(isRead)).filter((read) => read !== undefined);
    const unaccepted = reads.filter(isUnaccepted);
    const accepted = reads.filter((read) => !isUnaccepted(read));
    if (isUnaccepted(attempt)) {
      const mayTakeFromAccounts = this.#unacceptedSlots() < this.#slots * UNACCEPTED_SHARE;
      return this.#most(unaccepted, attempt) ?? (mayTakeFromAccounts ? this.#most(accepted, attempt) : undefined);
    }
    const haveUnacceptedMore = this.#unacceptedSlots() > this.#held(attempt) + 1;
    return (haveUnacceptedMore ? this.#most(unaccepted) : undefined) ?? this.#most(accepted, attempt);
  }

  /** The read of the owner with most slots; with `than`, only if that attempt's owner would still have fewer with it. */
  #most(reads: readonly Attempt[], than?: Attempt): Attempt | undefined {
    const [first] = reads;
    const most = first && reads.reduce((best, read) => (this.#hasMore(read, best, 0) ? read : best), first);
    return most && (!than || this.#hasMore(most, than, 1)) ? most : undefined;
  }

  /** Whether `one`'s owner has more slots than `other`'s plus `more`; if they have one owner, whether its account has. */
  #hasMore(one: Attempt, other: Attempt, more: number): boolean {
    const [owner, others] = [one.call.owner, other.call.owner];
    const ahead =
      owner === others ? 0 : (this.#countByOwner.get(owner) ?? 0) - (this.#countByOwner.get(others) ?? 0) - more;
    return ahead === 0 ? this.#held(one) - this.#held(other) - more > 0 : ahead > 0;
  }

  /** Slots in use by credentials that the upstream has not accepted. */
  #unacceptedSlots(): number {
    let all = 0;
    for (const [owner, count] of this.#countByOwner) if (isAddress(owner)) all += count;
    return all;
  }

  #held(attempt: Attempt): number {
    return this.#underWay.get(accountOf(attempt))?.length ?? 0;
  }

  #leave(waiter: Waiter): boolean {
    const { owner } = waiter.attempt.call;
    const accounts = this.#queues.get(owner);
    const account = accountOf(waiter.attempt);
    const queue = accounts?.get(account);
    if (!accounts || !queue?.delete(waiter)) return false;
    if (queue.size === 0) accounts.delete(account);
    if (accounts.size === 0) this.#queues.delete(owner);
    this.#waiting--;
    return true;
  }
}

const isRead = ({ call }: Attempt) => call.operation.method === 'GET';

const isUnaccepted = ({ call }: Attempt) => isAddress(call.owner);

const accountOf = ({ call: { account, owner } }: Attempt) => account ?? owner;
