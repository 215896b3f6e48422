import { BoundedMap, Holdings, bytesOf } from '../bounded.ts';
import { isAddress, type Owner } from '../owner.ts';
import type { AccountId, NewWrite, WriteAnswer, WriteRecord } from '../store.ts';

interface Kept extends WriteRecord {
  readonly principal: AccountId;
  readonly owner: Owner;
  readonly isPurchase: boolean;
  readonly expiresAt: number;
}

const MAX_BYTES = 67_108_864;
const RECORD_OVERHEAD_BYTES = 500;
/** Bytes of the records that are never evicted. */
const MAX_PINNED_BYTES = 33_554_432;
/** What one owner may have of the room that is left. */
const PINNED_PART = 1 / 16;
/** A longer answer to a purchase is not kept. */
const MAX_PURCHASE_CHARACTERS = 65_536;

/**
 * Idempotency records of one process. An account's records of writes that are under way, of unknown outcome or
 * purchases are pinned, that is never evicted: when there is no room for more, a write is refused rather than sent
 * twice. All other records are evicted by newer ones.
 */
export class MemoryRecords {
  /** In the order in which they were written. */
  readonly #pinned = new Map<string, Kept>();
  readonly #pinnedHoldings = new Holdings({ max: MAX_PINNED_BYTES, part: PINNED_PART });
  readonly #others = new BoundedMap<string, Kept>({
    max: MAX_BYTES,
    sizeOf,
    onGone: (kept, key) => this.#unlist(kept, key),
  });
  /** Keys of the records in the shares of addresses, by account. */
  readonly #unaccepted = new Map<AccountId, Set<string>>();

  /** The record of a key that has been used. */
  peek(write: NewWrite): WriteRecord | undefined {
    const key = keyOf(write);
    const known = this.#pinned.get(key) ?? this.#others.get(key);
    return known && (known.outcome === 'under_way' || known.expiresAt > write.now) ? known : undefined;
  }

  /** @throws GatewayError `store_unavailable` where there is no room */
  claim(write: NewWrite): void {
    this.release(write);
    this.#pinnedHoldings.assertRoom(write.owner, () => this.#removeExpired(write.now));
    this.#keep(keyOf(write), keptOf(write, 'under_way'));
  }

  settle(write: NewWrite, outcome: 'unknown' | WriteAnswer): void {
    const key = keyOf(write);
    const owner = this.#pinned.get(key)?.owner ?? write.owner; // the account may have been accepted meanwhile
    const isLarge = outcome !== 'unknown' && (outcome.text?.length ?? 0) > MAX_PURCHASE_CHARACTERS;
    const kept = keptOf(write, write.isPurchase && isLarge ? 'unknown' : outcome);
    this.#remove(key);
    this.#keep(key, { ...kept, owner });
  }

  /** The account's records are in its own share from now on. */
  accept(account: AccountId): void {
    for (const key of this.#unaccepted.get(account) ?? []) {
      const kept = this.#pinned.get(key) ?? this.#others.peek(key);
      this.#remove(key);
      if (kept) this.#keep(key, { ...kept, owner: account });
    }
  }

  release(write: NewWrite): void {
    this.#remove(keyOf(write));
  }

  usage() {
    return { records: this.#pinned.size + this.#others.size, pinnedRecords: this.#pinned.size };
  }

  /** Removes expired pinned records. But for those under way, and those from an address, the first expire first. */
  #removeExpired(now: number): void {
    for (const [key, { expiresAt, outcome }] of this.#pinned) {
      if (expiresAt > now) return;
      if (outcome !== 'under_way') this.#remove(key);
    }
  }

  #keep(key: string, kept: Kept): void {
    const { outcome, isPurchase, owner } = kept;
    const isPinned = outcome === 'under_way' || isPurchase || (outcome === 'unknown' && !isAddress(owner));
    if (isPinned) this.#pin(key, kept);
    // Of an answer that is too large to keep, the record says at least that the write was sent.
    else if (!this.#others.set(key, kept, owner)) this.#pin(key, { ...kept, outcome: 'unknown' });
    this.#list(kept, key);
  }

  #pin(key: string, kept: Kept): void {
    this.#pinned.set(key, kept);
    this.#pinnedHoldings.add(kept.owner, sizeOf(kept, key));
  }

  #remove(key: string): void {
    const pinned = this.#pinned.get(key);
    if (pinned) {
      this.#pinnedHoldings.add(pinned.owner, -sizeOf(pinned, key));
      this.#unlist(pinned, key);
    }
    this.#pinned.delete(key);
    this.#others.delete(key);
  }

  #list({ principal, owner }: Kept, key: string): void {
    if (!isAddress(owner)) return;
    const keys = this.#unaccepted.get(principal) ?? new Set();
    this.#unaccepted.set(principal, keys.add(key));
  }

  #unlist({ principal }: Kept, key: string): void {
    const keys = this.#unaccepted.get(principal);
    if (keys?.delete(key) && keys.size === 0) this.#unaccepted.delete(principal);
  }
}

const keptOf = (write: NewWrite, outcome: WriteRecord['outcome']): Kept => {
  const { principal, owner, fingerprint, isPurchase, now, keyMs } = write;
  return { principal, owner, fingerprint, isPurchase, expiresAt: now + keyMs, outcome };
};

/** Neither the account's hash nor a key holds a line break. */
const keyOf = ({ principal, key }: NewWrite) => `${principal}\n${key}`;

function sizeOf({ outcome }: WriteRecord, key: string): number {
  const text = typeof outcome === 'object' ? (outcome.text ?? '') : '';
  return bytesOf(key) + bytesOf(text) + RECORD_OVERHEAD_BYTES;
}
