import { GatewayError } from '../../core/errors.ts';
import { boundedMap } from '../bounded.ts';
import type { AccountId, NewWrite, WriteAnswer, WriteRecord } from '../store.ts';
import { sizeOf } from './size.ts';

interface Kept extends WriteRecord {
  readonly account: AccountId;
  readonly expiresAt: number;
}

const MAX_ANSWERED_BYTES = 67_108_864;
const RECORD_OVERHEAD_BYTES = 500;
const MAX_FIRM = 20_000;
/** Of one account: who writes more than this in a day loses its own oldest answers, not those of others. */
const MAX_OF_ACCOUNT = 1_000;
/** Characters of the answer of a purchase that is kept. */
const MAX_PURCHASE = 65_536;
const FULL_RETRY_SECONDS = 60;

/**
 * Records of one process. What is under way, of unknown outcome or a purchase is never evicted: where there is no room for
 * more, a write is refused rather than sent twice. Other answered ones give way to newer ones.
 */
export class MemoryRecords {
  /** In the order in which they were written. */
  readonly #firm = new Map<string, Kept>();
  readonly #answered = boundedMap<string, Kept>({
    max: MAX_ANSWERED_BYTES,
    sizeOf: (record, key) => sizeOf(key) + answerSizeOf(record) + RECORD_OVERHEAD_BYTES,
    onGone: ({ account }, key) => this.#unlist(account, key),
  });
  /** Keys of each account, oldest first. */
  readonly #keys = new Map<AccountId, Set<string>>();

  /** What is known of a key that is taken. */
  peek({ principal, now }: NewWrite, key: string): WriteRecord | undefined {
    const fullKey = keyOf(principal, key);
    const known = this.#firm.get(fullKey) ?? this.#answered.get(fullKey);
    return known && (known.outcome === 'under_way' || known.expiresAt > now) ? known : undefined;
  }

  /** @throws GatewayError `store_unavailable` where there is no room */
  claim({ principal: account, fingerprint, now, keyMs }: NewWrite, key: string): void {
    const fullKey = keyOf(account, key);
    this.#forget(account, fullKey);
    this.#makeRoom(account, now);
    this.#firm.set(fullKey, { account, fingerprint, expiresAt: now + keyMs, outcome: 'under_way' });
    this.#keys.set(account, (this.#keys.get(account) ?? new Set()).add(fullKey));
  }

  settle(write: NewWrite, key: string, outcome: 'unknown' | WriteAnswer): void {
    const { principal: account, fingerprint, now, keyMs, isPurchase } = write;
    const fullKey = keyOf(account, key);
    const settled = { account, fingerprint, expiresAt: now + keyMs, outcome };
    const isSmall = outcome !== 'unknown' && (outcome.text?.length ?? 0) <= MAX_PURCHASE;
    if (isPurchase && isSmall) return void this.#firm.set(fullKey, settled);
    if (!isPurchase && outcome !== 'unknown') this.#answered.set(fullKey, settled);
    // An answer too large to be held leaves at least that there was one.
    if (this.#answered.has(fullKey)) this.#firm.delete(fullKey);
    else this.#firm.set(fullKey, { ...settled, outcome: 'unknown' });
  }

  release(account: AccountId, key: string): void {
    this.#forget(account, keyOf(account, key));
  }

  usage() {
    return { records: this.#firm.size + this.#answered.size, firmRecords: this.#firm.size };
  }

  /** @throws GatewayError `store_unavailable` */
  #makeRoom(account: AccountId, now: number): void {
    const own = this.#keys.get(account);
    if (own && own.size >= MAX_OF_ACCOUNT) this.#forgetFirst(own, now);
    if (this.#firm.size >= MAX_FIRM) this.#forgetFirst(this.#expired(now), now);
  }

  /** Of the firm ones; they stand in the order of their time. */
  *#expired(now: number): Generator<string> {
    for (const [key, { expiresAt }] of this.#firm) {
      if (expiresAt > now) return;
      yield key;
    }
  }

  /** The first that may go: one that may be evicted, or that is over. */
  #forgetFirst(keys: Iterable<string>, now: number): void {
    for (const key of keys) {
      const evictable = this.#answered.peek(key);
      const kept = evictable ?? this.#firm.get(key);
      const isOver = kept?.outcome !== 'under_way' && (kept?.expiresAt ?? 0) <= now;
      if (kept && (evictable || isOver)) return this.#forget(kept.account, key);
    }
    throw GatewayError.of('store_unavailable', { fault: 'not_sent', retryAfter: FULL_RETRY_SECONDS });
  }

  #forget(account: AccountId, fullKey: string): void {
    this.#firm.delete(fullKey);
    this.#answered.delete(fullKey);
    this.#unlist(account, fullKey);
  }

  #unlist(account: AccountId, fullKey: string): void {
    const keys = this.#keys.get(account);
    keys?.delete(fullKey);
    if (keys?.size === 0) this.#keys.delete(account);
  }
}

/** Neither the account's hash nor a key holds a line break. */
const keyOf = (account: AccountId, key: string) => `${account}\n${key}`;

const answerSizeOf = ({ outcome }: WriteRecord) =>
  typeof outcome === 'object' && outcome.text !== null ? sizeOf(outcome.text) : 0;
