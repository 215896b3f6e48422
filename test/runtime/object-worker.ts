// oxlint-disable-next-line typescript/triple-slash-reference -- it declares a module, and is none itself
/// <reference path="../../src/entry/worker/platform.d.ts" />
import type { DurableObjectState, DurableObjectStorage } from 'cloudflare:workers';
import { Account as DeployedAccount } from '../../src/entry/worker/account.ts';
import { pack, unpack } from './object-worker-wire.ts';

/** More of the platform than is used when it is deployed. */
interface TestState extends DurableObjectState {
  readonly id: { toString(): string };
  readonly storage: DurableObjectStorage & {
    getAlarm(): Promise<number | null>;
    deleteAlarm(): Promise<void>;
  };
}

const realNow = Date.now.bind(Date);
let passedMs = 0;
// The objects live in this isolate.
Date.now = () => realNow() + passedMs;

/** The object as it is deployed, and what a test wants to know of it. */
export class Account extends DeployedAccount {
  declare protected readonly ctx: TestState;

  /** How its files begin. */
  fileName(): string {
    return this.ctx.id.toString();
  }

  /** The tables that are not workerd's own. */
  tables(): string[] {
    return this.#texts(`SELECT name AS text FROM sqlite_master WHERE type = 'table'`).filter(
      (name) => !name.startsWith('_cf_'),
    );
  }

  /** What there is, as 'kind name'. */
  kept(): string[] {
    return this.#texts(`SELECT trim(kind || ' ' || name) AS text FROM kept ORDER BY kind, name`);
  }

  /** What an earlier release has left. */
  leaveTable(name: string): void {
    this.ctx.storage.sql.exec(`CREATE TABLE ${name} (key TEXT PRIMARY KEY)`);
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

  #texts(query: string): string[] {
    const rows = this.ctx.storage.sql.exec<{ text: string }>(query).toArray();
    return rows.map(({ text }) => text);
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
