import { DurableObject, type SqlValue } from 'cloudflare:workers';
import { type Clock, within } from '../../core/runtime.ts';
import type { Swapped } from '../../store/backend.ts';
import type { Period, WindowUse } from '../../store/port.ts';
import { COPY_HEAD, FIRST_REV, NOTE, REV, type SealedNext, type SealedValue, type Shelf } from '../../store/sealed.ts';

/** The state is found through its class, since only our types of that module have a name for it. */
type State = ConstructorParameters<typeof DurableObject>[0];

/**
 * The table of 0.2: the secret that an object made then is still found, and all else of it expires. The key comes before
 * the value, which may fill many pages, and without a row id there is no second index.
 */
const TABLE = `CREATE TABLE IF NOT EXISTS kept (
  kind TEXT NOT NULL, name TEXT NOT NULL, facts TEXT NOT NULL, until INTEGER NOT NULL, value BLOB,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID`;

/** `facts` is empty for a sealed value, the number for a count, and the JSON of a secret. */
type Kind = 'sealed' | 'count' | 'secret';

type Row = { readonly facts: string; readonly until: number; readonly value: ArrayBuffer | null };

/** The end of what does not expire. */
const FOREVER = Number.MAX_SAFE_INTEGER;

/** How long rows that have expired, and are not found any more, wait for the alarm. */
const SWEEP_MS = 600_000;

/** A copy that seems to have been asked for so much later is from before a clock was set back. */
const LATER_MS = 60_000;

const decoder = new TextDecoder();

/**
 * Keeps what instances share of one account. No call waits for anything, so calls are made one after the other, each is one
 * transaction, and the platform sends no reply before it is on disk. Each reply has the object's time.
 */
export class Account extends DurableObject {
  readonly #now: () => number;
  /** Not before the first row is: made-up credentials leave nothing. */
  #hasTable: boolean;
  /** An object that was evicted learns it with its next row. */
  #alarmAt = Infinity;

  constructor(ctx: State, env: unknown, now: () => number = () => Date.now()) {
    super(ctx, env);
    this.#now = now;
    this.#hasTable = this.#run(`SELECT name FROM sqlite_master WHERE name = 'kept'`).length > 0;
  }

  read(names: readonly string[]) {
    const now = this.#now();
    return { now, values: names.map((name) => this.#valueOf(name, now)) };
  }

  swap(seen: string, { note, record }: SealedNext): { now: number; swapped: Swapped } {
    const now = this.#now();
    const before = this.#valueOf(NOTE, now);
    if ((before ? revOf(before) : '') !== seen) return { now, swapped: 'other' };
    this.#putSealed(note, now, this.#find('sealed', NOTE, now)?.until); // another policy may have longer lives
    if (record?.value) this.#putSealed({ ...record, value: record.value }, now);
    else if (record) this.#ask(`DELETE FROM kept WHERE kind = 'sealed' AND name = ?`, record.name);
    return { now, swapped: 'done' };
  }

  keep(seen: string, note: SealedValue, copy: SealedValue | undefined): { now: number; stands: boolean } {
    const now = this.#now();
    const before = this.#valueOf(NOTE, now);
    if ((before ? revOf(before) : FIRST_REV) !== seen) return { now, stands: false };
    const until = this.#find('sealed', NOTE, now)?.until ?? 0;
    // It outlives the copy, whichever note it is.
    if (until < now + note.lifeMs) this.#putSealed({ ...note, value: before ?? note.value }, now);
    if (copy && !isLater(this.#valueOf(copy.name, now), copy.value)) this.#putSealed(copy, now);
    return { now, stands: true };
  }

  /** Windows begin at multiples of their length. */
  count(name: string, lengthMs: number, many: number): WindowUse & { now: number } {
    const now = this.#now();
    const endsAt = (Math.floor(now / lengthMs) + 1) * lengthMs;
    const row = this.#find('count', name, now);
    const used = (row?.until === endsAt ? Number(row.facts) : 0) + many; // another window: the clock was set back
    this.#put('count', name, { facts: String(used), until: endsAt, value: null });
    return { now, used, endsAt };
  }

  /** A secret for workers without `SECRETS`, made once. */
  secret(): string {
    const row = this.#find('secret', '', this.#now());
    if (row) return JSON.parse(row.facts) as string; // written below
    const secret = crypto.randomUUID() + crypto.randomUUID();
    this.#put('secret', '', { facts: JSON.stringify(secret), until: FOREVER, value: null });
    return secret;
  }

  /** Without a row that expires nothing is left but what 0.2 kept beside such rows; only a secret is alone. */
  override async alarm(): Promise<void> {
    this.#alarmAt = Infinity;
    this.#ask(`DELETE FROM kept WHERE until <= ?`, this.#now());
    this.#setAlarm();
    if (this.#alarmAt < Infinity || this.#find('secret', '', 0)) return;
    this.#hasTable = false;
    await this.ctx.storage.deleteAll();
  }

  #valueOf(name: string, now: number): Uint8Array | undefined {
    const value = this.#find('sealed', name, now)?.value;
    return value ? new Uint8Array(value) : undefined;
  }

  #find(kind: Kind, name: string, now: number): Row | undefined {
    const query = `SELECT facts, until, value FROM kept WHERE kind = ? AND name = ? AND until > ?`;
    return this.#ask<Row>(query, kind, name, now)[0];
  }

  #putSealed({ name, value, lifeMs }: SealedValue, now: number, least = 0): void {
    this.#put('sealed', name, { facts: '', until: Math.max(least, Math.ceil(now + lifeMs)), value });
  }

  #put(kind: Kind, name: string, row: Omit<Row, 'value'> & { readonly value: Uint8Array | null }): void {
    if (!this.#hasTable) this.#run(TABLE);
    this.#hasTable = true;
    this.#run(`INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?)`, kind, name, row.facts, row.until, row.value);
    if (row.until + SWEEP_MS < this.#alarmAt) this.#setAlarm();
  }

  /** The alarm's time is that of the rows, so that it is not postponed each time that the object is evicted. */
  #setAlarm(): void {
    const query = `SELECT MIN(until) AS first FROM kept WHERE until < ?`;
    const first = this.#ask<{ first: number | null }>(query, FOREVER)[0]?.first;
    if (first === undefined || first === null) return;
    this.#alarmAt = first + SWEEP_MS;
    void this.ctx.storage.setAlarm(this.#alarmAt);
  }

  /** Without a table there are no rows. */
  #ask<Columns extends Record<string, SqlValue>>(query: string, ...bindings: (string | number)[]): Columns[] {
    return this.#hasTable ? this.#run(query, ...bindings) : [];
  }

  #run<Columns extends Record<string, SqlValue>>(query: string, ...bindings: (SqlValue | Uint8Array)[]): Columns[] {
    return this.ctx.storage.sql.exec<Columns>(query, ...bindings).toArray();
  }
}

/** Where a copy says when it was asked for, after what stands for its version. */
const ASKED_AT = COPY_HEAD - 8;

/** Whether the copy that is there has the same version and was asked for later. */
function isLater(before: Uint8Array | undefined, copy: Uint8Array): boolean {
  if (!before || versionOf(before) !== versionOf(copy)) return false;
  const laterMs = askedAtOf(before) - askedAtOf(copy);
  return laterMs > 0 && laterMs < LATER_MS;
}

const revOf = (note: Uint8Array) => decoder.decode(note.subarray(0, REV));

const versionOf = (copy: Uint8Array) => decoder.decode(copy.subarray(0, ASKED_AT));

const askedAtOf = ({ buffer, byteOffset }: Uint8Array) => new DataView(buffer, byteOffset).getFloat64(ASKED_AT);

type Method = 'read' | 'swap' | 'keep' | 'count' | 'secret';

/** An object as its callers see it: every method is a round trip. */
type Stub = { [M in Method]: (...args: Parameters<Account[M]>) => Promise<ReturnType<Account[M]>> };

/** The binding of `wrangler.toml`. */
export interface AccountsBinding {
  idFromName(name: string): unknown;
  get(id: unknown): Stub;
}

/** How long a call waits for its object. */
const CALL_MS = 1_000;

/** The objects of all accounts. Without a binding they do not answer. */
export class ObjectShelf implements Shelf {
  /** An object does not lose what it has acknowledged, and nothing takes its place: no store was ever another one. */
  readonly token = '';
  readonly reliableAt = -Infinity;
  readonly #accounts: AccountsBinding | undefined;
  readonly #clock: Clock;
  /** The clock of the object that replied last is so far ahead. */
  #aheadMs = 0;

  constructor(accounts: AccountsBinding | undefined, clock: Clock) {
    this.#accounts = accounts;
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.wall() + this.#aheadMs;
  }

  async read(account: string, names: readonly string[]) {
    const { values } = await this.#ask(account, (stub) => stub.read(names));
    return { token: this.token, values };
  }

  async swap(account: string, seen: string, next: SealedNext): Promise<Swapped> {
    return (await this.#ask(account, (stub) => stub.swap(seen, next))).swapped;
  }

  async keep(account: string, seen: string, note: SealedValue, copy: SealedValue | undefined): Promise<boolean> {
    return (await this.#ask(account, (stub) => stub.keep(seen, note, copy))).stands;
  }

  count(account: string, { name, lengthMs }: Period, many: number): Promise<WindowUse> {
    return this.#ask(account, (stub) => stub.count(name, lengthMs, many));
  }

  async #ask<Reply extends { readonly now: number }>(
    account: string,
    call: (stub: Stub) => Promise<Reply>,
  ): Promise<Reply> {
    if (!this.#accounts) throw new Error('there is no object to ask');
    const stub = this.#accounts.get(this.#accounts.idFromName(account)); // it belongs to the request that made it
    const reply = await within(this.#clock, CALL_MS, call(stub));
    this.#aheadMs = reply.now - this.#clock.wall();
    return reply;
  }
}

/** No account's name, which is a hash. */
const KEYRING = 'keyring';
const SECRET_MS = 140;

/** The secret that an object keeps, or none where that does not answer. */
export async function secretsOf(accounts: AccountsBinding, clock: Clock): Promise<readonly string[]> {
  try {
    return [await within(clock, SECRET_MS, accounts.get(accounts.idFromName(KEYRING)).secret())];
  } catch {
    return [];
  }
}
