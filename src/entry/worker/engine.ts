import { type Clock, within } from '../../core/runtime.ts';
import { type Engine, NotAsked } from '../../store/shared/engine.ts';
import type { Account } from './account.ts';

type Method = keyof Account & (keyof Engine | 'secret');

/** An object as its callers see it: every method is a round trip. */
type Stub = { [M in Method]: (...args: Parameters<Account[M]>) => Promise<ReturnType<Account[M]>> };

/** The binding of `wrangler.toml`. */
export interface AccountsBinding {
  idFromName(name: string): unknown;
  get(id: unknown): Stub;
}

/** The engine of the workers: a Durable Object for each account. Without a binding it does not answer. */
export function durableEngine(accounts: AccountsBinding | undefined): Engine {
  const stubOf = (account: string) => {
    if (!accounts) throw new NotAsked();
    return accounts.get(accounts.idFromName(account)); // a stub belongs to the request that made it
  };
  return {
    snapshot: async (account, question) => stubOf(account).snapshot(question),
    save: async (account, save) => stubOf(account).save(save),
    beginWrite: async (account, write) => stubOf(account).beginWrite(write),
    endWrite: async (account, write) => stubOf(account).endWrite(write),
    change: async (account, change) => stubOf(account).change(change),
  };
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
