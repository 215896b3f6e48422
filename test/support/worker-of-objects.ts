// oxlint-disable-next-line typescript/triple-slash-reference -- it declares a module, and is none itself
/// <reference path="../../src/entry/worker/platform.d.ts" />
import type { DurableObjectState, DurableObjectStorage } from 'cloudflare:workers';
import { Account as DeployedAccount, type AccountsBinding, ObjectShelf } from '../../src/entry/worker/account.ts';
import { clock } from '../../src/entry/worker/deps.ts';
import { pack, unpack } from './wire.ts';

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

  /** The tables that are not workerd's own. */
  tables(): string[] {
    return this.#texts(`SELECT name AS text FROM sqlite_master WHERE type = 'table'`).filter(
      (name) => !name.startsWith('_cf_'),
    );
  }

  /** What there is, as 'kind name'. */
  kept(): string[] {
    const query = `SELECT trim(kind || ' ' || name) AS text FROM kept ORDER BY kind, name`;
    return this.tables().includes('kept') ? this.#texts(query) : [];
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

type Calls = Record<string, (...args: unknown[]) => Promise<unknown>>;

interface Order {
  /** Of the shelf; else one of the object. */
  readonly isOfShelf: boolean;
  readonly account: string;
  readonly method: string;
  readonly args: readonly unknown[];
}

/** Calls the shelf and its objects for a test, which is elsewhere; `/pass` lets time pass for them. */
export default {
  async fetch(request: Request, { ACCOUNTS: accounts }: { readonly ACCOUNTS: AccountsBinding }): Promise<Response> {
    const asked = unpack(await request.text());
    if (new URL(request.url).pathname === '/pass') {
      passedMs += asked as number;
      return new Response(pack(undefined));
    }
    const { isOfShelf, account, method, args } = asked as Order;
    const shelf = new ObjectShelf(accounts, clock);
    try {
      const ask = async () =>
        isOfShelf
          ? (shelf as unknown as Calls)[method]?.(account, ...args)
          : (accounts.get(accounts.idFromName(account)) as unknown as Calls)[method]?.(...args);
      return new Response(pack({ said: await ask(), now: shelf.now() }));
    } catch (error) {
      return new Response(String(error), { status: 500 });
    }
  },
};
