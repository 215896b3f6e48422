import { bytesOf, LRUCache, PART } from './bounded.ts';
import { type AccountId, type CacheKey, type Entry, EVERYTHING, type Found, type Tag, type Version } from './store.ts';

export interface Copy {
  readonly entry: Entry;
  readonly version: Version;
  readonly askedAt: number;
  readonly tags: readonly Tag[];
  /** The view under which a shared store has confirmed it. */
  view?: object | undefined;
}

/** Objects and validators. */
const COPY_BYTES = 800;
/** The map of an account's copies. */
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

  get({ account, key }: CacheKey): Copy | undefined {
    return this.#accounts.get(account)?.get(key);
  }

  /** Returns whether it was kept: not in place of one of the same version that was asked for later. */
  set(key: CacheKey, { version, askedAt }: Pick<Found, 'version' | 'askedAt'>, entry: Entry): boolean {
    const copies = this.#accounts.get(key.account) ?? this.#noCopies();
    const before = copies.peek(key.key);
    if (before?.version === version && before.askedAt > askedAt) return false;
    copies.set(key.key, { entry, version, askedAt, tags: key.tags });
    this.#weigh(key.account, copies);
    return copies.has(key.key) && this.#accounts.has(key.account);
  }

  delete({ account, key }: CacheKey): void {
    const copies = this.#accounts.get(account);
    if (copies?.delete(key)) this.#weigh(account, copies);
  }

  /** Those that have one of these tags. */
  deleteOf(account: AccountId, tags: readonly Tag[]): void {
    const copies = this.#accounts.get(account);
    if (!copies) return;
    const isAll = tags.includes(EVERYTHING);
    const held = [...copies.entries()]; // it is not to be changed while it is iterated
    for (const [key, copy] of held) if (isAll || copy.tags.some((tag) => tags.includes(tag))) copies.delete(key);
    this.#weigh(account, copies);
  }

  usage() {
    const entries = [...this.#accounts.values()].reduce((sum, { size }) => sum + size, 0);
    return { bytes: this.#accounts.calculatedSize, bytesLimit: this.#max, entries, evicted: this.#evicted };
  }

  #noCopies(): LRUCache<string, Copy> {
    return new LRUCache({
      maxSize: this.#maxOfAccount,
      sizeCalculation: ({ entry }, key) => bytesOf(key) + bytesOf(entry.text) + COPY_BYTES,
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
