import { Copies } from './copies.ts';
import { MemoryAccounts } from './memory/accounts.ts';
import { MemorySessions } from './memory/sessions.ts';
import { MemoryWrites } from './memory/writes.ts';
import { EVERYTHING, hidden, isSessionOver } from './store.ts';
import type {
  AccountId,
  Begun,
  CacheKey,
  Entry,
  Fetched,
  Found,
  NewWrite,
  OwnedAccount,
  Owner,
  RevokeRequest,
  Revoked,
  Saved,
  SessionState,
  Snapshot,
  SnapshotRequest,
  Store,
  Tag,
  Usage,
  WindowUse,
  WriteEnd,
} from './store.ts';
import { begunOf } from './writes.ts';

const FULL_RETRY_SECONDS = 60;
const MAX_OWN_TAG = 64;
const COPIES_PART = 7 / 8; // the rest is for accounts

/** The store of one process: bounded maps that end with it. */
export class MemoryStore implements Store {
  readonly accounts: MemoryAccounts;
  readonly copies: Copies;
  readonly writes: MemoryWrites;
  readonly #sessions = new MemorySessions({ forgets: false });
  /** So far. */
  lookups = 0;

  /** `maxBytes` bounds the keys and bodies of cached answers together. */
  constructor({ maxBytes }: { readonly maxBytes: number }) {
    this.accounts = new MemoryAccounts(maxBytes * (1 - COPIES_PART));
    this.copies = new Copies(maxBytes * COPIES_PART);
    this.writes = new MemoryWrites((account, tags) => this.invalidate(account, tags));
  }

  snapshot(request: SnapshotRequest): Snapshot {
    const { account, owner, now, window, session } = request;
    const use = window && this.accounts.take(request, window, now);
    const state = session && this.#sessions.stateOf(account, session, now);
    return new MemorySnapshot(this, owner, use, state);
  }

  copyOf(key: CacheKey): Entry | undefined {
    return this.copies.get(key)?.entry;
  }

  async beginWrite(write: NewWrite): Promise<Begun> {
    const { account, window, now, session } = write;
    const use = window && this.accounts.take(write, window, now);
    if (use && use.used > window.limit) return { use, isLimited: true };
    if (session && isSessionOver(session, this.#sessions.stateOf(account, session, now)))
      return { use, isRevoked: true };
    const begun = this.writes.begin(write, this.accounts.coolsUntil(account) - now);
    return { use, ...begunOf(write, begun, FULL_RETRY_SECONDS) };
  }

  async endWrite(write: NewWrite, end: WriteEnd): Promise<void> {
    this.writes.end(write, end);
  }

  async revoke({ account, now }: RevokeRequest, revoked: Revoked): Promise<boolean> {
    this.#sessions.revoke(account, revoked, now);
    return true;
  }

  coolDown(owned: OwnedAccount, until: number): void {
    this.accounts.coolDown(owned, until);
  }

  accept(account: AccountId): void {
    this.accounts.accept(account);
    this.writes.accept(account);
  }

  coolsUntil(account: AccountId): number {
    return this.accounts.coolsUntil(account);
  }

  usage(): Usage {
    return { ...this.copies.usage(), ...this.accounts.usage(), ...this.writes.usage() };
  }

  /** Invalidates every answer, and every read under way, that has one of these tags. */
  invalidate(account: AccountId, tags: readonly Tag[]): void {
    this.copies.deleteOf(account, tags);
    this.accounts.renew(account, tags);
  }
}

/** The first is the key's own, for answers that are dropped alone. Cut off, since clients may send long ones. */
const tagsOf = ({ key, tags }: CacheKey): Tag[] => [`=${key.slice(0, MAX_OWN_TAG)}`, ...tags];

/** A snapshot of this process's state takes nothing in advance: each lookup reads the current state. */
class MemorySnapshot implements Snapshot {
  readonly use: WindowUse | undefined;
  readonly session: SessionState | undefined;
  readonly #store: MemoryStore;
  /** Who an account is counted for; its copies are counted for itself. */
  readonly #owner: Owner;
  /** While a mark covers them, equal reads share a call within one request only. */
  #hidden: Found | undefined;

  constructor(store: MemoryStore, owner: Owner, use: WindowUse | undefined, session: SessionState | undefined) {
    this.use = use;
    this.session = session;
    this.#store = store;
    this.#owner = owner;
  }

  /** None while a mark covers it. */
  copy(key: CacheKey, now: number): Entry | undefined {
    const { copies, writes } = this.#store;
    return writes.covers(key.account, key.tags, now) ? undefined : copies.get(key)?.entry;
  }

  lookup(key: CacheKey, now: number): Found {
    const { accounts, copies, writes } = this.#store;
    if (writes.covers(key.account, key.tags, now)) return (this.#hidden ??= hidden(crypto.randomUUID()));
    const version = accounts.versionsOf(key.account, this.#owner).of(tagsOf(key));
    const entry = key.lifeMs > 0 ? copies.get(key)?.entry : undefined;
    return { entry, version, askedAt: ++this.#store.lookups };
  }

  save(key: CacheKey, found: Found, { entry, drop }: Fetched): Saved {
    const { account, tags } = key;
    const { accounts, copies, writes } = this.#store;
    if (drop === 'everything') this.#store.invalidate(account, [EVERYTHING]);
    if (drop === 'key') {
      copies.delete(key);
      accounts.renew(account, tagsOf(key).slice(0, 1));
    }
    const isHidden = found.isHidden === true || writes.covers(account, tags);
    const holds = !isHidden && accounts.versionsOf(account, this.#owner).of(tagsOf(key)) === found.version;
    return { stored: holds && entry !== undefined && copies.set(key, found, entry), holds };
  }
}
