import { BoundedMap } from '../bounded.ts';
import type { Owner } from '../owner.ts';
import { type AccountId, type CacheKey, type Entry, EVERYTHING, type Found, type Tag, type Version } from '../store.ts';
import { sizeOf } from './size.ts';

/** Versions of one account. Reads under way are invalid once theirs has changed. */
interface Account {
  epoch: number;
  readonly tags: Map<Tag, number>;
}

interface Copy {
  /** Absent if the answer was dropped: then an answer that was asked for before is not kept either. */
  readonly entry: Entry | undefined;
  readonly askedAt: number;
  readonly tags: readonly Tag[];
  /** When its account was last noted to be in use. */
  usedAt: number;
}

type Keyed = Pick<CacheKey, 'account' | 'key' | 'tags'>;

const COPY_OVERHEAD_BYTES = 800; // objects and validators
const ACCOUNT_BYTES = 1_024;
const ACCOUNTS_SHARE = 1 / 8;
/** Accounts without a copy count too, so that there is room for some even in a small cache. */
const LEAST_ACCOUNTS = 10_000;
const MAX_TAGS = 16;
const USED_MS = 1_000;

/** Cached answers of one process. Does not know how long they are fresh: that is up to the cache. */
export class MemoryCopies {
  readonly #copies: BoundedMap<string, Copy>;
  readonly #accounts: BoundedMap<AccountId, Account>;
  /** Last number given to a version or a lookup. Numbers never repeat within the process. */
  #last = 0;

  /** `maxBytes` bounds keys and bodies together. */
  constructor({ maxBytes }: { readonly maxBytes: number }) {
    this.#copies = new BoundedMap({
      max: Math.floor(maxBytes * (1 - ACCOUNTS_SHARE)),
      sizeOf: ({ entry }, key) => sizeOf(key) + (entry ? sizeOf(entry.text) : 0) + COPY_OVERHEAD_BYTES,
      onGone: ({ entry }, key) => {
        if (!entry) this.#renew(this.#accounts.peek(key.slice(0, key.indexOf(' '))));
      },
    });
    this.#accounts = new BoundedMap({
      max: LEAST_ACCOUNTS + Math.floor((maxBytes * ACCOUNTS_SHARE) / ACCOUNT_BYTES),
      onGone: (_, account) => this.#empty(account),
    });
  }

  /** A copy alone. That its account is in use is noted now and then: of many accounts each look costs a cache miss. */
  find(key: Keyed, owner: Owner, now: number): Entry | undefined {
    const copy = this.#copies.get(keyOf(key));
    if (!copy?.entry) return undefined;
    if (now - copy.usedAt > USED_MS) {
      copy.usedAt = now;
      this.#accounts.get(key.account, owner);
    }
    return copy.entry;
  }

  /** `owner`: who the account's versions are counted for. Copies are counted for the account itself. */
  lookup(key: Keyed, owner: Owner, mayBeKept = true): Found {
    const version = versionOf(this.#accountOf(key.account, owner), key.tags);
    const entry = mayBeKept ? this.#copies.get(keyOf(key))?.entry : undefined;
    return { entry, version, askedAt: ++this.#last };
  }

  /** Whether what was found is still valid. */
  holds(key: Keyed, { version, askedAt }: Found): boolean {
    const known = this.#copies.peek(keyOf(key));
    const isDropped = known !== undefined && !known.entry && known.askedAt > askedAt;
    return !isDropped && this.#versionOf(key) === version;
  }

  save(key: Keyed, { version, askedAt }: Found, entry: Entry): boolean {
    const known = this.#copies.peek(keyOf(key));
    if (this.#versionOf(key) !== version || (known && known.askedAt > askedAt)) return false;
    return this.#copies.set(keyOf(key), { entry, askedAt, tags: key.tags, usedAt: 0 }, key.account);
  }

  /** Removes one answer, and invalidates reads of it that are under way. */
  drop(key: Keyed): void {
    const dropped = { entry: undefined, askedAt: ++this.#last, tags: key.tags, usedAt: 0 };
    if (!this.#copies.set(keyOf(key), dropped, key.account)) this.#renew(this.#accounts.peek(key.account));
  }

  /** Invalidates every answer, and every read under way, that has one of these tags. */
  invalidate(account: AccountId, tags: readonly Tag[]): void {
    const known = this.#accounts.get(account);
    if (tags.includes(EVERYTHING)) {
      this.#renew(known);
      this.#empty(account);
      return;
    }
    for (const key of this.#copies.keysOf(account))
      if (this.#copies.peek(key)?.tags.some((tag) => tags.includes(tag))) this.#copies.delete(key);
    for (const tag of tags) known?.tags.set(tag, ++this.#last);
    if (known && known.tags.size > MAX_TAGS) this.#renew(known);
  }

  usage() {
    return { bytes: this.#copies.held, entries: this.#copies.size, accounts: this.#accounts.size };
  }

  #accountOf(account: AccountId, owner: Owner): Account {
    const known = this.#accounts.get(account, owner);
    if (known) return known;
    const made = { epoch: ++this.#last, tags: new Map<Tag, number>() };
    this.#accounts.set(account, made, owner);
    return made;
  }

  /** Undefined for an account that was evicted: what was found of it before is then invalid. */
  #versionOf({ account, tags }: Keyed): Version | undefined {
    const known = this.#accounts.peek(account);
    return known && versionOf(known, tags);
  }

  /** Invalidates all reads under way. */
  #renew(account: Account | undefined): void {
    if (!account) return;
    account.epoch = ++this.#last;
    account.tags.clear();
  }

  #empty(account: AccountId): void {
    for (const key of this.#copies.keysOf(account)) this.#copies.delete(key);
  }
}

/** Account hashes contain no space, so different pairs make different keys. */
const keyOf = ({ account, key }: Keyed) => `${account} ${key}`;

const versionOf = ({ epoch, tags: known }: Account, tags: readonly Tag[]): Version =>
  tags.reduce((text, tag) => `${text}.${known.get(tag) ?? 0}`, String(epoch));
