import { bytesOf, LRUCache, PART } from './bounded.ts';
import type { Note } from './note.ts';
import type { AccountId, CacheKey, Entry, Version } from './port.ts';

export interface Copy {
  readonly entry: Entry;
  readonly version: Version;
  readonly askedAt: number;
  /** The note under which it was found to be valid: while the account has the same one, it still is. */
  confirmed?: Note | undefined;
}

/** Milliseconds. A copy that seems to have been asked for so much later is from before a clock was set back. */
const LATER_MS = 60_000;

/** The objects and validators of a copy take so much. */
const COPY_BYTES = 800;
/** The map of an account's copies takes so much. */
const ACCOUNT_BYTES = 2_048;

/**
 * The copies of answers in this process. Does not know which are fresh, or of which version. An account with more than
 * its part loses its own least recently used ones; when there are too many, the account not used for longest loses all.
 */
export class Copies {
  readonly #accounts: LRUCache<AccountId, LRUCache<string, Copy>>;
  readonly #maxOfAccount: number;
  readonly #max: number;
  #evicted = 0;

  /** `maxBytes` bounds keys and bodies together. */
  constructor(maxBytes: number) {
    this.#maxOfAccount = Math.max(1, Math.floor(maxBytes * PART)); // lru-cache takes integers from 1 only
    this.#max = Math.max(1, Math.floor(maxBytes));
    this.#accounts = new LRUCache({
      maxSize: this.#max,
      sizeCalculation: ({ calculatedSize }) => calculatedSize + ACCOUNT_BYTES,
      dispose: (copies, _, reason) => {
        if (reason === 'evict') this.#evicted += copies.size;
      },
    });
  }

  get(account: AccountId, { key }: CacheKey): Copy | undefined {
    return this.#accounts.get(account)?.get(key);
  }

  /** Returns whether it was kept: not in place of one of the same version that was asked for later. */
  set(account: AccountId, { key }: CacheKey, copy: Copy): boolean {
    const copies = this.#accounts.get(account) ?? this.#noCopies();
    const before = copies.peek(key);
    const laterMs = before?.version === copy.version ? before.askedAt - copy.askedAt : 0;
    if (laterMs > 0 && laterMs < LATER_MS) return false;
    copies.set(key, copy);
    this.#weigh(account, copies);
    return copies.has(key) && this.#accounts.has(account);
  }

  delete(account: AccountId, { key }: CacheKey): void {
    const copies = this.#accounts.get(account);
    if (copies?.delete(key)) this.#weigh(account, copies);
  }

  deleteAll(account: AccountId): void {
    this.#accounts.delete(account);
  }

  usage() {
    const entries = [...this.#accounts.values()].reduce((sum, { size }) => sum + size, 0);
    return { bytes: this.#accounts.calculatedSize, bytesLimit: this.#max, entries, evicted: this.#evicted };
  }

  #noCopies(): LRUCache<string, Copy> {
    return new LRUCache({
      maxSize: this.#maxOfAccount,
      sizeCalculation: ({ entry }, key) =>
        bytesOf(key) + bytesOf(entry.text) + bytesOf(entry.link?.text ?? '') + COPY_BYTES,
      dispose: (_, __, reason) => {
        if (reason === 'evict') this.#evicted++;
      },
    });
  }

  /** An entry of lru-cache keeps the size that it had when it was set. */
  #weigh(account: AccountId, copies: LRUCache<string, Copy>): void {
    this.#accounts.delete(account);
    if (copies.size > 0) this.#accounts.set(account, copies);
  }
}
