import { type BoundedMap, boundedMap } from '../bounded.ts';
import { type AccountId, type CacheKey, type Entry, EVERYTHING, type Found, type Tag, type Version } from '../store.ts';
import { sizeOf } from './size.ts';

/** What is known of one account: its versions, and which answers are its. */
interface Shelf {
  epoch: number;
  tagBytes: number;
  readonly versions: Map<Tag, number>;
  readonly keys: Set<string>;
}

interface Held {
  readonly entry: Entry;
  readonly version: Version;
  readonly askedAt: number;
  readonly shelf: Shelf;
}

type Keyed = Pick<CacheKey, 'account' | 'key' | 'tags'>;

/** An account with more tags than this starts afresh, which only costs it its cache. */
const MAX_TAG_BYTES = 1024;
const MAX_VISITOR_TAG_BYTES = 256;
const ENTRY_OVERHEAD_BYTES = 800; // its object, its validators
const SHELF_BYTES = 1024;
const MIN_SHELVES = 16;
const SHELVES_SHARE = 1 / 8;
/** Accounts that hold nothing yet. A flood of made-up credentials fills this and evicts nobody's answers. */
const MAX_VISITORS = 10_000;

/** Cached answers of one process. Bounded maps and nothing more: time is the cache's business. */
export class MemoryCopies {
  readonly #held: BoundedMap<string, Held>;
  readonly #shelves: BoundedMap<AccountId, Shelf>;
  readonly #visitors = boundedMap<AccountId, Shelf>({ max: MAX_VISITORS });
  /** Never repeats within the process, and nothing here outlives it. */
  #lastVersion = 0;
  #lastAskedAt = 0;

  /** `maxBytes` bounds keys and bodies together. */
  constructor({ maxBytes }: { readonly maxBytes: number }) {
    this.#held = boundedMap({
      max: Math.max(1, Math.floor(maxBytes * (1 - SHELVES_SHARE))),
      sizeOf: ({ entry }, key) => sizeOf(key) + sizeOf(entry.text) + ENTRY_OVERHEAD_BYTES,
      onGone: ({ shelf }, key) => shelf.keys.delete(key),
    });
    this.#shelves = boundedMap({
      max: Math.max(MIN_SHELVES, Math.ceil((maxBytes * SHELVES_SHARE) / SHELF_BYTES)),
      onGone: (shelf) => this.#empty(shelf),
    });
  }

  lookup({ account, key, tags }: Keyed): Found {
    const version = versionOf(this.#shelfOf(account), key, tags);
    const held = this.#held.get(keyOf(account, key));
    return { entry: held?.version === version ? held.entry : undefined, version, askedAt: ++this.#lastAskedAt };
  }

  holds({ account, key, tags }: Keyed, version: Version): boolean {
    return versionOf(this.#shelfOf(account), key, tags) === version;
  }

  save({ account, key, tags }: Keyed, { version, askedAt }: Found, entry: Entry): boolean {
    const shelf = this.#shelfOf(account);
    const fullKey = keyOf(account, key);
    const known = this.#held.get(fullKey);
    if (versionOf(shelf, key, tags) !== version) return false;
    if (known?.version === version && known.askedAt > askedAt) return false;
    if (this.#visitors.delete(account)) this.#shelves.set(account, shelf);
    shelf.keys.add(fullKey);
    this.#held.set(fullKey, { entry, version, askedAt, shelf });
    const isHeld = this.#held.has(fullKey);
    if (!isHeld) shelf.keys.delete(fullKey); // too large to be held at all
    return isHeld;
  }

  /** Forgets one answer, and makes reads of it that are under way worthless. */
  drop({ account, key }: Keyed): void {
    this.invalidate(account, [keyTag(key)]);
    this.#held.delete(keyOf(account, key));
  }

  /** Makes every answer with one of these tags, and every read under way, worthless. */
  invalidate(account: AccountId, tags: readonly Tag[]): void {
    if (tags.length === 0) return;
    const shelf = this.#shelfOf(account);
    for (const tag of tags) {
      if (!shelf.versions.has(tag)) shelf.tagBytes += tag.length;
      shelf.versions.set(tag, ++this.#lastVersion);
    }
    const isTooMuch = shelf.tagBytes > (shelf.keys.size > 0 ? MAX_TAG_BYTES : MAX_VISITOR_TAG_BYTES);
    if (isTooMuch || tags.includes(EVERYTHING)) this.#renew(shelf);
  }

  usage() {
    const accounts = this.#shelves.size + this.#visitors.size;
    return { bytes: this.#held.calculatedSize, entries: this.#held.size, accounts };
  }

  #shelfOf(account: AccountId): Shelf {
    const known = this.#shelves.get(account) ?? this.#visitors.get(account);
    if (known) return known;
    const shelf: Shelf = { epoch: ++this.#lastVersion, tagBytes: 0, versions: new Map(), keys: new Set() };
    this.#visitors.set(account, shelf);
    return shelf;
  }

  #renew(shelf: Shelf): void {
    shelf.epoch = ++this.#lastVersion;
    shelf.versions.clear();
    shelf.tagBytes = 0;
    this.#empty(shelf);
  }

  #empty(shelf: Shelf): void {
    for (const key of shelf.keys) this.#held.delete(key); // which takes it out of the set that is walked
  }
}

/** The account hash has a fixed alphabet without a space, so no two pairs make one key. */
const keyOf = (account: AccountId, key: string) => `${account} ${key}`;

/** For answers that are forgotten one by one, the key counts as a tag too. */
const keyTag = (key: string): Tag => `=${key}`;

const versionOf = ({ epoch, versions }: Shelf, key: string, tags: readonly Tag[]): Version =>
  tags.reduce((text, tag) => `${text}.${versions.get(tag) ?? 0}`, `${epoch}.${versions.get(keyTag(key)) ?? 0}`);
