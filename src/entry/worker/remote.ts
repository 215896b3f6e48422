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
  | 'secret';

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
    return this.#ask(account, VISIT_MS, (stub) => stub.visit(question));
  }

  save(account: string, copy: NewCopy): Promise<boolean> {
    return this.#ask(account, SAVE_MS, (stub) => stub.save(copy));
  }

  touch(account: string, tags: readonly string[]): Promise<void> {
    return this.#ask(account, WRITE_MS, (stub) => stub.touch(tags));
  }

  takeTurn(account: string, turn: NewTurn): Promise<boolean> {
    return this.#ask(account, SAVE_MS, (stub) => stub.takeTurn(turn));
  }

  passTurn(account: string, turn: Pick<NewTurn, 'key' | 'instance'>): Promise<void> {
    return this.#ask(account, SAVE_MS, (stub) => stub.passTurn(turn));
  }

  hold(account: string, ms: number): Promise<void> {
    return this.#ask(account, WRITE_MS, (stub) => stub.hold(ms));
  }

  claim(account: string, record: NewRecord): Promise<KnownRecord | undefined> {
    return this.#ask(account, WRITE_MS, (stub) => stub.claim(record));
  }

  advance(account: string, record: NewRecord): Promise<boolean> {
    return this.#ask(account, WRITE_MS, (stub) => stub.advance(record));
  }

  settle(account: string, record: NewRecord): Promise<void> {
    return this.#ask(account, WRITE_MS, (stub) => stub.settle(record));
  }

  release(account: string, record: Pick<NewRecord, 'key' | 'nonce'>): Promise<void> {
    return this.#ask(account, WRITE_MS, (stub) => stub.release(record));
  }

  /** The stub is made anew each time: it belongs to the request that made it. */
  async #ask<T>(account: string, ms: number, ask: (stub: Stub) => Promise<T>): Promise<T> {
    return within(this.#clock, ms, ask(this.#accounts.get(this.#accounts.idFromName(account))));
  }
}

/** Names of accounts are hashes, of which this is none. */
const KEYRING = 'keyring';

/** The secrets given; where there are none, one that is made and kept. Nothing where its object does not answer. */
export async function secretsOf(
  accounts: AccountsBinding,
  { given, clock }: { given: readonly string[]; clock: Clock },
): Promise<readonly string[] | undefined> {
  if (given.length > 0) return given;
  try {
    return [await within(clock, VISIT_MS, accounts.get(accounts.idFromName(KEYRING)).secret())];
  } catch {
    return undefined;
  }
}

function within<T>(clock: Clock, ms: number, reply: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => reject(new Error(`nothing in ${ms} ms`)));
    reply.then(resolve, reject).finally(cancel);
  });
}
