import { whenDone, type Clock, type MaybePromise, within } from '../core/runtime.ts';
import type { Backend, Looked } from './backend.ts';
import { recent } from './bounded.ts';
import { Changes, type Decide } from './changes.ts';
import { Copies } from './copies.ts';
import { Limits } from './limits.ts';
import { dropped, epochIn, nextEpoch, NO_NOTE, type Note, revoked, sessionIn } from './note.ts';
import {
  type AccountId,
  type CacheKey,
  EVERYTHING,
  MAX_REVOKED,
  ownTagOf,
  type Requested,
  type Revoked,
  type SessionId,
  type SessionState,
  type Tag,
} from './port.ts';

/** How long a question to the store is waited for. */
export const READ_MS = 190;
/** How long a change is waited for. A write counts first: both are over within a second. */
export const WRITE_MS = 800;
/** How long the store is told of a refused credential, and of a session that has ended. */
const TELL_MS = 600_000;
/** Accounts of which this instance knows something by itself. */
const MOST_KNOWN = 50_000;

interface InstanceOptions {
  readonly backend: Backend;
  readonly clock: Clock;
  /** Of keys and bodies of the copies of this process together. */
  readonly maxBytes: number;
}

/** What this instance knows of accounts, and how it asks and tells the store. */
export class Instance {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly copies: Copies;
  readonly limits: Limits;
  /** Accounts whose credential was refused, until the store knows it, and until when it is being told. */
  readonly refused = recent<AccountId, number>(MOST_KNOWN);
  readonly changes: Changes;
  /** What was signed out here, for when the store does not answer. */
  readonly #signedOut = recent<AccountId, Note>(MOST_KNOWN);
  readonly #coolsUntil = recent<AccountId, number>(MOST_KNOWN);

  constructor({ backend, clock, maxBytes }: InstanceOptions) {
    this.backend = backend;
    this.clock = clock;
    this.copies = new Copies(maxBytes);
    this.limits = new Limits(backend, clock);
    this.changes = new Changes(backend, clock);
  }

  /** Ends of writes and sessions, and refusals, that the store has not been told yet. */
  get pending(): number {
    return this.changes.pending;
  }

  coolDown(account: AccountId, until: number): void {
    this.#coolsUntil.set(account, Math.max(until, this.coolsUntil(account)));
  }

  coolsUntil(account: AccountId): number {
    return this.#coolsUntil.get(account) ?? 0;
  }

  accept(account: AccountId): void {
    this.backend.accept?.(account);
  }

  epochOf(account: AccountId): MaybePromise<number | undefined> {
    return whenDone(this.inTime(this.look(account), WRITE_MS), (seen) => {
      const own = this.#signedOut.get(account)?.epoch ?? 0; // of which the store may not know yet
      return seen && Math.max(epochIn(seen.note, this.backend.now()), own);
    });
  }

  async revoke(request: Requested, session: SessionId, which: 'one' | 'all'): Promise<boolean> {
    const { account } = request;
    const what: Revoked = which === 'one' ? { id: session.id } : { epoch: nextEpoch(session, this.backend.now()) };
    if (!this.backend.isHere) {
      const own = this.#signedOut.get(account) ?? NO_NOTE;
      // The oldest makes room: it is in the store's note, which alone says when all are signed out.
      const ended = Object.fromEntries(Object.entries(own.ended).slice(1 - MAX_REVOKED));
      this.#signedOut.set(account, revoked({ ...own, ended }, what, this.backend.now()));
    }
    const revoking = () => this.changes.make(account, (note, _, now) => ({ note: revoked(note, what, now) }));
    const telling = this.changes.tell(request.waitUntil, revoking, this.clock.now() + TELL_MS);
    return (await this.inTime(telling, WRITE_MS)) === true;
  }

  /** By the note, and by what this instance knows itself. */
  sessionIn(account: AccountId, note: Note, session: SessionId): SessionState {
    const own = this.#signedOut.get(account);
    const now = this.backend.now();
    const state = sessionIn(note, session, now);
    return own && !state.isOver ? sessionIn(own, session, now) : state;
  }

  /** The reply; undefined where there is none in time, or the store cannot be asked. */
  inTime<T>(reply: MaybePromise<T>, ms: number): MaybePromise<T | undefined> {
    if (!(reply instanceof Promise) || this.backend.isHere) return reply;
    return within(this.clock, ms, reply).catch(() => undefined);
  }

  /** A credential was refused: all that is held for it is void. Resolves with whether the store knows. */
  refuse({ account, waitUntil }: Requested): Promise<boolean> {
    const until = this.clock.now() + TELL_MS;
    this.markRefused(account, until);
    const refusing = () => this.changes.make(account, voided).then(() => this.refused.delete(account));
    return this.changes.tell(waitUntil, refusing, until);
  }

  drop(request: Requested, key: CacheKey): Promise<unknown> {
    this.copies.delete(request.account, key);
    return this.dropTags(request, [ownTagOf(key)]);
  }

  markRefused(account: AccountId, until: number): void {
    this.copies.deleteAll(account);
    if (!this.backend.isHere) this.refused.set(account, until);
  }

  /** Of a store that answers. It is told once more where that was given up while it did not answer. */
  isRefused(request: Requested): boolean {
    const until = this.refused.get(request.account);
    if (until !== undefined && until < this.clock.now()) void this.refuse(request);
    return until !== undefined;
  }

  dropTags({ account, waitUntil }: Requested, tags: readonly Tag[]): Promise<unknown> {
    const dropping = this.changes.make(account, (note, _, now) => ({ note: dropped(note, tags, now) }));
    waitUntil(dropping.catch(() => undefined));
    return dropping;
  }

  async look(account: AccountId, key?: string): Promise<Looked> {
    return this.backend.look(account, [], key);
  }
}

const voided: Decide<never> = (note, _, now) => ({ note: dropped(note, [EVERYTHING], now) });
