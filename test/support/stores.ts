import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../src/core/runtime.ts';
import { nodeDigest, nodeSeal } from '../../src/entry/node/digest.ts';
import { storeAddressOf } from '../../src/entry/node/redis/address.ts';
import { RedisShelf } from '../../src/entry/node/redis/backend.ts';
import { Store } from '../../src/store/store.ts';
import { MemoryBackend } from '../../src/store/memory.ts';
import { SealedNotes, type Shelf } from '../../src/store/sealed.ts';
import { testClock } from './clock.ts';
import { fakeNameOf, fakeSeal, FakeShelf } from './fake-shelf.ts';

const MAX_BYTES = 8_388_608;
/** Longer than any copy lives. */
export const NOTE_MS = 7_200_000;

/** A store of this process alone. */
export const memoryStore = (clock: Clock, maxBytes = MAX_BYTES): Store =>
  new Store({ backend: new MemoryBackend({ now: () => clock.now() }), clock, maxBytes });

interface SharedStores {
  /** The way of the first instance to the store. */
  readonly shelf: FakeShelf;
  readonly store: Store;
  readonly other: Store;
  /** One more instance, which knows nothing yet. */
  readonly open: (shelf?: FakeShelf, itsClock?: Clock) => Store;
}

/** Instances that share a store in this process, whose time is that of the clock. */
export function sharedStores(clock: Clock): SharedStores {
  const shelf = new FakeShelf(clock);
  const open = (by = shelf.beside(), itsClock = clock) => {
    const backend = new SealedNotes(by, { seal: fakeSeal, nameOf: fakeNameOf, noteMs: NOTE_MS });
    return new Store({ backend, clock: itsClock, maxBytes: MAX_BYTES });
  };
  return { shelf, store: open(shelf), other: open(), open };
}

/** An instance over a shelf, with what is stored sealed and named as it is in earnest. */
export function storeOver(shelf: Shelf, clock: Clock, secrets: readonly string[]): Store {
  const digest = nodeDigest(secrets, 'http://upstream.test/');
  const seal = nodeSeal(secrets, 'portico store seal');
  const tools = { seal, nameOf: (text: string) => digest.account(text), noteMs: NOTE_MS };
  return new Store({ backend: new SealedNotes(shelf, tools), clock, maxBytes: MAX_BYTES });
}

/** A Redis, and the token by which an instance knows it. */
export interface KnownRedis {
  readonly url: string;
  readonly token: string;
}

/**
 * The way to a Redis that has the time of `clock`. Nothing of it passes by itself: it says HELLO once, when it connects, and
 * is there from then on.
 */
export async function shelfOf({ url, token }: KnownRedis, clock: Clock): Promise<TimedShelf> {
  const shelf = new TimedShelf(url, clock);
  shelf.token = token;
  await shelf.opened;
  if (!shelf.isThere) throw new Error(`the Redis of the run does not answer at ${url}`);
  return shelf;
}

const NO_REPORTS = { onCommand: () => undefined, onTrouble: () => undefined, onChange: () => undefined };

/** A machine that is busy loses nothing. */
const PATIENT = { connectTimeout: 60_000, socketTimeout: 60_000 };

class TimedShelf extends RedisShelf {
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(url: string, clock: Clock) {
    super({
      address: { ...storeAddressOf(url)!, timeouts: PATIENT },
      clock: testClock(),
      windowMs: 15_000,
      ...NO_REPORTS,
    });
    this.now = () => clock.now();
    for (const method of ['read', 'swap', 'keep', 'count'] as const) {
      const ask = this[method].bind(this) as (...asked: unknown[]) => Promise<unknown>;
      Object.assign(this, { [method]: (...asked: unknown[]) => this.#follow(ask(...asked)) });
    }
  }

  /** Resolves when what was asked has been answered, and with it what that has led to. */
  async settled(): Promise<void> {
    do {
      await turn();
      await Promise.allSettled(this.#underWay);
    } while (this.#underWay.size > 0);
  }

  #follow<T>(asked: Promise<T>): Promise<T> {
    this.#underWay.add(asked);
    void asked.catch(() => undefined).finally(() => this.#underWay.delete(asked));
    return asked;
  }
}
