import { bytesOf, Holdings, PART } from '../bounded.ts';
import {
  type AccountId,
  isAddress,
  type NewWrite,
  type Owner,
  type Tag,
  type WriteEnd,
  type WriteRecord,
} from '../store.ts';
import {
  beginOf,
  endedOf,
  type Row,
  type WriteKinds,
  type WriteRows,
  Writes,
  type WriteBegin,
  type WriteBegun,
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

interface WritesOfAccount {
  readonly rows: MemoryRows;
  readonly writes: Writes<WriteRecord>;
}

/** The writes of all accounts of this process. */
export class MemoryWrites {
  readonly #accounts = new Map<AccountId, WritesOfAccount>();
  readonly #room = new Holdings(MAX_BYTES);
  readonly #roomOfOthers = new Holdings(MAX_BYTES / 2);
  readonly #renew: (account: AccountId, tags: readonly Tag[]) => void;
  #sweptAt = -Infinity;

  /** `renew`: called when what has these tags is no longer valid. */
  constructor(renew: (account: AccountId, tags: readonly Tag[]) => void) {
    this.#renew = renew;
  }

  get records(): number {
    return [...this.#accounts.values()].reduce((sum, { rows }) => sum + rows.records, 0);
  }

  /** Whether no copy with these tags may be used or kept. Without `now`, as it was when somebody last asked. */
  covers(account: AccountId, tags: readonly Tag[], now?: number): boolean {
    const writes = this.#accounts.get(account)?.writes;
    if (!writes) return false;
    if (now !== undefined) writes.expire(now);
    this.#forgetIfEmpty(account);
    return writes.covers(tags);
  }

  /** `cooldownMs`: how much longer the upstream wants no calls of the account. */
  begin(write: NewWrite, cooldownMs: number): WriteBegun<WriteRecord> {
    const { account, now } = write;
    const { rows, writes } = this.#of(write);
    writes.expire(now);
    const begin = beginOf(write, Infinity); // a record under way does not expire, however long that is
    let begun = writes.begin(begin, now, cooldownMs);
    if (begun.is === 'full') {
      rows.dropExpired(now);
      this.#sweep(now);
      begun = writes.begin(begin, now, cooldownMs);
    }
    if (rows.size > 0) this.#accounts.set(account, { rows, writes }); // it may have been swept
    this.#forgetIfEmpty(account);
    return begun;
  }

  end(write: NewWrite, end: WriteEnd): void {
    this.#of(write).writes.end(endedOf(write, end, write.now), write.now);
    this.#forgetIfEmpty(write.account);
  }

  /** The account's records and marks are in its own share from now on. */
  accept(account: AccountId): void {
    this.#accounts.get(account)?.rows.give(account);
  }

  #of({ account, owner }: NewWrite): WritesOfAccount {
    const before = this.#accounts.get(account);
    if (before) return before;
    const rows = new MemoryRows((one) => (isAddress(one) ? this.#roomOfOthers : this.#room), owner);
    const made = { rows, writes: new Writes(rows, (tags) => this.#renew(account, tags)) };
    this.#accounts.set(account, made);
    return made;
  }

  #sweep(now: number): void {
    if (Math.abs(now - this.#sweptAt) < SWEEP_MS) return;
    this.#sweptAt = now;
    for (const [account, { rows, writes }] of this.#accounts) {
      writes.expire(now);
      rows.dropExpired(now);
      this.#forgetIfEmpty(account);
    }
  }

  #forgetIfEmpty(account: AccountId): void {
    if (this.#accounts.get(account)?.rows.size === 0) this.#accounts.delete(account);
  }
}

/** Marks and records of one account of this process. None is evicted: where there is no room, a write is refused. */
class MemoryRows implements WriteRows<WriteRecord> {
  readonly #rows = new Map<string, Row<unknown, WriteRecord>>();
  readonly #roomOf: (owner: Owner) => Holdings;
  #owner: Owner;
  #held = 0;

  /** `roomOf`: what rows of an owner are counted in, in bytes. */
  constructor(roomOf: (owner: Owner) => Holdings, owner: Owner) {
    this.#roomOf = roomOf;
    this.#owner = owner;
  }

  get size(): number {
    return this.#rows.size;
  }

  get records(): number {
    return [...this.#rows.values()].filter(({ value }) => value).length;
  }

  find<Kind extends keyof WriteKinds>(kind: Kind, name: string, now: number): WriteKinds[Kind] | undefined {
    const row = this.#rows.get(`${kind} ${name}`);
    return row && row.until > now ? (row.facts as WriteKinds[Kind]) : undefined;
  }

  /** None, when an account begins. */
  all(): readonly [] {
    return [];
  }

  valueOf(kind: 'record', name: string): WriteRecord {
    return this.#rows.get(`${kind} ${name}`)?.value ?? { fingerprint: '', outcome: 'unknown' };
  }

  put<Kind extends keyof WriteKinds>(kind: Kind, name: string, row: Row<WriteKinds[Kind], WriteRecord>): void {
    const key = `${kind} ${name}`;
    this.#delete(key);
    const most = this.#roomOf(this.#owner).hasRoomFor(this.#owner, PART) ? MAX_CHARACTERS : SHORT_CHARACTERS;
    const kept = { ...row, value: row.value && shortened(row.value, most) };
    this.#rows.set(key, kept);
    this.#hold(bytesOfRow(key, kept));
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
  hasRoomFor({ record }: WriteBegin<WriteRecord>): boolean {
    return this.#roomOf(this.#owner).hasRoomFor(this.#owner, record ? PART : 2 * PART);
  }

  /** They are in that one's share from now on. */
  give(owner: Owner): void {
    const held = this.#held;
    this.#hold(-held);
    this.#owner = owner;
    this.#hold(held);
  }

  #delete(key: string): void {
    const row = this.#rows.get(key);
    if (row) this.#hold(-bytesOfRow(key, row));
    this.#rows.delete(key);
  }

  #hold(bytes: number): void {
    this.#held += bytes;
    this.#roomOf(this.#owner).add(this.#owner, bytes);
  }
}

const textOf = (outcome?: WriteRecord['outcome']) => (typeof outcome === 'object' ? (outcome.text ?? '') : '');

const bytesOfRow = (key: string, { value }: Row<unknown, WriteRecord>) =>
  bytesOf(key) + bytesOf(textOf(value?.outcome)) + ROW_BYTES;

const shortened = (record: WriteRecord, most: number): WriteRecord =>
  textOf(record.outcome).length > most ? { ...record, outcome: 'unknown' } : record;
