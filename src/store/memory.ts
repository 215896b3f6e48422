import { Copies } from './copies.ts';
import { MemoryAccounts } from './memory/accounts.ts';
import { MemorySessions } from './memory/sessions.ts';
import { MemoryWrites } from './memory/writes.ts';
import {
  type AccountId,
  type Begun,
  BUDGET,
  type CacheKey,
  type Entry,
  EVERYTHING,
  type Fetched,
  type Found,
  hidden,
  type OwnedAccount,
  isSessionOver,
  type NewWrite,
  type Owner,
  type Revoked,
  type RevokeRequest,
  type Saved,
  type SessionState,
  type Snapshot,
  type SnapshotRequest,
  type Store,
  type Tag,
  type Usage,
  type WindowUse,
  type WriteEnd,
} from './store.ts';
import { begunOf } from './writes.ts';

const FULL_RETRY_SECONDS = 60;
const MAX_TAGS = 16;
const MAX_OWN_TAG = 64;
const COPIES_PART = 7 / 8; // the rest is for accounts

/** What the store and its snapshots share. */
interface MemoryParts {
  readonly accounts: MemoryAccounts;
  readonly copies: Copies;
  readonly writes: MemoryWrites;
  /** Number of the last lookup. */
  last: number;
}

/** The store of one process: bounded maps that end with it. */
export class MemoryStore implements Store {
  readonly #parts: MemoryParts;
  readonly #sessions = new MemorySessions({ forgets: false });

  /** `maxBytes` bounds the keys and bodies of cached answers together. */
  constructor({ maxBytes }: { readonly maxBytes: number }) {
    const accounts = new MemoryAccounts(maxBytes * (1 - COPIES_PART));
    const copies = new Copies(maxBytes * COPIES_PART);
    const writes = new MemoryWrites((account, tags) => invalidate(this.#parts, account, tags));
    this.#parts = { accounts, copies, writes, last: 0 };
  }

  snapshot(request: SnapshotRequest): Snapshot {
    const { account, owner, now, window, session } = request;
    const use = window && this.#parts.accounts.take(request, window, now);
    const state = session && this.#sessions.stateOf(account, session, now);
    return new MemorySnapshot(this.#parts, owner, use, state);
  }

  copyOf(key: CacheKey): Entry | undefined {
    return this.#parts.copies.get(key)?.entry;
  }

  async beginWrite(write: NewWrite): Promise<Begun> {
    const { account, window, now, session } = write;
    const { accounts, writes } = this.#parts;
    const use = window && accounts.take(write, window, now);
    if (use && use.used > window.limit) return { use, isLimited: true };
    if (session && isSessionOver(session, this.#sessions.stateOf(account, session, now)))
      return { use, isRevoked: true };
    const begun = writes.begin(write, accounts.coolsUntil(account) - now);
    return { use, ...begunOf(write, begun, FULL_RETRY_SECONDS) };
  }

  async endWrite(write: NewWrite, end: WriteEnd): Promise<void> {
    this.#parts.writes.end(write, end);
  }

  async revoke({ account, now }: RevokeRequest, revoked: Revoked): Promise<boolean> {
    this.#sessions.revoke(account, revoked, now);
    return true;
  }

  coolDown(owned: OwnedAccount, until: number): void {
    this.#parts.accounts.coolDown(owned, until);
  }

  accept(account: AccountId): void {
    this.#parts.accounts.accept(account);
    this.#parts.writes.accept(account);
  }

  coolsUntil(account: AccountId): number {
    return this.#parts.accounts.coolsUntil(account);
  }

  spend(owned: OwnedAccount, now: number): WindowUse {
    return this.#parts.accounts.take(owned, BUDGET, now);
  }

  usage(): Usage {
    const { accounts, copies, writes } = this.#parts;
    return { ...copies.usage(), ...accounts.usage(), records: writes.records };
  }
}

/** Invalidates every answer, and every read under way, that has one of these tags. */
function invalidate({ accounts, copies }: MemoryParts, account: AccountId, tags: readonly Tag[]): void {
  copies.deleteOf(account, tags);
  accounts.heldVersions(account)?.renew(tags, MAX_TAGS);
}

/** The first is the key's own, for answers that are dropped alone. Cut off, since clients may send long ones. */
const tagsOf = ({ key, tags }: CacheKey): Tag[] => [`=${key.slice(0, MAX_OWN_TAG)}`, ...tags];

/** A snapshot of this process's state takes nothing in advance: each lookup reads the current state. */
class MemorySnapshot implements Snapshot {
  readonly use: WindowUse | undefined;
  readonly session: SessionState | undefined;
  readonly #parts: MemoryParts;
  /** Who an account is counted for; its copies are counted for itself. */
  readonly #owner: Owner;
  /** While a mark covers them, equal reads share a call within one request only. */
  #hidden: Found | undefined;

  constructor(parts: MemoryParts, owner: Owner, use: WindowUse | undefined, session: SessionState | undefined) {
    this.use = use;
    this.session = session;
    this.#parts = parts;
    this.#owner = owner;
  }

  /** None while a mark covers it. */
  copy(key: CacheKey, now: number): Entry | undefined {
    const { copies, writes } = this.#parts;
    return writes.covers(key.account, key.tags, now) ? undefined : copies.get(key)?.entry;
  }

  async lookup(key: CacheKey, now: number): Promise<Found> {
    const { accounts, copies, writes } = this.#parts;
    if (writes.covers(key.account, key.tags, now)) return (this.#hidden ??= hidden(crypto.randomUUID()));
    const version = accounts.versionsOf(key.account, this.#owner).of(tagsOf(key));
    const entry = key.lifeMs > 0 ? copies.get(key)?.entry : undefined;
    return { entry, version, askedAt: ++this.#parts.last };
  }

  async save(key: CacheKey, found: Found, { entry, drop }: Fetched): Promise<Saved> {
    const { account, tags } = key;
    const { accounts, copies, writes } = this.#parts;
    if (drop === 'everything') invalidate(this.#parts, account, [EVERYTHING]);
    if (drop === 'key') {
      copies.delete(key);
      accounts.heldVersions(account)?.renew(tagsOf(key).slice(0, 1), MAX_TAGS);
    }
    const isHidden = found.isHidden === true || writes.covers(account, tags);
    const holds = !isHidden && accounts.heldVersions(account)?.of(tagsOf(key)) === found.version;
    return { stored: holds && entry !== undefined && copies.set(key, found, entry), holds };
  }
}
