import { LRUCache } from '../bounded.ts';
import { type AccountId, type Revoked, SESSION_MS, type SessionId, type SessionState, MAX_REVOKED } from '../store.ts';

/** Accounts and revoked sessions together; each takes some hundred bytes. */
const MAX_ENTRIES = 100_000;
/** Looking for those that have ended takes milliseconds: it has to be worth it for some time. */
const LEAST_FREED = MAX_ENTRIES / 16;

/** Of an account whose sessions were revoked, alone or together. Instants are of this process's clock. */
interface Sessions {
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
  /** Counts those that have ended by themselves until there is no room. */
  readonly #accounts: LRUCache<AccountId, Sessions>;
  /** Of every account, and the highest of any. */
  #epoch = 0;
  #highest = 0;

  constructor({ forgets }: { readonly forgets: boolean }) {
    const maxSize = forgets ? MAX_ENTRIES : Number.MAX_SAFE_INTEGER;
    this.#accounts = new LRUCache({ maxSize, sizeCalculation: ({ revoked }) => 1 + revoked.size });
  }

  revoke(account: AccountId, { id, epoch }: Revoked, now: number): void {
    const sessions = this.#accounts.peek(account) ?? { epoch: this.#epoch, until: 0, revoked: new Map() };
    if (epoch > sessions.epoch) sessions.revoked.clear(); // they are of lower ones
    sessions.epoch = Math.max(sessions.epoch, epoch);
    sessions.until = now + SESSION_MS;
    if (id !== undefined) sessions.revoked.set(id, sessions.until);
    if (sessions.revoked.size > MAX_REVOKED) dropEnded(sessions, now);
    if (sessions.revoked.size > MAX_REVOKED) endAll(sessions);
    this.#keep(account, sessions);
    if (this.#accounts.calculatedSize > MAX_ENTRIES) this.#makeRoom(now);
  }

  /** A session of a higher epoch than is known shows that there was such a one. */
  stateOf(account: AccountId, session: SessionId, now: number): SessionState {
    if (session.epoch > this.#epochOf(account)) this.revoke(account, { epoch: session.epoch }, now);
    const sessions = this.#accounts.peek(account);
    if (sessions) sessions.until = now + SESSION_MS;
    return { isRevoked: sessions?.revoked.has(session.id) === true, epoch: this.#epochOf(account) };
  }

  /** All that may still matter, what was changed last first. */
  *all(now: number): Generator<readonly [AccountId, Revoked]> {
    for (const [account, { epoch, revoked, until }] of this.#accounts.entries()) {
      const ids = [...revoked].flatMap(([id, endsAt]) => (endsAt > now ? id : []));
      if (ids.length === 0 && until > now) yield [account, { epoch }];
      for (const id of ids) yield [account, { id, epoch }];
    }
  }

  #epochOf(account: AccountId): number {
    return this.#accounts.peek(account)?.epoch ?? this.#epoch;
  }

  /** An entry of lru-cache keeps the size that it had when it was set. */
  #keep(account: AccountId, sessions: Sessions): void {
    this.#highest = Math.max(this.#highest, sessions.epoch);
    this.#accounts.delete(account);
    this.#accounts.set(account, sessions);
  }

  /** Where there are too many accounts, all sessions are over, and nothing need be known of any. */
  #makeRoom(now: number): void {
    for (let many = Infinity; many >= 1;) {
      let most = 0;
      const held = [...this.#accounts.entries()]; // it is not to be changed while it is iterated
      for (const [account, sessions] of held) {
        const { size } = sessions.revoked;
        dropEnded(sessions, now);
        if (sessions.revoked.size >= many) endAll(sessions);
        if (sessions.until <= now) this.#accounts.delete(account);
        else if (sessions.revoked.size < size) this.#keep(account, sessions);
        most = Math.max(most, sessions.revoked.size);
      }
      if (this.#accounts.calculatedSize <= MAX_ENTRIES - LEAST_FREED) return;
      many = Math.min(many / 2, most);
    }
    this.#accounts.clear();
    this.#epoch = ++this.#highest;
  }
}

function endAll(sessions: Sessions): void {
  sessions.epoch++;
  sessions.revoked.clear();
}

function dropEnded({ revoked }: Sessions, now: number): void {
  for (const [id, until] of revoked) if (until <= now) revoked.delete(id);
}
