import { type Change, type KeyQuestion, LEASE_MS, MAX_LEASES } from '../../store/shared/engine.ts';

interface Lease {
  readonly nonce: string;
  /** Of another version it is not waited for: what it fetches will not be kept. */
  readonly version: string;
  readonly until: number;
}

/** In memory only: an object that forgets them costs a call of the upstream. */
export class Leases {
  readonly #leases = new Map<string, Lease>();

  /**
   * For a key without a fresh copy: the nonce of the lease that was taken, or has to be waited for. `isNew`: there is a
   * copy of that version that the instance does not have.
   */
  take(
    { key, lease, waitedFor }: KeyQuestion,
    { version, isNew, now }: { readonly version: string; readonly isNew: boolean; readonly now: number },
  ): string | undefined {
    const held = this.#leases.get(key);
    const isLive = held !== undefined && held.until > now && held.until <= now + LEASE_MS && held.version === version;
    const other = isLive && held.nonce !== lease ? held.nonce : undefined;
    if (waitedFor !== undefined && other === waitedFor) return other;
    if (lease === undefined || (waitedFor !== undefined && isNew)) return undefined;
    if (other !== undefined) return waitedFor === undefined ? other : undefined;
    if (this.#leases.size >= MAX_LEASES && !held) this.#leases.clear();
    this.#leases.set(key, { nonce: lease, version, until: now + LEASE_MS });
    return lease;
  }

  renew({ key, lease }: NonNullable<Change['renewed']>, now: number): void {
    const held = this.#leases.get(key);
    if (held?.nonce === lease) this.#leases.set(key, { ...held, until: now + LEASE_MS });
  }

  end(key: string, nonce: string | undefined): void {
    if (this.#leases.get(key)?.nonce === nonce) this.#leases.delete(key);
  }
}
