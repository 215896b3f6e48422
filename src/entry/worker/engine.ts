import type { Clock } from '../../core/runtime.ts';
import { within } from '../../core/within.ts';
import type { Engine } from '../../store/shared/engine.ts';
import type { Account } from './account.ts';

type Method = keyof Engine | 'secret';

/** An object as its callers see it: every method is a round trip. */
type Stub = { [M in Method]: (...args: Parameters<Account[M]>) => Promise<ReturnType<Account[M]>> };

/** The binding of `wrangler.toml`. */
export interface AccountsBinding {
  idFromName(name: string): unknown;
  get(id: unknown): Stub;
}

/** The engine of the workers: a Durable Object for each account. */
export class DurableEngine implements Engine {
  readonly #accounts: AccountsBinding;

  constructor(accounts: AccountsBinding) {
    this.#accounts = accounts;
  }

  snapshot: Engine['snapshot'] = async (account, question) => this.#stub(account).snapshot(question);

  save: Engine['save'] = async (account, save) => this.#stub(account).save(save);

  beginWrite: Engine['beginWrite'] = async (account, write) => this.#stub(account).beginWrite(write);

  endWrite: Engine['endWrite'] = async (account, write) => this.#stub(account).endWrite(write);

  change: Engine['change'] = async (account, change) => this.#stub(account).change(change);

  /** A stub belongs to the request that made it. */
  #stub(account: string): Stub {
    return this.#accounts.get(this.#accounts.idFromName(account));
  }
}

/** No account's name, which is a hash. */
const KEYRING = 'keyring';
const SECRET_MS = 140;

/** The given secrets, or one that an object keeps. Undefined where that does not answer. */
export async function secretsOf(
  accounts: AccountsBinding,
  { given, clock }: { given: readonly string[]; clock: Clock },
): Promise<readonly string[] | undefined> {
  if (given.length > 0) return given;
  try {
    return [await within(clock, SECRET_MS, accounts.get(accounts.idFromName(KEYRING)).secret())];
  } catch {
    return undefined;
  }
}
