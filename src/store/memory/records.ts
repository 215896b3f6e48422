import { GatewayError } from '../../core/errors.ts';
import { BoundedMap, Holdings } from '../bounded.ts';
import { isAddress, type Owner } from '../owner.ts';
import type { AccountId, NewWrite, WriteAnswer, WriteRecord } from '../store.ts';
import { sizeOf } from './size.ts';

interface Kept extends WriteRecord {
  readonly owner: Owner;
  readonly expiresAt: number;
}

const MAX_BYTES = 67_108_864;
const RECORD_OVERHEAD_BYTES = 500;
/** Of those that are never evicted, in bytes. */
const MAX_FIRM = 33_554_432;
const FIRM_PART = 1 / 16;
/** Characters of the answer of a purchase that is kept. */
const MAX_PURCHASE = 65_536;
const FULL_RETRY_SECONDS = 60;

/**
 * Records of one process. Of an account, what is under way, of unknown outcome or a purchase is never evicted: where
 * there is no room for more, a write is refused rather than sent twice. All others give way to newer ones.
 */
export class MemoryRecords {
  /** In the order in which they were written. */
  readonly #firm = new Map<string, Kept>();
  readonly #firmHoldings = new Holdings({ max: MAX_FIRM, part: FIRM_PART });
  readonly #others = new BoundedMap<string, Kept>({
    max: MAX_BYTES,
    sizeOf: bytesOf,
  });

  /** What is known of a key that is taken. */
  peek({ principal, now }: NewWrite, key: string): WriteRecord | undefined {
    const fullKey = keyOf(principal, key);
    const known = this.#firm.get(fullKey) ?? this.#others.get(fullKey);
    return known && (known.outcome === 'under_way' || known.expiresAt > now) ? known : undefined;
  }

  /** @throws GatewayError `store_unavailable` where there is no room */
  claim({ principal, owner, fingerprint, now, keyMs }: NewWrite, key: string): void {
    this.release(principal, key);
    if (!this.#firmHoldings.hasRoomFor(owner)) this.#forgetExpired(now);
    if (!this.#firmHoldings.hasRoomFor(owner)) {
      throw GatewayError.of('store_unavailable', { fault: 'not_sent', retryAfter: FULL_RETRY_SECONDS });
    }
    this.#keepFirm(keyOf(principal, key), { owner, fingerprint, expiresAt: now + keyMs, outcome: 'under_way' });
  }

  settle(write: NewWrite, key: string, outcome: 'unknown' | WriteAnswer): void {
    const { principal, fingerprint, now, keyMs, isPurchase } = write;
    const fullKey = keyOf(principal, key);
    // Who has bought is accepted.
    const owner = isPurchase && outcome !== 'unknown' ? principal : write.owner;
    const settled = { owner, fingerprint, expiresAt: now + keyMs, outcome };
    this.release(principal, key);
    const isLarge = outcome !== 'unknown' && (outcome.text?.length ?? 0) > MAX_PURCHASE;
    const isUnknown = outcome === 'unknown' || (isPurchase && isLarge);
    const isFirm = isPurchase || (isUnknown && !isAddress(owner));
    // An answer too large to be held leaves at least that there was one.
    const kept: Kept = isUnknown ? { ...settled, outcome: 'unknown' } : settled;
    if (isFirm) this.#keepFirm(fullKey, kept);
    else if (!this.#others.set(fullKey, kept, owner)) this.#keepFirm(fullKey, { ...settled, outcome: 'unknown' });
  }

  release(principal: AccountId, key: string): void {
    this.#forget(keyOf(principal, key));
  }

  usage() {
    return { records: this.#firm.size + this.#others.size, firmRecords: this.#firm.size };
  }

  /** Of the firm ones; but for those under way they stand in the order of their time. */
  #forgetExpired(now: number): void {
    for (const [key, { expiresAt, outcome }] of this.#firm) {
      if (expiresAt > now) return;
      if (outcome !== 'under_way') this.#forget(key);
    }
  }

  #keepFirm(fullKey: string, kept: Kept): void {
    this.#firm.set(fullKey, kept);
    this.#firmHoldings.add(kept.owner, bytesOf(kept, fullKey));
  }

  #forget(fullKey: string): void {
    const firm = this.#firm.get(fullKey);
    if (firm) this.#firmHoldings.add(firm.owner, -bytesOf(firm, fullKey));
    this.#firm.delete(fullKey);
    this.#others.delete(fullKey);
  }
}

/** Neither the account's hash nor a key holds a line break. */
const keyOf = (account: AccountId, key: string) => `${account}\n${key}`;

function bytesOf({ outcome }: WriteRecord, key: string): number {
  const text = typeof outcome === 'object' ? (outcome.text ?? '') : '';
  return sizeOf(key) + sizeOf(text) + RECORD_OVERHEAD_BYTES;
}
