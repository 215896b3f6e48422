import { GatewayError } from '../../core/errors.ts';
import { boundedMap } from '../bounded.ts';
import type { Claim, Records, WriteAnswer, WriteRecord } from '../store.ts';
import { sizeOf } from './size.ts';

interface Kept extends WriteRecord {
  readonly expiresAt: number;
}

const MAX_ANSWERED_BYTES = 67_108_864;
const RECORD_OVERHEAD_BYTES = 500;
const MAX_FIRM = 20_000;
const FULL_RETRY_SECONDS = 60;

/**
 * Records of one process. What is under way or of unknown outcome is never evicted: where there is no room for more,
 * a write is refused rather than sent twice. Answered ones give way to newer ones.
 */
export class MemoryRecords implements Records {
  /** In the order in which they were written. */
  readonly #firm = new Map<string, Kept>();
  readonly #answered = boundedMap<string, Kept>({
    maxSize: MAX_ANSWERED_BYTES,
    sizeOf: (record, key) => sizeOf(key) + answerSizeOf(record) + RECORD_OVERHEAD_BYTES,
  });

  claim(claim: Claim): WriteRecord | undefined {
    const key = keyOf(claim);
    const known = this.#firm.get(key) ?? this.#answered.get(key);
    if (known && (known.outcome === 'under_way' || known.expiresAt > claim.now)) return known;
    this.#answered.delete(key);
    this.#firm.delete(key);
    if (this.#firm.size >= MAX_FIRM) this.#makeRoom(claim.now);
    const { fingerprint, expiresAt } = claim;
    this.#firm.set(key, { fingerprint, expiresAt, outcome: 'under_way' });
    return undefined;
  }

  settle(claim: Claim, outcome: 'unknown' | WriteAnswer): void {
    const { fingerprint, expiresAt } = claim;
    const key = keyOf(claim);
    const settled = { fingerprint, expiresAt, outcome };
    if (outcome === 'unknown') return void this.#firm.set(key, settled);
    this.#answered.set(key, settled);
    // An answer too large to be held leaves at least that there was one.
    if (this.#answered.has(key)) this.#firm.delete(key);
    else this.#firm.set(key, { ...settled, outcome: 'unknown' });
  }

  release(claim: Claim): void {
    this.#firm.delete(keyOf(claim));
  }

  usage() {
    return { records: this.#firm.size + this.#answered.size, firmRecords: this.#firm.size };
  }

  /** @throws GatewayError `store_unavailable` */
  #makeRoom(now: number): void {
    for (const [key, { outcome, expiresAt }] of this.#firm) {
      if (outcome === 'unknown' && expiresAt <= now) this.#firm.delete(key);
    }
    if (this.#firm.size >= MAX_FIRM) throw GatewayError.of('store_unavailable', { retryAfter: FULL_RETRY_SECONDS });
  }
}

/** Neither the account's hash nor a key holds a line break. */
const keyOf = ({ account, key }: Claim) => `${account}\n${key}`;

const answerSizeOf = ({ outcome }: WriteRecord) =>
  typeof outcome === 'object' && outcome.text !== null ? sizeOf(outcome.text) : 0;
