import { GatewayError } from '../core/errors.ts';
import { MemoryAccounts } from './memory/accounts.ts';
import { MemoryCopies } from './memory/copies.ts';
import { MemoryMarks } from './memory/marks.ts';
import { MemoryRecords } from './memory/records.ts';
import type { Owner } from './owner.ts';
import type { Window } from './shared/engine.ts';
import {
  type AccountId,
  type SnapshotRequest,
  type Begun,
  BUDGET,
  type CacheKey,
  type Entry,
  EVERYTHING,
  type Fetched,
  type Found,
  hidden,
  type Holder,
  type LocalStore,
  type NewWrite,
  type Saved,
  type Snapshot,
  type Store,
  type Usage,
  type WindowUse,
  type WriteEnd,
} from './store.ts';

const COPIES_PART = 7 / 8; // the rest is for accounts

/** The store of one process: bounded maps that end with it. */
export class MemoryStore implements Store, LocalStore {
  readonly #accounts: MemoryAccounts;
  readonly #copies: MemoryCopies;
  readonly #records = new MemoryRecords();
  readonly #marks = new MemoryMarks();

  /** `maxBytes` bounds the keys and bodies of cached answers together. */
  constructor({ maxBytes }: { readonly maxBytes: number }) {
    this.#accounts = new MemoryAccounts(maxBytes * (1 - COPIES_PART));
    this.#copies = new MemoryCopies(maxBytes * COPIES_PART, this.#accounts);
  }

  get local(): LocalStore {
    return this;
  }

  copy(key: CacheKey, now: number): Entry | undefined {
    return this.#marks.covers(key.account, key.tags, now) ? undefined : this.#copies.find(key);
  }

  count(holder: Holder, window: Window, now: number): WindowUse {
    return this.#accounts.take(holder, window, now);
  }

  async snapshot(request: SnapshotRequest): Promise<Snapshot> {
    const { owner, now, window } = request;
    const use = window && this.#accounts.take(request, window, now);
    return new MemorySnapshot(use, owner, { copies: this.#copies, marks: this.#marks });
  }

  async beginWrite(write: NewWrite): Promise<Begun> {
    const { window, now } = write;
    const use = window && this.#accounts.take(write, window, now);
    if (use && use.used > window.limit) return { use, isLimited: true };
    try {
      return { use, ...this.#announce(write) };
    } catch (error) {
      if (error instanceof GatewayError) return { use, refusal: error };
      throw error;
    }
  }

  /** @throws GatewayError `store_unavailable` where there is no room */
  #announce(write: NewWrite): Pick<Begun, 'known'> {
    const { key, isPurchase } = write;
    const known = key === undefined ? undefined : this.#records.peek(write, key);
    if (known) return { known };
    const equal = isPurchase ? this.#marks.equalTo(write) : undefined;
    if (equal) return { known: { fingerprint: write.fingerprint, outcome: equal } };
    const isMarked = write.tags.length > 0 || isPurchase;
    if (isMarked) this.#marks.assertRoom(write);
    if (key !== undefined) this.#records.claim(write, key);
    if (isMarked) this.#marks.begin(write);
    return {};
  }

  /** Versions change only now: until now the mark hid the copies, and if the write was not sent they are valid again. */
  async endWrite(write: NewWrite, end: WriteEnd): Promise<void> {
    const { principal, key } = write;
    if (end === 'credential_refused') this.#copies.invalidate(principal, [EVERYTHING]);
    const how = typeof end === 'object' ? 'done' : end === 'credential_refused' ? 'refused' : end;
    if (this.#marks.end(write, how)) this.#copies.invalidate(principal, write.tags);
    if (key === undefined) return;
    if (how === 'refused' || how === 'not_sent') this.#records.release(principal, key);
    else this.#records.settle(write, key, typeof end === 'object' ? end : 'unknown');
  }

  coolDown(holder: Holder, until: number): void {
    this.#accounts.coolDown(holder, until);
  }

  coolsUntil(account: AccountId): number {
    return this.#accounts.coolsUntil(account);
  }

  spend(holder: Holder, now: number): WindowUse {
    return this.#accounts.take(holder, BUDGET, now);
  }

  usage(): Usage {
    return { ...this.#copies.usage(), ...this.#accounts.usage(), ...this.#records.usage() };
  }
}

interface Parts {
  readonly copies: MemoryCopies;
  readonly marks: MemoryMarks;
}

/** A snapshot of this process's state takes nothing in advance: each lookup reads the current state. */
class MemorySnapshot implements Snapshot {
  readonly use: WindowUse | undefined;
  readonly #owner: Owner;
  readonly #parts: Parts;
  /** While a mark covers them, equal reads share a call within one request only. */
  #hidden: Found | undefined;

  constructor(use: WindowUse | undefined, owner: Owner, parts: Parts) {
    this.use = use;
    this.#owner = owner;
    this.#parts = parts;
  }

  async lookup(key: CacheKey, now: number): Promise<Found> {
    const { copies, marks } = this.#parts;
    if (marks.covers(key.account, key.tags, now)) return (this.#hidden ??= hidden(crypto.randomUUID()));
    return copies.lookup(key, this.#owner, key.lifeMs > 0);
  }

  async save(key: CacheKey, found: Found, { entry, drop }: Fetched): Promise<Saved> {
    const { copies, marks } = this.#parts;
    if (drop === 'everything') copies.invalidate(key.account, [EVERYTHING]);
    if (drop === 'key') copies.drop(key);
    if (found.isHidden || marks.covers(key.account, key.tags, -Infinity)) return { stored: false, holds: false };
    const stored = entry !== undefined && copies.save(key, found, entry);
    return { stored, holds: copies.holds(key, found) };
  }
}
