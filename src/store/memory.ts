import type { Backend, Count, Looked, Next, Seen, Swapped } from './backend.ts';
import { recent } from './bounded.ts';
import { type Held, newNote, type Note } from './note.ts';
import { type AccountId, type CacheKey, requestsBy, type Window } from './port.ts';

interface Row {
  note: Note;
  readonly held: Map<string, { readonly held: Held; readonly until: number; readonly bytes: number }>;
  readonly windows: Record<string, { used: number; endsAt: number }>;
  isAccepted: boolean;
  /** Until then it has something that may not be evicted. */
  until: number;
}

/** Accounts of which nothing has to be kept, by whether the upstream has accepted them: made-up credentials evict no others. */
const MOST_IDLE = 50_000;
/** Of all records. */
const MAX_RECORD_BYTES = 67_108_864;
const RECORD_BYTES = 500;
const MOST_BUSY = 100_000;
const SWEEP_MS = 1_000;
const BY_ADDRESS = requestsBy('address');

/** Notes, records and counts of this process. Those with marks, records or sessions that ended are kept until their time is over. */
export class MemoryBackend implements Backend {
  readonly isHere = true;
  readonly noteMs = 0; // one that is made anew has other versions
  readonly reliableAt = -Infinity;
  readonly now: () => number;
  readonly #accepted = recent<AccountId, Row>(MOST_IDLE);
  readonly #others = recent<AccountId, Row>(MOST_IDLE);
  readonly #busy = new Map<AccountId, Row>();
  #recordBytes = 0;
  #sweptAt = -Infinity;

  constructor({ now }: { readonly now: () => number }) {
    this.now = now;
  }

  look(account: AccountId, _keys?: readonly CacheKey[], key?: string): Looked {
    const seen = this.peek(account);
    if (key === undefined) return seen;
    const kept = this.#rowOf(account).held.get(key);
    return { ...seen, held: kept && kept.until > this.now() ? kept.held : undefined };
  }

  peek(account: AccountId): Seen {
    const { note } = this.#rowOf(account);
    return { note, seen: note, token: '' };
  }

  swap(account: AccountId, { seen }: Seen, { note, lifeMs, record, isBeginning }: Next): Swapped {
    const row = this.#rowOf(account);
    if (row.note !== seen) return 'other';
    const now = this.now();
    if (isBeginning && record && this.#isFull(now)) return 'full';
    row.note = note;
    if (record) this.#settle(row, record, now);
    const untils = [...row.held.values()].map(({ until }) => until);
    row.until = Math.max(now + lifeMs, ...untils);
    this.#place(account, row, now);
    return 'done';
  }

  count(account: AccountId, { name, lengthMs }: Pick<Window, 'name' | 'lengthMs'>, many: number): Count {
    const { windows } = this.#rowOf(account);
    // No credential is behind an address, and those that are made up may not evict its limit.
    if (name === BY_ADDRESS) this.accept(account);
    const now = this.now();
    const known = windows[name];
    const open = known && known.endsAt > now ? known : (windows[name] = { used: 0, endsAt: now + lengthMs });
    open.used += many;
    return { used: open.used, endsAt: open.endsAt };
  }

  accept(account: AccountId): void {
    const row = this.#find(account);
    if (!row || row.isAccepted) return;
    row.isAccepted = true;
    if (this.#others.delete(account)) this.#accepted.set(account, row);
  }

  #find(account: AccountId): Row | undefined {
    return this.#busy.get(account) ?? this.#accepted.get(account) ?? this.#others.get(account);
  }

  #rowOf(account: AccountId): Row {
    const known = this.#find(account);
    if (known) return known;
    const made: Row = { note: newNote(), held: new Map(), windows: {}, isAccepted: false, until: 0 };
    this.#others.set(account, made);
    return made;
  }

  #settle(row: Row, { key, held, lifeMs }: NonNullable<Next['record']>, now: number): void {
    const before = row.held.get(key);
    row.held.delete(key); // the order is that of their ends
    this.#recordBytes -= before?.bytes ?? 0;
    if (held) {
      const bytes = bytesOf(held);
      row.held.set(key, { held, until: now + lifeMs, bytes });
      this.#recordBytes += bytes;
    }
    this.#expire(row, now);
  }

  #expire({ held }: Row, now: number): void {
    for (const [key, { until, bytes }] of held) {
      if (until > now) continue;
      held.delete(key);
      this.#recordBytes -= bytes;
    }
  }

  /** Where it belongs: it may be evicted when nothing in it has to be kept. */
  #place(account: AccountId, row: Row, now: number): void {
    const idle = row.isAccepted ? this.#accepted : this.#others;
    if (row.until > now) {
      idle.delete(account);
      this.#busy.set(account, row);
      if (this.#busy.size > MOST_BUSY) this.#sweep(now);
    } else if (this.#busy.delete(account) || !idle.has(account)) idle.set(account, row);
  }

  #isFull(now: number): boolean {
    if (this.#recordBytes < MAX_RECORD_BYTES) return false;
    this.#sweep(now);
    return this.#recordBytes >= MAX_RECORD_BYTES;
  }

  #sweep(now: number): void {
    if (Math.abs(now - this.#sweptAt) < SWEEP_MS) return;
    this.#sweptAt = now;
    for (const [account, row] of this.#busy) {
      this.#expire(row, now);
      if (row.until <= now) this.#place(account, row, now);
    }
  }
}

const bytesOf = ({ record: { outcome } }: Held) =>
  RECORD_BYTES + (typeof outcome === 'object' ? (outcome.text?.length ?? 0) : 0);
