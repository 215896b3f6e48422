import { IpcBackend, NotesOfWorkers } from '../../src/entry/node/ipc.ts';
import type { Account } from '../../src/store/account.ts';
import type { Copy } from '../../src/store/copies.ts';
import type { CacheKey } from '../../src/store/port.ts';

/** The first process without any, and workers that ask it: what they send is copied as the channel between processes does. */
export class FirstProcess {
  readonly #notes: NotesOfWorkers;
  readonly #now: () => number;
  /** What was sent, as JSON, both ways. */
  readonly sent: string[] = [];

  constructor(now: () => number) {
    this.#now = now;
    this.#notes = new NotesOfWorkers(now);
  }

  worker(): IpcBackend {
    const backend = new IpcBackend({
      now: this.#now,
      send: (questions) => {
        const copied = this.#copy(questions);
        setImmediate(() => backend.hear(this.#copy(this.#notes.answers(copied))));
      },
    });
    return backend;
  }

  #copy<T>(message: T): T {
    const text = JSON.stringify(message);
    this.sent.push(text);
    return JSON.parse(text) as T;
  }
}

const placeOf = ({ id }: Account, { key }: CacheKey) => `${id} ${key}`;

/**
 * Workers have copies of their own. The contract of stores looks at what others have kept, so this gives them the copies of
 * all: what is left to be right is which of them are valid.
 */
export function sharingCopies(worker: IpcBackend, copies: Map<string, Copy>): IpcBackend {
  const look = worker.look.bind(worker);
  return Object.assign(worker, {
    look: async (account: Account, keys: readonly CacheKey[] = [], key?: string) => {
      const found = keys.map((one) => copies.get(placeOf(account, one)));
      return { ...(await look(account, keys, key)), copies: found };
    },
    keep: async (account: Account, key: CacheKey, copy: Copy) => {
      const known = copies.get(placeOf(account, key));
      if (known?.version !== copy.version || known.askedAt <= copy.askedAt) copies.set(placeOf(account, key), copy);
    },
  });
}
