import { BoundedMap, Holdings, bytesOf } from '../bounded.ts';
import { isAddress, type Owner } from '../owner.ts';
import type { NewWrite, WriteAnswer, WriteRecord } from '../store.ts';

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
  peek(write: NewWrite): WriteRecord | undefined {
    const key = keyOf(write);
    const known = this.#pinned.get(key) ?? this.#others.get(key);
    return known && (known.outcome === 'under_way' || known.expiresAt > write.now) ? known : undefined;
  }

  /** @throws GatewayError `store_unavailable` where there is no room */
  claim(write: NewWrite): void {
    const { owner, fingerprint, now, keyMs } = write;
    this.release(write);
    this.#pinnedHoldings.assertRoom(owner, () => this.#removeExpired(now));
    this.#pin(keyOf(write), { owner, fingerprint, expiresAt: now + keyMs, outcome: 'under_way' });
  }

  settle(write: NewWrite, outcome: 'unknown' | WriteAnswer): void {
    const { principal, fingerprint, now, keyMs, isPurchase } = write;
    const key = keyOf(write);
    // A purchase that was answered proves that the upstream accepts the account.
    const owner = isPurchase && outcome !== 'unknown' ? principal : write.owner;
    const settled = { owner, fingerprint, expiresAt: now + keyMs, outcome };
    this.#remove(key);
    const isLarge = outcome !== 'unknown' && (outcome.text?.length ?? 0) > MAX_PURCHASE_CHARACTERS;
    const isUnknown = outcome === 'unknown' || (isPurchase && isLarge);
    const isPinned = isPurchase || (isUnknown && !isAddress(owner));
    // Of an answer that is too large to keep, the record says at least that the write was sent.
    const kept: Kept = isUnknown ? { ...settled, outcome: 'unknown' } : settled;
    if (isPinned) this.#pin(key, kept);
    else if (!this.#others.set(key, kept, owner)) this.#pin(key, { ...settled, outcome: 'unknown' });
  }

  release(write: NewWrite): void {
    this.#remove(keyOf(write));
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

  #pin(key: string, kept: Kept): void {
    this.#pinned.set(key, kept);
    this.#pinnedHoldings.add(kept.owner, sizeOf(kept, key));
  }

  #remove(key: string): void {
    const pinned = this.#pinned.get(key);
    if (pinned) this.#pinnedHoldings.add(pinned.owner, -sizeOf(pinned, key));
    this.#pinned.delete(key);
    this.#others.delete(key);
  }
}

/** Neither the account's hash nor a key holds a line break. */
const keyOf = ({ principal, key }: NewWrite) => `${principal}\n${key}`;

function sizeOf({ outcome }: WriteRecord, key: string): number {
  const text = typeof outcome === 'object' ? (outcome.text ?? '') : '';
  return bytesOf(key) + bytesOf(text) + RECORD_OVERHEAD_BYTES;
}
