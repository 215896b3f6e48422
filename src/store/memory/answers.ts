import { type BoundedMap, boundedMap } from '../bounded.ts';
import {
  type AccountId,
  type Answers,
  type Entry,
  EVERYTHING,
  type Found,
  foundNowhere,
  type Place,
  type Tag,
  type Versions,
} from '../store.ts';
import type { Marks } from './marks.ts';
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
  readonly versions: Versions;
  readonly shelf: Shelf;
}

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
export class MemoryAnswers implements Answers {
  readonly #marks: Marks;
  readonly #held: BoundedMap<string, Held>;
  readonly #shelves: BoundedMap<AccountId, Shelf>;
  readonly #visitors = boundedMap<AccountId, Shelf>({ max: MAX_VISITORS });
  /** Never repeats within the process, and nothing here outlives it. */
  #lastVersion = 0;

  /** `maxBytes` bounds keys and bodies together. */
  constructor({ maxBytes, marks }: { readonly maxBytes: number; readonly marks: Marks }) {
    this.#marks = marks;
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

  lookup({ account, key, tags }: Place, now = -Infinity): Found {
    if (this.#marks.covers(account, tags, now)) return foundNowhere();
    const versions = versionsOf(this.#shelfOf(account), key, tags);
    const found = this.#held.get(keyOf(account, key));
    return { entry: found?.versions === versions ? found.entry : undefined, versions };
  }

  save({ account, key, tags }: Place, entry: Entry, versions: Versions): boolean {
    if (this.#marks.covers(account, tags, entry.storedAt)) return false;
    const shelf = this.#shelfOf(account);
    const fullKey = keyOf(account, key);
    const known = this.#held.get(fullKey);
    if (versionsOf(shelf, key, tags) !== versions) return false;
    if (known?.versions === versions && known.entry.askedAt > entry.askedAt) return false;
    if (this.#visitors.delete(account)) this.#shelves.set(account, shelf);
    shelf.keys.add(fullKey);
    this.#held.set(fullKey, { entry, versions, shelf });
    const isHeld = this.#held.has(fullKey);
    if (!isHeld) shelf.keys.delete(fullKey); // too large to be held at all
    return isHeld;
  }

  drop({ account, key }: Place): void {
    this.touch(account, [keyTag(key)]);
    this.#held.delete(keyOf(account, key));
  }

  touch(account: AccountId, tags: readonly Tag[]): void {
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

const versionsOf = ({ epoch, versions }: Shelf, key: string, tags: readonly Tag[]): Versions =>
  tags.reduce((text, tag) => `${text}.${versions.get(tag) ?? 0}`, `${epoch}.${versions.get(keyTag(key)) ?? 0}`);
