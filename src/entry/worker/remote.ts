import type { Clock } from '../../core/runtime.ts';
import type { KnownRecord, NewCopy, NewRecord, NewTurn, Question, Remote, Reply } from '../../store/shared/remote.ts';
import type { Account } from './account.ts';

type Method =
  | 'visit'
  | 'save'
  | 'touch'
  | 'takeTurn'
  | 'passTurn'
  | 'hold'
  | 'claim'
  | 'advance'
  | 'settle'
  | 'release'
  | 'secret'
  | 'retiredSecret';

/** An object as it is seen from elsewhere: every method is a round trip. */
type Stub = { [M in Method]: (...args: Parameters<Account[M]>) => Promise<ReturnType<Account[M]>> };

/** The binding of `wrangler.toml`. */
export interface AccountsBinding {
  idFromName(name: string): unknown;
  get(id: unknown): Stub;
}

/** A read waits 200 ms for both together; they are less to whoever is near the object. */
const VISIT_MS = 140;
const SAVE_MS = 60;
const WRITE_MS = 1_000;

/** The engine's side of the shared store: a Durable Object for each account, of the name of the account. */
export class DurableRemote implements Remote {
  readonly #accounts: AccountsBinding;
  readonly #clock: Clock;

  constructor(accounts: AccountsBinding, clock: Clock) {
    this.#accounts = accounts;
    this.#clock = clock;
  }

  visit(account: string, question: Question): Promise<Reply> {
    return this.#within(VISIT_MS, this.#stub(account).visit(question));
  }

  save(account: string, copy: NewCopy): Promise<boolean> {
    return this.#within(SAVE_MS, this.#stub(account).save(copy));
  }

  touch(account: string, tags: readonly string[]): Promise<void> {
    return this.#within(WRITE_MS, this.#stub(account).touch(tags));
  }

  takeTurn(account: string, turn: NewTurn): Promise<boolean> {
    return this.#within(SAVE_MS, this.#stub(account).takeTurn(turn));
  }

  passTurn(account: string, turn: Pick<NewTurn, 'key' | 'instance'>): Promise<void> {
    return this.#within(SAVE_MS, this.#stub(account).passTurn(turn));
  }

  hold(account: string, ms: number): Promise<void> {
    return this.#within(WRITE_MS, this.#stub(account).hold(ms));
  }

  claim(account: string, record: NewRecord): Promise<KnownRecord | undefined> {
    return this.#within(WRITE_MS, this.#stub(account).claim(record));
  }

  advance(account: string, record: NewRecord): Promise<boolean> {
    return this.#within(WRITE_MS, this.#stub(account).advance(record));
  }

  settle(account: string, record: NewRecord): Promise<void> {
    return this.#within(WRITE_MS, this.#stub(account).settle(record));
  }

  release(account: string, record: Pick<NewRecord, 'key' | 'nonce'>): Promise<void> {
    return this.#within(WRITE_MS, this.#stub(account).release(record));
  }

  /** Made anew each time: a stub belongs to the request that made it. */
  #stub(account: string): Stub {
    return this.#accounts.get(this.#accounts.idFromName(account));
  }

  #within<T>(ms: number, reply: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const cancel = this.#clock.after(ms, () => reject(new Error(`nothing in ${ms} ms`)));
      reply.then(resolve, reject).finally(cancel);
    });
  }
}

/** Names of accounts are hashes, of which this is none. */
const KEYRING = 'keyring';

/** The secrets given; where there are none, one that is made and kept, and which is listed for a day once some are given. */
export async function secretsOf(accounts: AccountsBinding, given: readonly string[]): Promise<readonly string[]> {
  const keyring = accounts.get(accounts.idFromName(KEYRING));
  if (given.length === 0) return [await keyring.secret()];
  const retired = await keyring.retiredSecret();
  return retired === null ? given : [...given, retired];
}
