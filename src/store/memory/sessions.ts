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
  /** What was changed last is last. */
  readonly #accounts = new Map<AccountId, Account>();
  readonly #forgets: boolean;
  /** Of every account, and the highest of any. */
  #epoch = 0;
  #highest = 0;
  /** Entries at most: those that have ended by themselves are counted until there is no room. */
  #held = 0;

  constructor({ forgets }: { readonly forgets: boolean }) {
    this.#forgets = forgets;
  }

  revoke({ principal }: Pick<Holder, 'principal'>, { id, epoch }: Revoked, now: number): void {
    const known = this.#accounts.get(principal);
    const account = known ?? { epoch: this.#epoch, until: 0, revoked: new Map() };
    this.#held -= known ? entriesOf(known) : 0;
    if (epoch > account.epoch) account.revoked.clear(); // they are of lower ones
    account.epoch = Math.max(account.epoch, epoch);
    account.until = now + SESSION_MS;
    if (id !== undefined) account.revoked.set(id, account.until);
    if (account.revoked.size > MAX_REVOKED) dropEnded(account, now);
    if (account.revoked.size > MAX_REVOKED) endAll(account);
    this.#highest = Math.max(this.#highest, account.epoch);
    this.#accounts.delete(principal);
    this.#accounts.set(principal, account);
    this.#held += entriesOf(account);
    if (this.#held <= MAX_ENTRIES) return;
    if (this.#forgets) this.#forget();
    else this.#makeRoom(now);
  }

  /** A session of a higher epoch than is known shows that there was such a one. */
  stateOf(holder: Holder, session: SessionId, now: number): SessionState {
    if (session.epoch > this.#epochOf(holder.principal)) this.revoke(holder, { epoch: session.epoch }, now);
    const account = this.#accounts.get(holder.principal);
    if (account) account.until = now + SESSION_MS;
    return { isRevoked: account?.revoked.has(session.id) === true, epoch: this.#epochOf(holder.principal) };
  }

  /** All that may still matter, what was changed last first. */
  *all(now: number): Generator<readonly [AccountId, Revoked]> {
    for (const [principal, { epoch, revoked, until }] of [...this.#accounts].toReversed()) {
      const ids = [...revoked].flatMap(([id, endsAt]) => (endsAt > now ? id : []));
      if (ids.length === 0 && until > now) yield [principal, { epoch }];
      for (const id of ids) yield [principal, { id, epoch }];
    }
  }

  #epochOf(account: AccountId): number {
    return this.#accounts.get(account)?.epoch ?? this.#epoch;
  }

  #forget(): void {
    for (const [principal, account] of this.#accounts) {
      if (this.#held <= MAX_ENTRIES) return;
      this.#accounts.delete(principal);
      this.#held -= entriesOf(account);
    }
  }

  /** Where there are too many accounts, all sessions are over, and nothing need be known of any. */
  #makeRoom(now: number): void {
    for (let many = Infinity; many >= 1; many = Math.min(many / 2, MAX_REVOKED)) {
      for (const [principal, account] of this.#accounts) {
        dropEnded(account, now);
        if (account.until <= now) this.#accounts.delete(principal);
        else if (account.revoked.size >= many) endAll(account);
        this.#highest = Math.max(this.#highest, account.epoch);
      }
      this.#held = [...this.#accounts.values()].reduce((sum, account) => sum + entriesOf(account), 0);
      if (this.#held <= MAX_ENTRIES - LEAST_FREED) return;
    }
    this.#accounts.clear();
    this.#held = 0;
    this.#epoch = ++this.#highest;
  }
}

const entriesOf = ({ revoked }: Account) => 1 + revoked.size;

function endAll(account: Account): void {
  account.epoch++;
  account.revoked.clear();
}

function dropEnded({ revoked }: Account, now: number): void {
  for (const [id, until] of revoked) if (until <= now) revoked.delete(id);
}
