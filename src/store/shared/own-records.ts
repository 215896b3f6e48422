import { boundedMap } from '../bounded.ts';
import { sizeOf } from '../memory/size.ts';
import type { Claim, WriteAnswer } from '../store.ts';

type Outcome = 'under_way' | 'unknown' | WriteAnswer;

interface Own {
  readonly claim: Claim;
  readonly outcome: Outcome;
}

const MAX_BYTES = 67_108_864;
const OVERHEAD_BYTES = 700;

/** The records that this instance has written, for an engine that comes back empty. */
export class OwnRecords {
  readonly #records = boundedMap<string, Own>({
    max: MAX_BYTES,
    sizeOf: ({ outcome }, key) =>
      sizeOf(key) + OVERHEAD_BYTES + (typeof outcome === 'object' ? sizeOf(outcome.text ?? '') : 0),
  });

  get size(): number {
    return this.#records.size;
  }

  keep(claim: Claim, outcome: Outcome): void {
    this.#records.set(keyOf(claim), { claim, outcome });
  }

  forget(claim: Claim): void {
    if (this.#records.peek(keyOf(claim))?.claim.nonce === claim.nonce) this.#records.delete(keyOf(claim));
  }

  /** Those that are not over yet. */
  *alive(now: number): Generator<Own> {
    for (const key of this.#records.keys()) {
      const own = this.#records.peek(key);
      if (own && own.claim.expiresAt > now) yield own;
    }
  }
}

/** Neither the account's hash nor a key holds a line break. */
const keyOf = ({ account, key }: Claim) => `${account}\n${key}`;
