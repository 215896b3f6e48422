// oxlint-disable-next-line typescript/triple-slash-reference -- it declares a module, and is none itself
/// <reference path="../../src/entry/worker/platform.d.ts" />
import { Account as DeployedAccount } from '../../src/entry/worker/account.ts';
import { pack, unpack } from './object-worker-wire.ts';

declare module 'cloudflare:workers' {
  interface DurableObjectStorage {
    getAlarm(): Promise<number | null>;
    deleteAlarm(): Promise<void>;
  }
  interface DurableObjectState {
    readonly id: { toString(): string };
  }
}

const realNow = Date.now.bind(Date);
let passedMs = 0;
// The objects live in this isolate.
Date.now = () => realNow() + passedMs;

/** The object as it is deployed, and what a test wants to know of it. */
export class Account extends DeployedAccount {
  /** How its files begin. */
  fileName(): string {
    return this.ctx.id.toString();
  }

  /** The tables that are not workerd's own. */
  tables(): string[] {
    const rows = this.ctx.storage.sql.exec<{ name: string }>(`SELECT name FROM sqlite_master WHERE type = 'table'`);
    return rows
      .toArray()
      .map(({ name }) => name)
      .filter((name) => !name.startsWith('_cf_'));
  }

  /** How many rows there are of copies and records. */
  rows(): number {
    const query = `SELECT (SELECT COUNT(*) FROM copies) + (SELECT COUNT(*) FROM records) AS rows`;
    return this.ctx.storage.sql.exec<{ rows: number }>(query).toArray()[0]?.rows ?? 0;
  }

  /** How long it is until the alarm. */
  async alarmIn(): Promise<number | undefined> {
    const at = await this.ctx.storage.getAlarm();
    return at === null ? undefined : at - Date.now();
  }

  /** What the platform does when an alarm is due; an alarm cannot be called from elsewhere. */
  async ring(): Promise<void> {
    await this.ctx.storage.deleteAlarm();
    await this.alarm();
  }
}

interface Env {
  readonly ACCOUNTS: {
    idFromName(name: string): unknown;
    get(id: unknown): Record<string, (...args: unknown[]) => Promise<unknown>>;
  };
}

interface Order {
  readonly account: string;
  readonly method: string;
  readonly args: readonly unknown[];
}

/** Calls objects for a test, which is elsewhere; `/pass` lets time pass for them. */
export const front = {
  async fetch(request: Request, { ACCOUNTS: accounts }: Env): Promise<Response> {
    const asked = unpack(await request.text());
    if (new URL(request.url).pathname === '/pass') {
      passedMs += asked as number;
      return new Response(pack(undefined));
    }
    const { account, method, args } = asked as Order;
    try {
      return new Response(pack(await accounts.get(accounts.idFromName(account))[method]?.(...args)));
    } catch (error) {
      return new Response(String(error), { status: 500 });
    }
  },
};
