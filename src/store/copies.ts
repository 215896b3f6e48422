import { BoundedMap, bytesOf } from './bounded.ts';
import { type AccountId, type CacheKey, type Entry, EVERYTHING, type Found, type Tag, type Version } from './store.ts';

interface Copy {
  readonly entry: Entry;
  readonly version: Version;
  readonly askedAt: number;
  readonly tags: readonly Tag[];
}

const COPY_OVERHEAD_BYTES = 800; // objects and validators

/** The copies of answers in this process. Does not know which are fresh, or of which version. */
export class Copies {
  readonly #copies: BoundedMap<string, Copy>;

  /** `maxBytes` bounds keys and bodies together. */
  constructor(maxBytes: number) {
    this.#copies = new BoundedMap({
      max: maxBytes,
      sizeOf: ({ entry }, key) => bytesOf(key) + bytesOf(entry.text) + COPY_OVERHEAD_BYTES,
    });
  }

  get(key: CacheKey): Copy | undefined {
    return this.#copies.get(keyOf(key));
  }

  /** Returns whether it was kept: not in place of one of the same version that was asked for later. */
  set(key: CacheKey, { version, askedAt }: Pick<Found, 'version' | 'askedAt'>, entry: Entry): boolean {
    const known = this.#copies.peek(keyOf(key));
    if (known?.version === version && known.askedAt > askedAt) return false;
    return this.#copies.set(keyOf(key), { entry, version, askedAt, tags: key.tags }, key.account);
  }

  delete(key: CacheKey): void {
    this.#copies.delete(keyOf(key));
  }

  /** Those that have one of these tags. */
  deleteOf(account: AccountId, tags: readonly Tag[]): void {
    const isAll = tags.includes(EVERYTHING);
    for (const key of this.#copies.keysOf(account))
      if (isAll || this.#copies.peek(key)?.tags.some((tag) => tags.includes(tag))) this.#copies.delete(key);
  }

  usage() {
    return { bytes: this.#copies.held, entries: this.#copies.size, accounts: this.#copies.owners };
  }
}

/** Account hashes contain no space, so different pairs make different keys. */
const keyOf = ({ account, key }: CacheKey) => `${account} ${key}`;
