import { bytesOf, type Holdings, PART } from '../bounded.ts';
import type { Owner } from '../owner.ts';
import type { WriteBegin } from '../shared/engine.ts';
import type { WriteRecord } from '../store.ts';
import type { Row, WriteKinds, WriteRows } from '../writes.ts';

const ROW_BYTES = 500;
/** Of a longer answer the record says only that the write was sent. */
const MAX_CHARACTERS = 65_536;
/** The same where there is no room any more: many writes may have begun while there was. */
const SHORT_CHARACTERS = 512;

/** Marks and records of one account of this process. None is evicted: where there is no room, a write is refused. */
export class MemoryRows implements WriteRows<WriteRecord> {
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
    const most = this.#roomOf(this.#owner).hasRoomFor(this.#owner) ? MAX_CHARACTERS : SHORT_CHARACTERS;
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
