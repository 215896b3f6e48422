import { BoundedMap, Holdings, bytesOf } from '../bounded.ts';
import { isAddress, type Owner } from '../owner.ts';
import type { AccountId, NewWrite, WriteAnswer, WriteRecord } from '../store.ts';

interface Kept extends WriteRecord {
  readonly owner: Owner;
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
  readonly #others = new BoundedMap<string, Kept>({ max: MAX_BYTES, sizeOf });

  /** The record of a key that has been used. */
  peek({ principal, now }: NewWrite, key: string): WriteRecord | undefined {
    const fullKey = keyOf(principal, key);
    const known = this.#pinned.get(fullKey) ?? this.#others.get(fullKey);
    return known && (known.outcome === 'under_way' || known.expiresAt > now) ? known : undefined;
  }

  /** @throws GatewayError `store_unavailable` where there is no room */
  claim({ principal, owner, fingerprint, now, keyMs }: NewWrite, key: string): void {
    this.release(principal, key);
    this.#pinnedHoldings.assertRoom(owner, () => this.#removeExpired(now));
    this.#pin(keyOf(principal, key), { owner, fingerprint, expiresAt: now + keyMs, outcome: 'under_way' });
  }

  settle(write: NewWrite, key: string, outcome: 'unknown' | WriteAnswer): void {
    const { principal, fingerprint, now, keyMs, isPurchase } = write;
    const fullKey = keyOf(principal, key);
    // A purchase that was answered proves that the upstream accepts the account.
    const owner = isPurchase && outcome !== 'unknown' ? principal : write.owner;
    const settled = { owner, fingerprint, expiresAt: now + keyMs, outcome };
    this.release(principal, key);
    const isLarge = outcome !== 'unknown' && (outcome.text?.length ?? 0) > MAX_PURCHASE_CHARACTERS;
    const isUnknown = outcome === 'unknown' || (isPurchase && isLarge);
    const isPinned = isPurchase || (isUnknown && !isAddress(owner));
    // Of an answer that is too large to keep, the record says at least that the write was sent.
    const kept: Kept = isUnknown ? { ...settled, outcome: 'unknown' } : settled;
    if (isPinned) this.#pin(fullKey, kept);
    else if (!this.#others.set(fullKey, kept, owner)) this.#pin(fullKey, { ...settled, outcome: 'unknown' });
  }

  release(principal: AccountId, key: string): void {
    this.#remove(keyOf(principal, key));
  }

  usage() {
    return { records: this.#pinned.size + this.#others.size, pinnedRecords: this.#pinned.size };
  }

  /** Removes expired pinned records. Apart from those under way they are in the order in which they expire. */
  #removeExpired(now: number): void {
    for (const [key, { expiresAt, outcome }] of this.#pinned) {
      if (expiresAt > now) return;
      if (outcome !== 'under_way') this.#remove(key);
    }
  }

  #pin(fullKey: string, kept: Kept): void {
    this.#pinned.set(fullKey, kept);
    this.#pinnedHoldings.add(kept.owner, sizeOf(kept, fullKey));
  }

  #remove(fullKey: string): void {
    const pinned = this.#pinned.get(fullKey);
    if (pinned) this.#pinnedHoldings.add(pinned.owner, -sizeOf(pinned, fullKey));
    this.#pinned.delete(fullKey);
    this.#others.delete(fullKey);
  }
}

/** Neither the account's hash nor a key holds a line break. */
const keyOf = (account: AccountId, key: string) => `${account}\n${key}`;

function sizeOf({ outcome }: WriteRecord, key: string): number {
  const text = typeof outcome === 'object' ? (outcome.text ?? '') : '';
  return bytesOf(key) + bytesOf(text) + RECORD_OVERHEAD_BYTES;
}
