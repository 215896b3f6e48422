interface Waiter {
  readonly start: () => void;
}

/** A place in the queue. */
interface Ticket {
  /** Resolves when a slot is the holder's. */
  readonly granted: Promise<void>;
  /** Gives the place up; says whether there was still one to give up. */
  leave(): boolean;
}

/** Slots that accounts share: none has more than its share of them, and those who wait take turns. */
export class FairQueue {
  readonly #share: number;
  readonly #inUse = new Map<string, number>();
  /** In the order of turns; an account that had one goes to the end. */
  readonly #lines = new Map<string, Set<Waiter>>();
  #free: number;
  #waiting = 0;

  /** `share`: slots that one account may have at once. */
  constructor({ slots, share }: { slots: number; share: number }) {
    this.#free = slots;
    this.#share = share;
  }

  get isFull(): boolean {
    return this.#free === 0;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Takes a slot, if the account may have one now. */
  take(account: string): boolean {
    if (this.#free === 0 || !this.#mayHaveMore(account)) return false;
    this.#grant(account);
    return true;
  }

  wait(account: string): Ticket {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter = { start: resolve };
    const line = this.#lines.get(account) ?? new Set();
    this.#lines.set(account, line.add(waiter));
    this.#waiting++;
    return { granted: promise, leave: () => this.#remove(account, waiter) };
  }

  release(account: string): void {
    const left = (this.#inUse.get(account) ?? 1) - 1;
    if (left === 0) this.#inUse.delete(account);
    else this.#inUse.set(account, left);
    this.#free++;
    this.#serveNext();
  }

  #serveNext(): void {
    for (const [account, line] of this.#lines) {
      const [first] = line;
      if (!first || !this.#mayHaveMore(account)) continue;
      this.#remove(account, first);
      if (this.#lines.delete(account)) this.#lines.set(account, line);
      this.#grant(account);
      first.start();
      return;
    }
  }

  #mayHaveMore(account: string): boolean {
    return (this.#inUse.get(account) ?? 0) < this.#share;
  }

  #grant(account: string): void {
    this.#free--;
    this.#inUse.set(account, (this.#inUse.get(account) ?? 0) + 1);
  }

  #remove(account: string, waiter: Waiter): boolean {
    const line = this.#lines.get(account);
    if (!line?.delete(waiter)) return false;
    if (line.size === 0) this.#lines.delete(account);
    this.#waiting--;
    return true;
  }
}
