// oxlint-disable-next-line typescript/triple-slash-reference -- it declares a module, and is none itself
/// <reference path="../../src/entry/worker/platform.d.ts" />
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import type { DurableObjectStorage, SqlValue } from 'cloudflare:workers';
import { Account, type AccountsBinding, ObjectShelf } from '../../src/entry/worker/account.ts';
import { webDigest, webSeal } from '../../src/entry/worker/deps.ts';
import type { Clock } from '../../src/core/runtime.ts';
import { Store } from '../../src/store/store.ts';
import { SealedNotes, type Shelf } from '../../src/store/sealed.ts';

/** The storage of one object, in this process. */
class ObjectStorage implements DurableObjectStorage {
  readonly #database = new DatabaseSync(':memory:');
  alarmAt: number | undefined;
  /** So far; an alarm counts as one, as the platform counts it. */
  rowsWritten = 0;

  readonly sql = {
    exec: <Row extends Record<string, SqlValue>>(query: string, ...bindings: readonly (SqlValue | Uint8Array)[]) => {
      const rows = this.#database.prepare(query).all(...(bindings as SQLInputValue[]));
      if (!query.startsWith('SELECT')) this.rowsWritten += Number(this.#texts('SELECT changes() AS text')[0]);
      return { toArray: () => rows.map((row) => asWorkerd(row)) as Row[] };
    },
  };

  async setAlarm(at: number): Promise<void> {
    this.alarmAt = at;
    this.rowsWritten++;
  }

  async deleteAll(): Promise<void> {
    for (const table of this.tables()) this.#database.exec(`DROP TABLE ${table}`);
    this.alarmAt = undefined;
  }

  tables(): readonly string[] {
    return this.#texts(`SELECT name AS text FROM sqlite_master WHERE type = 'table'`);
  }

  /** What there is, as 'kind name'. */
  kept(): readonly string[] {
    return this.tables().includes('kept')
      ? this.#texts(`SELECT trim(kind || ' ' || name) AS text FROM kept ORDER BY kind, name`)
      : [];
  }

  #texts(query: string): string[] {
    return this.#database
      .prepare(query)
      .all()
      .map(({ text }) => String(text));
  }
}

/** Bytes are an ArrayBuffer there. */
const asWorkerd = (row: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, value instanceof Uint8Array ? value.slice().buffer : value]),
  );

interface Placed {
  readonly storage: ObjectStorage;
  object: Account;
}

export interface TestShelf extends Shelf {
  /** As the platform gives it to a worker. */
  readonly binding: AccountsBinding;
  /** Lets time pass for the objects, which else stands still; alarms ring. Less than 0 sets their clock back. */
  pass(ms: number): void;
  /** What the platform does with objects that nobody has asked for a while: all are made anew on what they have stored. */
  putAway(): void;
  secret(account: string): string;
  storageOf(account: string): ObjectStorage;
}

/** The objects of accounts in this process. Their time begins with the instance's: `now`. */
export function objectShelf({ now: instanceNow }: { readonly now: () => number }): TestShelf {
  const objects = new Map<string, Placed>();
  let now = instanceNow();

  const open = (storage: ObjectStorage) => new Account({ storage }, {}, () => now);
  const find = (account: string): Placed => {
    const known = objects.get(account);
    if (known) return known;
    const storage = new ObjectStorage();
    const placed = { storage, object: open(storage) };
    objects.set(account, placed);
    return placed;
  };

  const nextAlarm = (end: number): Placed | undefined => {
    const due = [...objects.values()].filter(({ storage }) => (storage.alarmAt ?? Infinity) <= end);
    return due.toSorted((one, other) => one.storage.alarmAt! - other.storage.alarmAt!)[0];
  };

  const binding: AccountsBinding = { idFromName: (name) => name, get: (id) => stubOf(find(id as string)) };
  // They always answer, so that nobody waits.
  const clock = { now: instanceNow, wall: instanceNow, after: () => () => undefined };

  return Object.assign(new ObjectShelf(binding, clock), {
    binding,
    pass: (ms: number) => {
      const end = now + ms;
      for (let due = nextAlarm(end); due; due = nextAlarm(end)) {
        now = Math.max(now, due.storage.alarmAt!);
        due.storage.alarmAt = undefined;
        void due.object.alarm(); // all that it does, it does before it first waits
      }
      now = end;
    },
    putAway: () => {
      for (const placed of objects.values()) placed.object = open(placed.storage);
    },
    secret: (account: string) => find(account).object.secret(),
    storageOf: (account: string) => find(account).storage,
  });
}

const digest = webDigest(['a secret of the tests that is long enough'], 'http://upstream.test/');
const seal = webSeal(['a secret of the tests that is long enough']);

/** An instance over a shelf. */
export const accountsOver = (shelf: Shelf, clock: Clock): Store =>
  new Store({
    backend: new SealedNotes(shelf, { seal, nameOf: (text) => digest.account(text), noteMs: 4_800_000 }),
    clock,
    maxBytes: 8_388_608,
  });

type Stub = ReturnType<AccountsBinding['get']>;

/** What is asked and what is answered are copies, as between isolates. */
const stubOf = (placed: Placed) =>
  new Proxy({} as Stub, {
    get:
      (_, method: keyof Stub) =>
      async (...asked: unknown[]) => {
        const call = placed.object[method] as (...given: unknown[]) => unknown;
        return structuredClone(call.apply(placed.object, structuredClone(asked)));
      },
  });
