import { BoundedMap } from '../bounded.ts';
import { MAX_REVOKED } from '../shared/engine.ts';
import { type AccountId, type Holder, type Revoked, SESSION_MS, type SessionId, type SessionState } from '../store.ts';

/** Accounts and revoked sessions together; each takes some hundred bytes. */
const MAX_ENTRIES = 100_000;
/** Looking for those that have ended takes milliseconds: it has to be worth it for some time. */
const LEAST_FREED = MAX_ENTRIES / 16;

/** Of an account whose sessions were revoked, alone or together. Instants are of this process's clock. */
interface Account {
  epoch: number;
  /** When no session is left that the epoch could matter to. */
  until: number;
  /** When each revoked session would have ended by itself. */
  readonly revoked: Map<string, number>;
}

/**
 * What this process knows of revoked sessions. `forgets`: where another store has it too, what was changed least recently
 * goes when there is no room. Else all sessions of the accounts with most of them end then, so that none that was revoked
 * goes on.
 */
export class MemorySessions {
  readonly #accounts = new BoundedMap<AccountId, Account>({
    max: MAX_ENTRIES,
    sizeOf: ({ revoked }) => 1 + revoked.size,
  });
  readonly #forgets: boolean;
  /** Of every account, and the highest of any. */
  #epoch = 0;
  #highest = 0;

  constructor({ forgets }: { readonly forgets: boolean }) {
    this.#forgets = forgets;
  }

  revoke({ principal, owner }: Holder, { id, epoch }: Revoked, now: number): void {
    const account = this.#accounts.peek(principal) ?? { epoch: this.#epoch, until: 0, revoked: new Map() };
    if (epoch > account.epoch) account.revoked.clear(); // they are of lower ones
    account.epoch = Math.max(account.epoch, epoch);
    account.until = now + SESSION_MS;
    if (id !== undefined) account.revoked.set(id, account.until);
    if (account.revoked.size > MAX_REVOKED) dropEnded(account, now);
    if (account.revoked.size > MAX_REVOKED) endAll(account);
    this.#highest = Math.max(this.#highest, account.epoch);
    if (this.#forgets || this.#hasRoom(now)) this.#accounts.set(principal, account, owner);
  }

  /** A session of a higher epoch than is known shows that there was such a one. */
  stateOf(holder: Holder, session: SessionId, now: number): SessionState {
    if (session.epoch > this.#epochOf(holder.principal)) this.revoke(holder, { epoch: session.epoch }, now);
    const account = this.#accounts.peek(holder.principal);
    if (account) account.until = now + SESSION_MS;
    return { isRevoked: account?.revoked.has(session.id) === true, epoch: this.#epochOf(holder.principal) };
  }

  /** All that may still matter, what was changed last first. */
  *all(now: number): Generator<readonly [AccountId, Revoked]> {
    for (const [principal, account] of this.#accounts.entries()) {
      const { epoch, revoked, until } = account;
      dropEnded(account, now);
      if (revoked.size === 0 && until > now) yield [principal, { epoch }];
      for (const id of revoked.keys()) yield [principal, { id, epoch }];
    }
  }

  #epochOf(account: AccountId): number {
    return this.#accounts.peek(account)?.epoch ?? this.#epoch;
  }

  /** For one more session of any account. Where there are too many accounts, all are over, and nothing need be known of any. */
  #hasRoom(now: number): boolean {
    if (this.#accounts.held + 2 <= MAX_ENTRIES) return true;
    for (const [principal, account] of this.#accounts.entries()) {
      if (account.until <= now) this.#accounts.delete(principal);
      else if (dropEnded(account, now)) this.#accounts.set(principal, account, principal);
    }
    const known = this.#accounts.entries();
    const isFreed = () => this.#accounts.held <= MAX_ENTRIES - LEAST_FREED;
    for (let many = MAX_REVOKED; many >= 1 && !isFreed(); many /= 2) {
      for (const [principal, account] of known) {
        if (account.revoked.size < many) continue;
        endAll(account);
        this.#highest = Math.max(this.#highest, account.epoch);
        this.#accounts.set(principal, account, principal);
      }
    }
    if (isFreed()) return true;
    for (const [principal] of known) this.#accounts.delete(principal);
    this.#epoch = ++this.#highest;
    return false;
  }
}

function endAll(account: Account): void {
  account.epoch++;
  account.revoked.clear();
}

/** Returns whether there were any. */
function dropEnded({ revoked }: Account, now: number): boolean {
  const { size } = revoked;
  for (const [id, until] of revoked) if (until <= now) revoked.delete(id);
  return revoked.size < size;
}
