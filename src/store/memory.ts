import { LRUCache } from 'lru-cache';
import { type AccountId, type Entry, EVERYTHING, type Store, type Tag, type Versions } from './store.ts';

/** What is known of one account: its versions, and which answers are its. */
interface Shelf {
  epoch: number;
  readonly versions: Map<Tag, number>;
  readonly keys: Set<string>;
}

interface Held {
  readonly entry: Entry;
  readonly versions: Versions;
  readonly shelf: Shelf;
}

/** An account that touches more tags than this starts afresh, which only costs it its cache. */
const MAX_TAGS = 512;
const ENTRY_OVERHEAD_BYTES = 400;
const SHELF_BYTES = 1024;
/** Accounts that hold nothing yet. A flood of made-up credentials fills this and evicts nobody's answers. */
const MAX_VISITORS = 10_000;
const SHELVES_SHARE = 1 / 8;

interface MemoryStoreOptions {
  /** Bound on keys and bodies together, in bytes. */
  readonly maxBytes: number;
}

/** The store of one process. A bounded map and nothing more: time is the cache's business. */
export function memoryStore({ maxBytes }: MemoryStoreOptions): Store {
  let lastVersion = 0; // never repeats within the process, and nothing here outlives it
  const held = new LRUCache<string, Held>({
    maxSize: Math.max(1, Math.floor(maxBytes * (1 - SHELVES_SHARE))),
    sizeCalculation: ({ entry }, key) => sizeOf(key) + sizeOf(entry.text) + ENTRY_OVERHEAD_BYTES,
    dispose: ({ shelf }, key, reason) => {
      if (reason !== 'set') shelf.keys.delete(key);
    },
  });
  const shelves = new LRUCache<AccountId, Shelf>({
    max: Math.max(16, Math.ceil((maxBytes * SHELVES_SHARE) / SHELF_BYTES)),
    dispose: (shelf) => empty(shelf),
  });
  const visitors = new LRUCache<AccountId, Shelf>({ max: MAX_VISITORS });

  const shelfOf = (account: AccountId): Shelf => {
    const known = shelves.get(account) ?? visitors.get(account);
    if (known) return known;
    const shelf = { epoch: ++lastVersion, versions: new Map<Tag, number>(), keys: new Set<string>() };
    visitors.set(account, shelf);
    return shelf;
  };

  const settle = (account: AccountId, shelf: Shelf) => {
    if (visitors.delete(account)) shelves.set(account, shelf);
  };

  const empty = (shelf: Shelf) => {
    for (const key of shelf.keys) held.delete(key); // which takes it out of the set that is walked
  };

  const renew = (shelf: Shelf) => {
    shelf.epoch = ++lastVersion;
    shelf.versions.clear();
    empty(shelf);
  };

  return {
    lookup({ account, key, tags }) {
      const shelf = shelfOf(account);
      const versions = versionsOf(shelf, tags);
      const found = held.get(keyOf(account, key));
      return { entry: found?.versions === versions ? found.entry : undefined, versions };
    },
    save({ account, key, tags }, entry, versions) {
      const shelf = shelfOf(account);
      if (versionsOf(shelf, tags) !== versions) return false;
      settle(account, shelf);
      const fullKey = keyOf(account, key);
      shelf.keys.add(fullKey);
      held.set(fullKey, { entry, versions, shelf });
      if (!held.has(fullKey)) shelf.keys.delete(fullKey); // too large to be held at all
      return held.has(fullKey);
    },
    drop({ account, key }) {
      held.delete(keyOf(account, key));
    },
    touch(account, tags) {
      const shelf = shelfOf(account);
      if (tags.includes(EVERYTHING) || shelf.versions.size + tags.length > MAX_TAGS) renew(shelf);
      else for (const tag of tags) shelf.versions.set(tag, ++lastVersion);
    },
  };
}

/** The account hash has a fixed alphabet without a space, so no two pairs make one key. */
const keyOf = (account: AccountId, key: string) => `${account} ${key}`;

const versionsOf = ({ epoch, versions }: Shelf, tags: readonly Tag[]): Versions =>
  tags.reduce((text, tag) => `${text}.${versions.get(tag) ?? 0}`, String(epoch));

/** Bytes that V8 takes for a string: one a character, two as soon as one is beyond Latin-1. */
function sizeOf(text: string): number {
  // oxlint-disable-next-line no-control-regex
  return /[^\u0000-\u00ff]/.test(text) ? text.length * 2 : text.length;
}
