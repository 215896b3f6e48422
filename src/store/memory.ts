import { GatewayError } from '../core/errors.ts';
import { MemoryCopies } from './memory/copies.ts';
import { MemoryLimits } from './memory/limits.ts';
import { MemoryMarks } from './memory/marks.ts';
import { MemoryRecords } from './memory/records.ts';
import {
  type AccountId,
  type Arrival,
  type Begun,
  BUDGET,
  type CacheKey,
  EVERYTHING,
  type Fetched,
  type Found,
  hidden,
  type NewWrite,
  type Saved,
  type Snapshot,
  type Store,
  type Usage,
  type WindowUse,
  type WriteEnd,
} from './store.ts';

/** The store of one process: everything in bounded maps, gone when it ends. */
export class MemoryStore implements Store {
  readonly #copies: MemoryCopies;
  readonly #records = new MemoryRecords();
  readonly #limits = new MemoryLimits();
  readonly #marks = new MemoryMarks();

  /** `maxBytes` bounds the keys and bodies of cached answers together. */
  constructor({ maxBytes }: { readonly maxBytes: number }) {
    this.#copies = new MemoryCopies({ maxBytes });
  }

  snapshot({ principal, now, window }: Arrival): Snapshot {
    const use = window && this.#limits.take(principal, window, now);
    return new MemorySnapshot(use, this.#copies, this.#marks);
  }

  beginWrite(write: NewWrite): Begun {
    const { principal, window, now } = write;
    const use = window && this.#limits.take(principal, window, now);
    if (use && use.used > window.limit) return { use, isHeldBack: true };
    try {
      return { use, ...this.#announce(write) };
    } catch (error) {
      if (error instanceof GatewayError) return { use, refusal: error };
      throw error;
    }
  }

  /** @throws GatewayError `store_unavailable` where there is no room */
  #announce(write: NewWrite): Pick<Begun, 'known'> {
    const { principal, key, isPurchase, now } = write;
    const known = key === undefined ? undefined : this.#records.peek(write, key);
    if (known) return { known };
    const standing = isPurchase ? this.#marks.equalTo(write) : undefined;
    if (standing) return { known: { fingerprint: write.fingerprint, outcome: standing } };
    const isMarked = write.tags.length > 0 || isPurchase;
    if (isMarked) this.#marks.assertRoom(principal, now);
    if (key !== undefined) this.#records.claim(write, key);
    if (isMarked) this.#marks.begin(write);
    return {};
  }

  /** Versions change only now: until then the mark hides the copies, and a write that was not sent gives them back. */
  endWrite(write: NewWrite, end: WriteEnd): void {
    const { principal, key } = write;
    if (end === 'credential_refused') this.#copies.invalidate(principal, [EVERYTHING]);
    const how = typeof end === 'object' ? 'done' : end === 'credential_refused' ? 'refused' : end;
    if (this.#marks.end(write, how)) this.#copies.invalidate(principal, write.tags);
    if (key === undefined) return;
    if (how === 'refused' || how === 'not_sent') this.#records.release(principal, key);
    else this.#records.settle(write, key, typeof end === 'object' ? end : 'unknown');
  }

  coolDown(account: AccountId, until: number): void {
    this.#limits.coolDown(account, until);
  }

  coolsUntil(account: AccountId): number {
    return this.#limits.coolsUntil(account);
  }

  spend(account: AccountId, now: number): WindowUse {
    return this.#limits.take(account, BUDGET, now);
  }

  usage(): Usage {
    return { ...this.#copies.usage(), ...this.#records.usage(), ...this.#limits.usage() };
  }
}

/** What a request sees of this process: not a copy, but what stands when it looks. */
class MemorySnapshot implements Snapshot {
  readonly use: WindowUse | undefined;
  readonly #copies: MemoryCopies;
  readonly #marks: MemoryMarks;
  /** Under a mark equal reads of one request share a call, and no others. */
  #hidden: Found | undefined;

  constructor(use: WindowUse | undefined, copies: MemoryCopies, marks: MemoryMarks) {
    this.use = use;
    this.#copies = copies;
    this.#marks = marks;
  }

  lookup(key: CacheKey, now: number): Found {
    if (this.#marks.covers(key.account, key.tags, now)) return (this.#hidden ??= hidden(crypto.randomUUID()));
    return this.#copies.lookup(key);
  }

  save(key: CacheKey, found: Found, { entry, drop }: Fetched): Saved {
    if (drop === 'everything') this.#copies.invalidate(key.account, [EVERYTHING]);
    if (drop === 'key') this.#copies.drop(key);
    if (found.isHidden || this.#marks.covers(key.account, key.tags, -Infinity)) return { stored: false, holds: false };
    const stored = entry !== undefined && this.#copies.save(key, found, entry);
    return { stored, holds: this.#copies.holds(key, found.version) };
  }
}
