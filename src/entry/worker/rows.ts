import type { DurableObjectStorage, SqlValue } from 'cloudflare:workers';
import { LEAST_RECORD_BYTES, MAX_COPIES, MAX_HELD_BYTES } from '../../store/shared/engine.ts';
import type { Versions, Row, WriteKinds, WriteRows, WriteBegin } from '../../store/writes.ts';

/** The JSON of each kind of row. Names and fields are those in SQLite. */
interface Kinds extends WriteKinds {
  copy: { readonly version: string; readonly askedAt: number; readonly keptAt: number; readonly freshUntil: number };
  window: { readonly upTo: number; readonly endsAt: number };
  /** When it ends. */
  cooldown: number;
  /** A session that was revoked. */
  session: true;
  /** Of the sessions. Earlier releases had random text. */
  epoch: number | string;
  versions: Versions['facts'];
  secret: string;
}

/**
 * The key comes before the value, which may fill hundreds of pages. Without a row id there is no second index. Tables of
 * earlier releases have other names, and are deleted with all the rest.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS kept (
  kind TEXT NOT NULL, name TEXT NOT NULL, facts TEXT NOT NULL, until INTEGER NOT NULL, value BLOB,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID`;

/** The end of what does not expire. */
export const FOREVER = Number.MAX_SAFE_INTEGER;

/** What a row of these kinds counts as at least. */
const LEAST_BYTES = { copy: MAX_HELD_BYTES / MAX_COPIES, record: LEAST_RECORD_BYTES } as const;

type Held = keyof typeof LEAST_BYTES;

const isHeld = (kind: keyof Kinds): kind is Held => kind in LEAST_BYTES;

/** How long expired rows, which are not found any more, wait for the alarm that deletes them. */
const SWEEP_MS = 60_000;

/**
 * The rows of one account in SQLite; the table is made with the first. Statements without an `await` between them are
 * one transaction, and the platform sends no reply before it is on disk: so each call of an account is atomic.
 */
export class Rows implements WriteRows<Uint8Array> {
  readonly #storage: DurableObjectStorage;
  #isThere: boolean;
  /** When the alarm is set. An object that was evicted learns it with its next row. */
  #alarmAt = Infinity;

  /** What these kinds take at most: what they took when they were last counted, and all that was put since. */
  readonly #held = { copy: Infinity, record: Infinity };

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#isThere = this.#run(`SELECT name FROM sqlite_master WHERE name = 'kept'`).length > 0;
  }

  find<Kind extends keyof Kinds>(kind: Kind, name: string, now: number): Kinds[Kind] | undefined {
    return this.#facts(kind, `AND name = ? AND until > ?`, name, now)[0];
  }

  /** Expired ones too. */
  all<Kind extends keyof Kinds>(kind: Kind): readonly Kinds[Kind][] {
    return this.#facts(kind, '');
  }

  /** Of a row that was found. */
  valueOf(kind: keyof Kinds, name: string): Uint8Array {
    const query = `SELECT value FROM kept WHERE kind = ? AND name = ?`;
    return new Uint8Array(this.#run<{ value: ArrayBuffer }>(query, kind, name)[0]?.value ?? []);
  }

  put<Kind extends keyof Kinds>(kind: Kind, name: string, { facts, value, until }: Row<Kinds[Kind], Uint8Array>): void {
    if (!this.#isThere) this.#run(TABLE);
    this.#isThere = true;
    const query = `INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?)`;
    this.#run(query, kind, name, JSON.stringify(facts), Math.ceil(until), value ?? null);
    if (isHeld(kind)) this.#held[kind] += Math.max(LEAST_BYTES[kind], value?.byteLength ?? 0);
    if (until + SWEEP_MS < this.#alarmAt) this.#setAlarm();
  }

  hasRoomFor({ record }: WriteBegin, now: number): boolean {
    return !record || this.hasRoom('record', record.key, record.value.byteLength, now);
  }

  /** Whether a value of so many bytes may be put under this name. */
  hasRoom(kind: Held, name: string, bytes: number, now: number): boolean {
    const [least, room] = [LEAST_BYTES[kind], MAX_HELD_BYTES - bytes];
    if (this.#held[kind] <= room) return true;
    const query = `SELECT TOTAL(MAX(LENGTH(value), ?)) AS held FROM kept WHERE kind = ? AND name <> ? AND until > ?`;
    this.#held[kind] = this.#ask<{ held: number }>(query, least, kind, name, now)[0]?.held ?? 0;
    return this.#held[kind] <= room;
  }

  /** One row, or all of the kind. */
  drop(kind: keyof Kinds, name?: string): void {
    if (name === undefined) this.#ask(`DELETE FROM kept WHERE kind = ?`, kind);
    else this.#ask(`DELETE FROM kept WHERE kind = ? AND name = ?`, kind, name);
  }

  dropExpired(now: number): void {
    this.#ask(`DELETE FROM kept WHERE until <= ?`, now);
  }

  /** Deletes expired rows. Returns whether any are left, versions aside. */
  sweep(now: number): boolean {
    this.#alarmAt = Infinity;
    this.dropExpired(now);
    if (this.#firstEnd() === undefined) return false;
    this.#setAlarm();
    return true;
  }

  async clear(): Promise<void> {
    this.#isThere = false;
    await this.#storage.deleteAll();
  }

  /** From the rows and not from now on, so that an alarm is not postponed each time that the object is evicted. */
  #setAlarm(): void {
    const first = this.#firstEnd() ?? FOREVER;
    if (first === FOREVER) return;
    this.#alarmAt = first + SWEEP_MS;
    void this.#storage.setAlarm(this.#alarmAt);
  }

  #firstEnd(): number | undefined {
    const query = `SELECT MIN(until) AS first FROM kept WHERE kind <> 'versions'`;
    return this.#ask<{ first: number | null }>(query)[0]?.first ?? undefined;
  }

  #facts<Kind extends keyof Kinds>(kind: Kind, and: string, ...bindings: (string | number)[]): Kinds[Kind][] {
    const rows = this.#ask<{ facts: string }>(`SELECT facts FROM kept WHERE kind = ? ${and}`, kind, ...bindings);
    return rows.map(({ facts }) => JSON.parse(facts) as Kinds[Kind]);
  }

  /** Without a table there are no rows. */
  #ask<Columns extends Record<string, SqlValue>>(query: string, ...bindings: (string | number)[]): Columns[] {
    return this.#isThere ? this.#run(query, ...bindings) : [];
  }

  #run<Columns extends Record<string, SqlValue>>(query: string, ...bindings: (SqlValue | Uint8Array)[]): Columns[] {
    return this.#storage.sql.exec<Columns>(query, ...bindings).toArray();
  }
}
