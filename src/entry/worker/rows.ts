import type { DurableObjectStorage, SqlValue } from 'cloudflare:workers';
import type { Mark } from '../../store/marks.ts';

/** What there is of each kind, besides bytes. */
interface Kinds {
  copy: {
    readonly version: string;
    readonly askedAt: number;
    readonly keptAt: number;
    readonly freshUntil: number;
  };
  /** Without `busyUntil` it is settled. */
  record: { readonly nonce: string; readonly busyUntil?: number };
  mark: Mark;
  /** A write that was ended before it was begun. */
  gone: true;
  /** `upTo`: what may be counted before it is written again. */
  window: { readonly upTo: number; readonly endsAt: number };
  /** When it ends. */
  cooldown: number;
  versions: { readonly epoch: string; readonly tags: readonly (readonly [string, string])[] };
  secret: string;
}

export type Kept<Kind extends keyof Kinds> = Kinds[Kind];

interface Row<Kind extends keyof Kinds> {
  readonly facts: Kept<Kind>;
  readonly value?: Uint8Array;
  /** Absent: for ever. */
  readonly until?: number;
}

/**
 * One table for all kinds, of another name than those of earlier releases, which go with everything else. What it is
 * searched by comes before the bytes, which may lie on hundreds of pages; without a row id there is no second index.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS kept (
  kind TEXT NOT NULL, name TEXT NOT NULL, facts TEXT NOT NULL, until INTEGER NOT NULL, value BLOB,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID`;

const FOREVER = Number.MAX_SAFE_INTEGER;

/** What is over is deleted after this, together with what is over by then; nobody is given it in the meantime. */
const SWEEP_MS = 60_000;

/**
 * What one account keeps in SQLite. The table comes with the first row. Statements that no `await` separates are one
 * transaction, and the platform holds an answer back until it is on disk, so each of an account's questions is atomic.
 */
export class Rows {
  readonly #storage: DurableObjectStorage;
  #isThere: boolean;
  /** As far as this object knows: one that was put away finds out with the next row that it writes. */
  #wakesAt = Infinity;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#isThere = this.#run(`SELECT name FROM sqlite_master WHERE name = 'kept'`).length > 0;
  }

  find<Kind extends keyof Kinds>(kind: Kind, name: string, now: number): Kept<Kind> | undefined {
    if (!this.#isThere) return undefined;
    const query = `SELECT facts FROM kept WHERE kind = ? AND name = ? AND until > ?`;
    return this.#facts<Kind>(query, kind, name, now)[0];
  }

  /** Those that are over too. */
  all<Kind extends keyof Kinds>(kind: Kind): readonly Kept<Kind>[] {
    return this.#isThere ? this.#facts<Kind>(`SELECT facts FROM kept WHERE kind = ?`, kind) : [];
  }

  /** Of what has been found. */
  valueOf(kind: keyof Kinds, name: string): Uint8Array {
    const query = `SELECT value FROM kept WHERE kind = ? AND name = ?`;
    return new Uint8Array(this.#run<{ value: ArrayBuffer }>(query, kind, name)[0]?.value ?? []);
  }

  put<Kind extends keyof Kinds>(kind: Kind, name: string, { facts, value, until = FOREVER }: Row<Kind>): void {
    if (!this.#isThere) this.#run(TABLE);
    this.#isThere = true;
    const query = `INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?)`;
    this.#run(query, kind, name, JSON.stringify(facts), Math.ceil(until), value ?? null);
    if (until + SWEEP_MS < this.#wakesAt) this.#setAlarm();
  }

  drop(kind: keyof Kinds, name: string): void {
    if (this.#isThere) this.#run(`DELETE FROM kept WHERE kind = ? AND name = ?`, kind, name);
  }

  dropAll(kind: keyof Kinds): void {
    if (this.#isThere) this.#run(`DELETE FROM kept WHERE kind = ?`, kind);
  }

  dropOver(now: number): void {
    if (this.#isThere) this.#run(`DELETE FROM kept WHERE until <= ?`, now);
  }

  /** Deletes what is over; says whether anything is left for which versions have to be known. */
  sweep(now: number): boolean {
    this.#wakesAt = Infinity;
    this.dropOver(now);
    if (this.#firstEnd() === undefined) return false;
    this.#setAlarm();
    return true;
  }

  async clear(): Promise<void> {
    this.#isThere = false;
    await this.#storage.deleteAll();
  }

  /** By what is in the table, and not by the time it is: being put away and made anew does not postpone an alarm. */
  #setAlarm(): void {
    const first = this.#firstEnd() ?? FOREVER;
    if (first === FOREVER) return;
    this.#wakesAt = first + SWEEP_MS;
    void this.#storage.setAlarm(this.#wakesAt);
  }

  #firstEnd(): number | undefined {
    if (!this.#isThere) return undefined;
    const query = `SELECT MIN(until) AS first FROM kept WHERE kind <> 'versions'`;
    return this.#run<{ first: number | null }>(query)[0]?.first ?? undefined;
  }

  #facts<Kind extends keyof Kinds>(query: string, ...bindings: readonly (Kind | string | number)[]): Kept<Kind>[] {
    return this.#run<{ facts: string }>(query, ...bindings).map(({ facts }) => JSON.parse(facts) as Kept<Kind>);
  }

  #run<Columns extends Record<string, SqlValue>>(query: string, ...bindings: (SqlValue | Uint8Array)[]): Columns[] {
    return this.#storage.sql.exec<Columns>(query, ...bindings).toArray();
  }
}
