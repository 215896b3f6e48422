import { type Account, type KeptRecord, KnownAccounts, type Looked, type Seen } from './account.ts';
import type { Backend, Next, Swapped } from './backend.ts';
import { type Held, newNote } from './note.ts';
import { type CacheKey, requestsBy, type Period, type WindowUse } from './port.ts';

/** A bound for the records of all accounts. */
const MAX_RECORD_BYTES = 67_108_864;
const RECORD_BYTES = 500;
/** When more accounts have something to keep, those are looked for whose time is over. */
const MOST_KEPT = 100_000;
const SWEEP_MS = 1_000;
const BY_ADDRESS = requestsBy('address');

/** Notes, records and counts of this process. Marks, records and sessions that ended are kept until their time is over. */
export class MemoryBackend implements Backend {
  readonly isHere = true;
  readonly accounts = new KnownAccounts();
  readonly noteMs = 0; // one that is made anew has other versions
  readonly reliableAt = -Infinity;
  readonly now: () => number;
  #recordBytes = 0;
  #sweptAt = -Infinity;

  constructor({ now }: { readonly now: () => number }) {
    this.now = now;
  }

  look(account: Account, _keys?: readonly CacheKey[], key?: string): Looked {
    const seen = this.peek(account);
    const kept = key === undefined ? undefined : account.records?.get(key);
    return kept && kept.until > this.now() ? { ...seen, held: kept.held } : seen;
  }

  peek(account: Account): Seen {
    const note = (account.note ??= newNote());
    return { note, seen: note, token: '' };
  }

  swap(account: Account, { seen }: Seen, { note, lifeMs, record, isBeginning }: Next): Swapped {
    if (account.note !== seen) return 'other';
    const now = this.now();
    if (isBeginning && record && this.#isFull(now)) return 'full';
    account.note = note;
    if (record) this.#settle(account, record, now);
    const untils = Array.from(account.records?.values() ?? [], ({ until }) => until);
    account.keptUntil = Math.max(now + lifeMs, ...untils);
    this.accounts.place(account, now);
    if (this.accounts.kept.size > MOST_KEPT) this.#sweep(now);
    return 'done';
  }

  count(account: Account, { name, lengthMs }: Period, many: number): WindowUse {
    // No credential is behind an address, and those that are made up may not evict its limit.
    if (name === BY_ADDRESS) this.accounts.accept(account);
    const window = account.windowOf(name);
    const now = this.now();
    if (window.endsAt <= now) Object.assign(window, { used: 0, endsAt: now + lengthMs });
    window.used += many;
    return { used: window.used, endsAt: window.endsAt };
  }

  #settle(account: Account, { key, held, lifeMs }: NonNullable<Next['record']>, now: number): void {
    const records = (account.records ??= new Map<string, KeptRecord>());
    this.#recordBytes -= records.get(key)?.bytes ?? 0;
    records.delete(key); // the order is that of their ends
    if (held) {
      const bytes = bytesOf(held);
      records.set(key, { held, until: now + lifeMs, bytes });
      this.#recordBytes += bytes;
    }
    this.#expire(account, now);
  }

  #expire({ records }: Account, now: number): void {
    for (const [key, { until, bytes }] of records ?? []) {
      if (until > now) continue;
      records?.delete(key);
      this.#recordBytes -= bytes;
    }
  }

  #isFull(now: number): boolean {
    if (this.#recordBytes < MAX_RECORD_BYTES) return false;
    this.#sweep(now);
    return this.#recordBytes >= MAX_RECORD_BYTES;
  }

  #sweep(now: number): void {
    if (Math.abs(now - this.#sweptAt) < SWEEP_MS) return;
    this.#sweptAt = now;
    for (const account of this.accounts.kept.values()) {
      this.#expire(account, now);
      if (account.keptUntil <= now) this.accounts.place(account, now);
    }
  }
}

const bytesOf = ({ record: { outcome } }: Held) =>
  RECORD_BYTES + (typeof outcome === 'object' ? (outcome.text?.length ?? 0) : 0);
