import { BoundedMap, bytesOf } from '../bounded.ts';
import type { Owner } from '../owner.ts';
import { type CacheKey, type Entry, EVERYTHING, type Found, type Tag } from '../store.ts';
import type { MemoryAccounts } from './accounts.ts';

interface Copy {
  /** Absent if the answer was dropped: then an answer that was asked for before is not kept either. */
  readonly entry: Entry | undefined;
  readonly askedAt: number;
  readonly tags: readonly Tag[];
}

type Keyed = Pick<CacheKey, 'account' | 'key' | 'tags'>;

const COPY_OVERHEAD_BYTES = 800; // objects and validators
const MAX_TAGS = 16;

/** Copies of answers by `copyKey`; `max` bounds keys and bodies together. */
export const copyMap = <C extends { readonly entry: Entry | undefined }>(
  max: number,
  onGone?: (copy: C, key: string) => void,
) =>
  new BoundedMap<string, C>({
    max,
    sizeOf: ({ entry }, key) => bytesOf(key) + (entry ? bytesOf(entry.text) : 0) + COPY_OVERHEAD_BYTES,
    ...(onGone && { onGone }),
  });

/** Account hashes contain no space, so different pairs make different keys. */
export const copyKey = ({ account, key }: Pick<CacheKey, 'account' | 'key'>) => `${account} ${key}`;

/** Cached answers of one process. Does not know how long they are fresh: that is up to the cache. */
export class MemoryCopies {
  readonly #copies: BoundedMap<string, Copy>;
  readonly #accounts: MemoryAccounts;
  /** Number of the last lookup. */
  #last = 0;

  constructor(maxBytes: number, accounts: MemoryAccounts) {
    this.#accounts = accounts;
    this.#copies = copyMap(maxBytes, ({ entry }, key) => {
      if (!entry) this.#renew(key.slice(0, key.indexOf(' ')), [EVERYTHING]);
    });
  }

  find(key: Keyed): Entry | undefined {
    return this.#copies.get(copyKey(key))?.entry;
  }

  /** `owner`: who the account's versions are counted for. Copies are counted for the account itself. */
  lookup(key: Keyed, owner: Owner, mayBeKept: boolean): Found {
    const version = this.#accounts.versionsOf(key.account, owner).of(key.tags);
    return { entry: mayBeKept ? this.find(key) : undefined, version, askedAt: ++this.#last };
  }

  /** Whether what was found is still valid. */
  holds(key: Keyed, { version, askedAt }: Found): boolean {
    const known = this.#copies.peek(copyKey(key));
    const isDropped = known !== undefined && !known.entry && known.askedAt > askedAt;
    return !isDropped && this.#accounts.knownVersions(key.account)?.of(key.tags) === version;
  }

  save(key: Keyed, found: Found, entry: Entry): boolean {
    const { askedAt } = found;
    const isOlder = (this.#copies.peek(copyKey(key))?.askedAt ?? 0) > askedAt;
    if (isOlder || !this.holds(key, found)) return false;
    return this.#copies.set(copyKey(key), { entry, askedAt, tags: key.tags }, key.account);
  }

  /** Removes one answer, and invalidates reads of it that are under way. */
  drop(key: Keyed): void {
    const dropped = { entry: undefined, askedAt: ++this.#last, tags: key.tags };
    if (!this.#copies.set(copyKey(key), dropped, key.account)) this.#renew(key.account, [EVERYTHING]);
  }

  /** Invalidates every answer, and every read under way, that has one of these tags. */
  invalidate(account: string, tags: readonly Tag[]): void {
    const isAll = tags.includes(EVERYTHING);
    for (const key of this.#copies.keysOf(account))
      if (isAll || this.#copies.peek(key)?.tags.some((tag) => tags.includes(tag))) this.#copies.delete(key);
    this.#renew(account, tags);
  }

  usage() {
    return { bytes: this.#copies.held, entries: this.#copies.size };
  }

  /** Invalidates reads under way. */
  #renew(account: string, tags: readonly Tag[]): void {
    this.#accounts.knownVersions(account)?.renew(tags, MAX_TAGS);
  }
}
