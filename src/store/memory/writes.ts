import { bytesOf, Holdings, PART } from '../bounded.ts';
import { isAddress } from '../store.ts';
import type { AccountId, NewWrite, OwnedAccount, Owner, Tag, WriteEnd, WriteRecord } from '../store.ts';
import {
  beginOf,
  endedOf,
  type Row,
  type WriteBegin,
  type WriteBegun,
  type WriteKinds,
  type WriteRows,
  Writes,
} from '../writes.ts';

/** Of all rows of a process. Credentials that were never accepted have half as much, of their own. */
const MAX_BYTES = 67_108_864;
/** Between searches for what has expired, which take milliseconds. */
const SWEEP_MS = 1_000;
const ROW_BYTES = 500;
/** Of a longer answer the record says only that the write was sent. */
const MAX_CHARACTERS = 65_536;
/** The same where there is no room any more: many writes may have begun while there was. */
const SHORT_CHARACTERS = 512;

/** The writes of all accounts of this process. */
export class MemoryWrites {
  /** Those that have rows. */
  readonly accounts = new Map<AccountId, MemoryRows>();
  /** For rows, in bytes. */
  readonly room = new Holdings(MAX_BYTES);
  readonly roomOfOthers = new Holdings(MAX_BYTES / 2);
  /** Called when what has these tags is no longer valid. */
  readonly renew: (account: AccountId, tags: readonly Tag[]) => void;
  #sweptAt = -Infinity;

  constructor(renew: MemoryWrites['renew']) {
    this.renew = renew;
  }

  usage() {
    return {
      records: [...this.accounts.values()].reduce((sum, { records }) => sum + records, 0),
      recordBytes: this.room.total,
      recordBytesLimit: MAX_BYTES,
    };
  }

  /** Whether no copy with these tags may be used or kept. Without `now`, as it was when somebody last asked. */
  covers(account: AccountId, tags: readonly Tag[], now?: number): boolean {
    const writes = this.accounts.get(account)?.writes;
    if (!writes) return false;
    if (now !== undefined) writes.expire(now);
    return writes.covers(tags);
  }

  /** `cooldownMs`: how much longer the upstream wants no calls of the account. */
  begin(write: NewWrite, cooldownMs: number): WriteBegun<WriteRecord> {
    const { writes } = this.#of(write);
    writes.expire(write.now);
    // A record under way does not expire, however long that is.
    return writes.begin(beginOf(write, Infinity), write.now, cooldownMs);
  }

  end(write: NewWrite, end: WriteEnd): void {
    this.#of(write).writes.end(endedOf(write, end, write.now), write.now);
  }

  /** The account's rows are in its own share from now on. */
  accept(account: AccountId): void {
    this.accounts.get(account)?.give(account);
  }

  /** Drops what has expired, of all accounts. */
  sweep(now: number): void {
    if (Math.abs(now - this.#sweptAt) < SWEEP_MS) return;
    this.#sweptAt = now;
    for (const rows of this.accounts.values()) {
      rows.writes.expire(now);
      rows.dropExpired(now);
    }
  }

  #of(write: NewWrite): MemoryRows {
    return this.accounts.get(write.account) ?? new MemoryRows(this, write);
  }
}

type Kept = Row<unknown, WriteRecord> & { readonly bytes: number };

/** Marks and records of one account of this process. None is evicted: where there is no room, a write is refused. */
class MemoryRows implements WriteRows<WriteRecord> {
  readonly writes: Writes<WriteRecord>;
  readonly #process: MemoryWrites;
  readonly #account: AccountId;
  readonly #rows = new Map<string, Kept>();
  #owner: Owner;

  constructor(process: MemoryWrites, { account, owner }: OwnedAccount) {
    this.writes = new Writes(this, (tags) => process.renew(account, tags));
    this.#process = process;
    this.#account = account;
    this.#owner = owner;
  }

  get records(): number {
    return [...this.#rows.values()].filter(({ value }) => value).length;
  }

  find<Kind extends keyof WriteKinds>(kind: Kind, name: string, now: number): WriteKinds[Kind] | undefined {
    const row = this.#rows.get(`${kind} ${name}`);
    return row && row.until > now ? (row.facts as WriteKinds[Kind]) : undefined;
  }

  valueOf(kind: 'record', name: string): WriteRecord {
    return this.#rows.get(`${kind} ${name}`)?.value ?? { fingerprint: '', outcome: 'unknown' };
  }

  put<Kind extends keyof WriteKinds>(kind: Kind, name: string, row: Row<WriteKinds[Kind], WriteRecord>): void {
    const key = `${kind} ${name}`;
    this.#delete(key);
    const most = this.#hasRoom(PART) ? MAX_CHARACTERS : SHORT_CHARACTERS;
    const value = row.value && shortened(row.value, most);
    const bytes = bytesOf(key) + bytesOf(textOf(value)) + ROW_BYTES;
    this.#rows.set(key, { ...row, value, bytes });
    this.#room.add(this.#owner, bytes);
    this.#process.accounts.set(this.#account, this);
  }

  drop(kind: keyof WriteKinds, name: string): void {
    this.#delete(`${kind} ${name}`);
  }

  /** Records were settled in this order, and the first expire first. Those under way, and marks, end by themselves. */
  dropExpired(now: number): void {
    for (const [key, { until, value }] of this.#rows) {
      if (until <= now) this.#delete(key);
      else if (value && until < Infinity) return;
    }
  }

  /** A write without a key is remembered for a minute only: it still has room where those with one have none. */
  hasRoomFor({ record }: WriteBegin<WriteRecord>, now: number): boolean {
    const part = record ? PART : 2 * PART;
    if (this.#hasRoom(part)) return true;
    this.dropExpired(now);
    this.#process.sweep(now);
    return this.#hasRoom(part);
  }

  /** They are in that one's share from now on. */
  give(owner: Owner): void {
    const bytes = [...this.#rows.values()].reduce((sum, row) => sum + row.bytes, 0);
    this.#room.add(this.#owner, -bytes);
    this.#owner = owner;
    this.#room.add(owner, bytes);
  }

  #delete(key: string): void {
    this.#room.add(this.#owner, -(this.#rows.get(key)?.bytes ?? 0));
    this.#rows.delete(key);
    if (this.#rows.size === 0) this.#process.accounts.delete(this.#account);
  }

  get #room(): Holdings {
    return isAddress(this.#owner) ? this.#process.roomOfOthers : this.#process.room;
  }

  #hasRoom(part: number): boolean {
    return this.#room.hasRoomFor(this.#owner, part);
  }
}

const textOf = (record?: WriteRecord) => (typeof record?.outcome === 'object' ? (record.outcome.text ?? '') : '');

const shortened = (record: WriteRecord, most: number): WriteRecord =>
  textOf(record).length > most ? { ...record, outcome: 'unknown' } : record;
