import { whenDone, type Clock, type MaybePromise, type WaitUntil, within } from '../core/runtime.ts';
import type { Account, KnownAccounts } from './account.ts';
import type { Backend } from './backend.ts';
import { recent } from './bounded.ts';
import { Changes, type Decide } from './changes.ts';
import { Copies } from './copies.ts';
import { Limits } from './limits.ts';
import { dropped, epochIn, MAX_REVOKED, nextEpoch, NO_NOTE, type Note, revoked, sessionIn } from './note.ts';
import {
  type AccountId,
  EVERYTHING,
  type Requested,
  type Revoked,
  type SessionId,
  type SessionState,
  type SnapshotRequest,
  type Tag,
  type WindowUse,
} from './port.ts';

/** How long a question to the store is waited for. */
export const READ_MS = 190;
/** How long a change is waited for. A write counts first: both are over within a second. */
export const WRITE_MS = 800;
/** How long the store is told of a refused credential, and of a session that has ended. */
const TELL_MS = 600_000;
/** How many accounts are known that were signed out here, were refused, or cool down. */
const MOST_APART = 50_000;

interface InstanceOptions {
  readonly backend: Backend;
  readonly clock: Clock;
  /** A bound for the keys and bodies of all copies of this process. */
  readonly maxBytes: number;
}

/** What this instance knows of accounts, and how it asks and tells the store. */
export class Instance {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly accounts: KnownAccounts;
  readonly copies: Copies;
  readonly changes: Changes;
  readonly #limits: Limits;
  // These three stand apart from `accounts`: there, requests with made-up credentials would evict them.
  /** Accounts whose credential was refused, with the end of the time in which a shared store is told so. */
  readonly refused = recent<AccountId, number>(MOST_APART);
  readonly #coolsUntil = recent<AccountId, number>(MOST_APART);
  /** What was signed out here, for when the store does not answer. */
  readonly #signedOut = recent<AccountId, Note>(MOST_APART);

  constructor({ backend, clock, maxBytes }: InstanceOptions) {
    this.backend = backend;
    this.clock = clock;
    this.accounts = backend.accounts;
    this.copies = new Copies(maxBytes);
    this.changes = new Changes(backend, clock);
    this.#limits = new Limits(backend, clock);
  }

  /** Ends of writes and sessions, and refusals, that the store has not been told yet. */
  get pending(): number {
    return this.changes.pending;
  }

  /** Notes that the upstream wants no calls of this account until then. */
  coolDown(id: AccountId, until: number): void {
    this.#coolsUntil.set(id, Math.max(until, this.coolsUntil(id)));
  }

  /** When the account's cooldown ends, as far as this instance knows. */
  coolsUntil(id: AccountId): number {
    return this.#coolsUntil.get(id) ?? 0;
  }

  /** The upstream accepts the account. */
  accept(id: AccountId): void {
    const account = this.accounts.of(id);
    this.accounts.accept(account);
    this.backend.accept?.(account);
  }

  /** The epoch of a session that begins now; undefined where only the store could tell, and it does not answer. */
  epochOf(id: AccountId): MaybePromise<number | undefined> {
    return whenDone(this.inTime(this.backend.look(this.accounts.of(id)), WRITE_MS), (seen) => {
      const own = this.#signedOut.get(id)?.epoch ?? 0; // the store may not know it yet
      return seen && Math.max(epochIn(seen.note, this.backend.now()), own);
    });
  }

  /** Resolves with whether all instances know of it; if not, this one does, and goes on to report it. */
  async revoke({ account: id, waitUntil }: Requested, session: SessionId, which: 'one' | 'all'): Promise<boolean> {
    const account = this.accounts.of(id);
    const what: Revoked = which === 'one' ? { id: session.id } : { epoch: nextEpoch(session, this.backend.now()) };
    if (!this.backend.isHere) {
      const own = this.#signedOut.get(id) ?? NO_NOTE;
      // The oldest makes room: it is in the store's note, which alone says when all are signed out.
      const ended = Object.fromEntries(Object.entries(own.ended).slice(1 - MAX_REVOKED));
      this.#signedOut.set(id, revoked({ ...own, ended }, what, this.backend.now()));
    }
    const revoking = () => this.changes.make(account, (note, _, now) => ({ note: revoked(note, what, now) }));
    const telling = this.changes.tell(waitUntil, revoking, this.clock.now() + TELL_MS);
    return (await this.inTime(telling, WRITE_MS)) === true;
  }

  /** The state of a session by the note, and by what this instance knows itself. */
  sessionIn({ id }: Account, note: Note, session: SessionId): SessionState {
    const own = this.#signedOut.get(id);
    const now = this.backend.now();
    const state = sessionIn(note, session, now);
    return own && !state.isOver ? sessionIn(own, session, now) : state;
  }

  /** Counts a request in its window, if it has one: by what this instance knows where the store does not answer. */
  count(account: Account, { window, waitUntil }: SnapshotRequest): MaybePromise<WindowUse | undefined> {
    if (!window) return undefined;
    const taking = this.inTime(this.#limits.take(account, window, waitUntil), READ_MS);
    return whenDone(taking, (use) => use ?? this.#limits.guess(account, window));
  }

  /** The reply; undefined where there is none in time, or the store cannot be asked. */
  inTime<T>(reply: MaybePromise<T>, ms: number): MaybePromise<T | undefined> {
    if (!(reply instanceof Promise) || this.backend.isHere) return reply;
    return within(this.clock, ms, reply).catch(() => undefined);
  }

  /** A credential was refused: all that is held for it is void. Resolves with whether the store knows. */
  refuse(account: Account, waitUntil: WaitUntil): Promise<boolean> {
    const until = this.clock.now() + TELL_MS;
    this.markRefused(account, until);
    const refusing = () => this.changes.make(account, voided).then(() => this.refused.delete(account.id));
    return this.changes.tell(waitUntil, refusing, until);
  }

  markRefused(account: Account, until: number): void {
    this.copies.deleteAll(account.id);
    if (!this.backend.isHere) this.refused.set(account.id, until);
  }

  /** Call this when the store answers. It is told of the refusal once more where that was given up while it did not answer. */
  isRefused(account: Account, waitUntil: WaitUntil): boolean {
    const refusedUntil = this.refused.get(account.id);
    if (refusedUntil !== undefined && refusedUntil < this.clock.now()) void this.refuse(account, waitUntil);
    return refusedUntil !== undefined;
  }

  dropTags(account: Account, tags: readonly Tag[], waitUntil: WaitUntil): Promise<unknown> {
    const dropping = this.changes.make(account, (note, _, now) => ({ note: dropped(note, tags, now) }));
    waitUntil(dropping.catch(() => undefined));
    return dropping;
  }
}

const voided: Decide<never> = (note, _, now) => ({ note: dropped(note, [EVERYTHING], now) });
