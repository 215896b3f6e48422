// oxlint-disable-next-line typescript/triple-slash-reference -- it declares a module, and is none itself
/// <reference path="../../src/entry/worker/platform.d.ts" />
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import type { DurableObjectStorage, SqlValue } from 'cloudflare:workers';
import { Account } from '../../src/entry/worker/account.ts';
import { type AccountsBinding, durableEngine } from '../../src/entry/worker/engine.ts';
import type { Engine } from '../../src/store/shared/engine.ts';

/** The storage of one object, in this process. */
class ObjectStorage implements DurableObjectStorage {
  readonly #database = new DatabaseSync(':memory:');
  alarmAt: number | undefined;
  /** So far; an alarm counts as one, as the platform counts it. */
  rowsWritten = 0;

  readonly sql = {
    exec: <Row extends Record<string, SqlValue>>(query: string, ...bindings: readonly (SqlValue | Uint8Array)[]) => {
      const rows = this.#database.prepare(query).all(...(bindings as SQLInputValue[]));
      if (!query.startsWith('SELECT')) this.rowsWritten += Number(this.#rows('SELECT changes() AS value')[0]);
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
    return this.#rows(`SELECT name AS value FROM sqlite_master WHERE type = 'table'`) as string[];
  }

  /** What there is, as 'kind name'. */
  kept(): readonly string[] {
    return this.tables().includes('kept')
      ? (this.#rows(`SELECT trim(kind || ' ' || name) AS value FROM kept ORDER BY kind, name`) as string[])
      : [];
  }

  #rows(query: string): readonly unknown[] {
    return this.#database
      .prepare(query)
      .all()
      .map(({ value }) => value);
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

export interface ObjectEngine extends Engine {
  /** As the platform gives it to a worker. */
  readonly binding: AccountsBinding;
  /** Lets time pass for all objects, which else stands still; alarms ring. Less than 0 sets the clock back. */
  pass(ms: number): void;
  /** What the platform does with objects that nobody has asked for a while: all are made anew on what they have stored. */
  putAway(): void;
  secret(account: string): string;
  storageOf(account: string): ObjectStorage;
}

const START_MS = Date.UTC(2026, 5, 9, 12);

/** The objects of accounts in this process, as an engine that several stores can share. */
export function objectEngine(): ObjectEngine {
  const objects = new Map<string, Placed>();
  let now = START_MS;

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

  return Object.assign(durableEngine(binding), {
    binding,
    pass: (ms: number) => {
      const end = now + ms;
      for (let due = nextAlarm(end); due; due = nextAlarm(end)) {
        now = Math.max(now, due.storage.alarmAt!);
        due.storage.alarmAt = undefined;
        // All that it does, it does before it first waits.
        void due.object.alarm();
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

/** What is asked and what is answered are copies, as between isolates. */
const stubOf = (placed: Placed) => {
  const call =
    <Asked, Said>(ask: (object: Account, asked: Asked) => Said) =>
    async (asked: Asked): Promise<Said> =>
      structuredClone(ask(placed.object, structuredClone(asked)));
  return {
    snapshot: call((object, question: Parameters<Account['snapshot']>[0]) => object.snapshot(question)),
    save: call((object, save: Parameters<Account['save']>[0]) => object.save(save)),
    beginWrite: call((object, write: Parameters<Account['beginWrite']>[0]) => object.beginWrite(write)),
    endWrite: call((object, write: Parameters<Account['endWrite']>[0]) => object.endWrite(write)),
    change: call((object, change: Parameters<Account['change']>[0]) => object.change(change)),
    secret: async () => placed.object.secret(),
  };
};
