import { BoundedMap } from '../bounded.ts';
import type { AccountId, Holder, SessionState } from '../store.ts';

/** Each takes some hundred bytes. */
const MAX_REVOKED = 100_000;

/** What this process knows of revoked sessions. */
export class MemorySessions {
  readonly #revoked = new BoundedMap<string, true>({ max: MAX_REVOKED });
  readonly #epochs = new BoundedMap<AccountId, string>({ max: MAX_REVOKED });

  revoke(id: string, { owner }: Pick<Holder, 'owner'>): void {
    this.#revoked.set(id, true, owner);
  }

  /** From now on sessions of the account have another epoch. */
  renew({ principal, owner }: Holder, epoch: string): void {
    this.#epochs.set(principal, epoch, owner);
  }

  /** The epoch that the shared store has said. */
  learn({ principal, owner }: Holder, epoch: string): void {
    if (epoch !== '' && this.#epochs.peek(principal) !== epoch) this.#epochs.set(principal, epoch, owner);
  }

  stateOf(account: AccountId, id: string): SessionState {
    return { isRevoked: this.#revoked.peek(id) === true, epoch: this.#epochs.peek(account) ?? '' };
  }
}
