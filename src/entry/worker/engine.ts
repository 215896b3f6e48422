import type { Clock } from '../../core/runtime.ts';
import { within } from '../../core/within.ts';
import type { Engine } from '../../store/shared/engine.ts';
import type { Account } from './account.ts';

type Method = keyof Engine | 'secret';

/** An object as it is seen from elsewhere: every method is a round trip. */
type Stub = { [M in Method]: (...args: Parameters<Account[M]>) => Promise<ReturnType<Account[M]>> };

/** The binding of `wrangler.toml`. */
export interface AccountsBinding {
  idFromName(name: string): unknown;
  get(id: unknown): Stub;
}

/** The shared store's engine of the workers: a Durable Object for each account, of the name of the account. */
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

  /** Made anew each time: a stub belongs to the request that made it. */
  #stub(account: string): Stub {
    return this.#accounts.get(this.#accounts.idFromName(account));
  }
}

/** Names of accounts are hashes, of which this is none. */
const KEYRING = 'keyring';
const SECRET_MS = 140;

/** The secrets given; where there are none, one that is made and kept. Nothing where its object does not answer. */
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
