import { LRUCache } from 'lru-cache';
import { GatewayError } from '../core/errors.ts';
import { isAddress, type Owner } from './owner.ts';

interface Bounds<K, V> {
  /** Entries, or the sum of what `sizeOf` measures. */
  readonly max: number;
  readonly sizeOf?: (value: V, key: K) => number;
  /** Called for what was evicted or deleted, not for what was replaced. */
  readonly onGone?: (value: V, key: K) => void;
}

/** For a map without owners. */
export { LRUCache };

/** The entries of one owner. */
interface Share<K> {
  readonly owner: Owner;
  /** Least recently used first, unless the share is small. */
  readonly keys: Set<K>;
  held: number;
  rank: number;
}

interface Entry<K, V> {
  readonly value: V;
  readonly size: number;
  readonly share: Share<K>;
}

/** A share of at most one of so many parts of the whole is small. */
const PARTS = 1024;
const SMALL = 0;
/** Ranks of addresses are above those of all accounts. */
const ADDRESS = 32;
const RANKS = 2 * ADDRESS;

/**
 * A map that stays within its bound. When it is full, an owner with one of the largest shares loses what it used least
 * recently. Shares are compared in steps of 1.4 times; addresses lose before accounts. If all shares are small, the
 * least recently used entry of all is evicted.
 */
export class BoundedMap<K extends {}, V extends {}> {
  readonly #bounds: Bounds<K, V>;
  readonly #entries: LRUCache<K, Entry<K, V>>;
  readonly #shares = new Map<Owner, Share<K>>();
  /** Shares that are not small, by rank. */
  readonly #ranks = Array.from({ length: RANKS }, () => new Set<Share<K>>());

  constructor(bounds: Bounds<K, V>) {
    this.#bounds = bounds;
    // `maxSize`, since for `max` lru-cache allocates the memory of a full map at once.
    this.#entries = new LRUCache({
      maxSize: Math.max(1, Math.floor(bounds.max)), // lru-cache takes integers only
      sizeCalculation: ({ size }) => size,
      dispose: (entry, key, reason) => {
        entry.share.keys.delete(key);
        this.#weigh(entry.share, -entry.size);
        if (reason !== 'set') bounds.onGone?.(entry.value, key);
      },
    });
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The sum of all sizes. */
  get held(): number {
    return this.#entries.calculatedSize;
  }

  /** `owner`: becomes the owner of the entry. */
  get(key: K, owner?: Owner): V | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    if (owner !== undefined && entry.share.owner !== owner) this.set(key, entry.value, owner);
    else if (entry.share.rank !== SMALL) this.#used(entry.share, key);
    return entry.value;
  }

  peek(key: K): V | undefined {
    return this.#entries.peek(key)?.value;
  }

  /** Returns whether it was kept: what is larger than the whole map is not. */
  set(key: K, value: V, owner: Owner): boolean {
    const { max, sizeOf = () => 1 } = this.#bounds;
    const size = sizeOf(value, key);
    const before = this.#entries.get(key)?.size ?? 0;
    if (size > max) {
      this.delete(key);
      return false;
    }
    const share = this.#shareOf(owner);
    this.#weigh(share, size); // before evicting, so that a large entry evicts its own owner's first
    while (this.held - before + size > max) this.#evict(key);
    this.#entries.set(key, { value, size, share });
    share.keys.add(key);
    return true;
  }

  delete(key: K): boolean {
    return this.#entries.delete(key);
  }

  /** Of this moment, what was used last first. */
  entries(): readonly (readonly [K, V])[] {
    return Array.from(this.#entries.entries(), ([key, { value }]) => [key, value] as const);
  }

  /** Keys of an owner's entries, which may be deleted while they are iterated. */
  keysOf(owner: Owner): Iterable<K> {
    return this.#shares.get(owner)?.keys ?? [];
  }

  get owners(): number {
    return this.#shares.size;
  }

  #shareOf(owner: Owner): Share<K> {
    const known = this.#shares.get(owner);
    if (known) return known;
    const share: Share<K> = { owner, keys: new Set(), held: 0, rank: SMALL };
    this.#shares.set(owner, share);
    return share;
  }

  #used(share: Share<K>, key: K): void {
    share.keys.delete(key);
    share.keys.add(key);
    this.#ranks[share.rank]?.delete(share);
    this.#ranks[share.rank]?.add(share);
  }

  /** Evicts one entry, but never the one that is being set. */
  #evict(kept: K): void {
    for (let rank = RANKS - 1; rank > SMALL; rank--)
      for (const { keys } of this.#ranks[rank] ?? [])
        for (const key of keys) if (key !== kept) return void this.delete(key);
    this.#entries.pop();
  }

  #weigh(share: Share<K>, size: number): void {
    share.held += size;
    if (share.held === 0) this.#shares.delete(share.owner);
    const rank = share.held === 0 ? SMALL : this.#rankOf(share);
    if (rank === share.rank) return;
    this.#ranks[share.rank]?.delete(share);
    if (rank !== SMALL) this.#ranks[rank]?.add(share);
    share.rank = rank;
  }

  #rankOf({ owner, held }: Share<K>): number {
    const parts = (held / this.#bounds.max) * PARTS;
    const steps = parts <= 1 ? 0 : 1 + Math.floor(2 * Math.log2(parts));
    return steps + (isAddress(owner) ? ADDRESS : 0);
  }
}

/** Bytes that V8 takes for a string: one a character, two as soon as one is beyond Latin-1. */
export function bytesOf(text: string): number {
  // oxlint-disable-next-line no-control-regex
  return /[^\u0000-\u00ff]/.test(text) ? text.length * 2 : text.length;
}

const FULL_RETRY_SECONDS = 60;

/**
 * What owners hold of a bounded resource that is not taken back from them. Each may hold a part of what is left, so
 * that there is always some left for other owners.
 */
export class Holdings {
  readonly #held = new Map<Owner, number>();
  readonly #max: number;
  readonly #part: number;
  #total = 0;

  constructor({ max, part }: { readonly max: number; readonly part: number }) {
    this.#max = max;
    this.#part = part;
  }

  hasRoomFor(owner: Owner): boolean {
    return (this.#held.get(owner) ?? 0) < (this.#max - this.#total) * this.#part;
  }

  /**
   * `tidy`: called if there is no room.
   * @throws GatewayError `store_unavailable` if there is none after that either
   */
  assertRoom(owner: Owner, tidy: () => void): void {
    if (this.hasRoomFor(owner)) return;
    tidy();
    if (this.hasRoomFor(owner)) return;
    throw GatewayError.of('store_unavailable', { fault: 'not_sent', retryAfter: FULL_RETRY_SECONDS });
  }

  add(owner: Owner, count: number): void {
    this.#total += count;
    const held = (this.#held.get(owner) ?? 0) + count;
    if (held === 0) this.#held.delete(owner);
    else this.#held.set(owner, held);
  }
}
