import type { DurableObjectStorage } from 'cloudflare:workers';
import type { NewCopy, NewRecord } from '../../store/shared/remote.ts';

interface CopyRow extends Record<string, string | number> {
  versions: string;
  asked_at: number;
  kept_at: number;
}

interface RecordRow extends Record<string, string | number | ArrayBuffer> {
  nonce: string;
  stage: string;
  value: ArrayBuffer;
  written_at: number;
}

const TABLES = `
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS copies (
  key TEXT PRIMARY KEY, versions TEXT NOT NULL, asked_at REAL NOT NULL, value BLOB NOT NULL,
  kept_at INTEGER NOT NULL, expires_at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS records (
  key TEXT PRIMARY KEY, nonce TEXT NOT NULL, stage TEXT NOT NULL, value BLOB NOT NULL,
  written_at INTEGER NOT NULL, expires_at INTEGER NOT NULL
);`;

/** How often at most what is over is swept away; nobody is given it in the meantime. */
const SWEEP_MS = 60_000;

/** What one account keeps in SQLite. The tables come with the first thing that is kept, and go with the last. */
export class Shelf {
  readonly #storage: DurableObjectStorage;
  #isThere: boolean;
  #sweepAt: number | undefined;
  #heldUntil: number;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#isThere = this.#rows(`SELECT name FROM sqlite_master WHERE name = 'notes'`).length > 0;
    this.#heldUntil = Number(this.#note('held until') ?? 0);
  }

  get heldUntil(): number {
    return this.#heldUntil;
  }

  hold(until: number): void {
    if (until <= this.#heldUntil) return;
    this.#heldUntil = until;
    this.#write(`INSERT OR REPLACE INTO notes VALUES ('held until', ?)`, String(until));
    this.#sweepBy(until);
  }

  secret(make: () => string): string {
    const known = this.#note('secret');
    if (known !== undefined) return known;
    const made = make();
    this.#write(`INSERT INTO notes VALUES ('secret', ?)`, made);
    return made;
  }

  versions(): { epoch: string; tags: [string, string][] } | undefined {
    const text = this.#note('versions');
    return text === undefined ? undefined : (JSON.parse(text) as { epoch: string; tags: [string, string][] });
  }

  keepVersions(epoch: string, tags: ReadonlyMap<string, string>): void {
    this.#write(`INSERT OR REPLACE INTO notes VALUES ('versions', ?)`, JSON.stringify({ epoch, tags: [...tags] }));
  }

  copy(key: string, now: number): { versions: string; askedAt: number; keptAt: number } | undefined {
    if (!this.#isThere) return undefined;
    const query = `SELECT versions, asked_at, kept_at FROM copies WHERE key = ? AND expires_at > ?`;
    const [row] = this.#rows<CopyRow>(query, key, now);
    return row && { versions: row.versions, askedAt: row.asked_at, keptAt: row.kept_at };
  }

  valueOf(key: string): Uint8Array | undefined {
    const [row] = this.#rows<{ value: ArrayBuffer }>(`SELECT value FROM copies WHERE key = ?`, key);
    return row && new Uint8Array(row.value);
  }

  keepCopy({ key, versions, askedAt, value, lifeMs }: NewCopy, now: number): void {
    const expiresAt = Math.ceil(now + lifeMs);
    const query = `INSERT OR REPLACE INTO copies VALUES (?, ?, ?, ?, ?, ?)`;
    this.#write(query, key, versions, askedAt, value, now, expiresAt);
    this.#sweepBy(expiresAt);
  }

  record(key: string, now: number): RecordRow | undefined {
    if (!this.#isThere) return undefined;
    const query = `SELECT nonce, stage, value, written_at FROM records WHERE key = ? AND expires_at > ?`;
    return this.#rows<RecordRow>(query, key, now)[0];
  }

  keepRecord({ key, nonce, stage, value, lifeMs }: NewRecord, now: number): void {
    const expiresAt = Math.ceil(now + lifeMs);
    this.#write(`INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?)`, key, nonce, stage, value, now, expiresAt);
    this.#sweepBy(expiresAt);
  }

  dropRecord(key: string, nonce: string): void {
    if (this.#isThere) this.#rows(`DELETE FROM records WHERE key = ? AND nonce = ?`, key, nonce);
  }

  /** Throws away what is over; says whether nothing is left. */
  async sweep(now: number): Promise<boolean> {
    this.#sweepAt = undefined;
    if (!this.#isThere) return true;
    this.#rows(`DELETE FROM copies WHERE expires_at <= ?`, now);
    this.#rows(`DELETE FROM records WHERE expires_at <= ?`, now);
    const end = this.#firstEnd();
    const at = end < Infinity ? end : this.#heldUntil;
    if (at > now || this.#note('secret') !== undefined) {
      if (at > now) this.#sweepBy(at);
      return false;
    }
    this.#isThere = false;
    await this.#storage.deleteAll();
    return true;
  }

  /** When the first of what is kept is over. */
  #firstEnd(): number {
    const all = `SELECT expires_at FROM copies UNION ALL SELECT expires_at FROM records`;
    return this.#rows<{ at: number | null }>(`SELECT MIN(expires_at) AS at FROM (${all})`)[0]?.at ?? Infinity;
  }

  #sweepBy(at: number): void {
    // An object that was put away knows of its alarm no more.
    const first = this.#sweepAt === undefined ? Math.min(at, this.#firstEnd()) : at;
    const wanted = Math.max(first, Date.now() + SWEEP_MS);
    if (this.#sweepAt !== undefined && this.#sweepAt <= wanted) return;
    this.#sweepAt = wanted;
    void this.#storage.setAlarm(wanted);
  }

  #note(name: string): string | undefined {
    if (!this.#isThere) return undefined;
    return this.#rows<{ value: string }>(`SELECT value FROM notes WHERE name = ?`, name)[0]?.value;
  }

  #write(query: string, ...bindings: (string | number | Uint8Array)[]): void {
    if (!this.#isThere) this.#rows(TABLES);
    this.#isThere = true;
    this.#rows(query, ...bindings);
  }

  #rows<Row extends Record<string, string | number | ArrayBuffer | null>>(
    query: string,
    ...bindings: (string | number | Uint8Array)[]
  ): Row[] {
    return this.#storage.sql.exec<Row>(query, ...bindings).toArray();
  }
}
