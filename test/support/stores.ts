import type { Clock } from '../../src/core/runtime.ts';
import { Accounts } from '../../src/store/accounts.ts';
import { MemoryBackend } from '../../src/store/memory.ts';
import { SealedNotes } from '../../src/store/sealed.ts';
import { ANSWER, writeOf } from '../store/writes.ts';
import { fakeNameOf, fakeSeal, FakeShelf } from './fake-shelf.ts';

const MAX_BYTES = 8_388_608;
/** Longer than any copy lives. */
export const NOTE_MS = 7_200_000;

/** A store of this process alone. */
export const memoryStore = (clock: Clock, maxBytes = MAX_BYTES): Accounts =>
  new Accounts({ backend: new MemoryBackend({ now: () => clock.now() }), clock, maxBytes });

interface SharedStores {
  /** The way of the first instance to the store. */
  readonly shelf: FakeShelf;
  readonly store: Accounts;
  readonly other: Accounts;
  /** One more instance, which knows nothing yet. */
  readonly open: (shelf?: FakeShelf, itsClock?: Clock) => Accounts;
}

/** Instances that share a store in this process, whose time is that of the clock. */
export function sharedStores(clock: Clock): SharedStores {
  const shelf = new FakeShelf(clock);
  const open = (by = shelf.beside(), itsClock = clock) => {
    const backend = new SealedNotes(by, { seal: fakeSeal, nameOf: fakeNameOf, noteMs: NOTE_MS });
    return new Accounts({ backend, clock: itsClock, maxBytes: MAX_BYTES });
  };
  return { shelf, store: open(shelf), other: open(), open };
}

/** The longest answer that is kept. */
const LONGEST = { ...ANSWER, text: 'x'.repeat(65_536) };

/** Others have left as many records as there may be. */
export async function fillWithRecords(store: Accounts): Promise<void> {
  const now = store.clock.now();
  for (let n = 0; ; n++) {
    const write = writeOf({ account: `other-${n % 50}`, key: `key-${n}`, tags: [], now });
    if ((await store.beginWrite(write)).refusal) return;
    await store.endWrite(write, LONGEST);
  }
}

/** Whichever account writes has as many writes of unknown outcome already as it may have. */
export function fullOfMarks(clock: Clock): Accounts {
  const store = memoryStore(clock);
  const begin = store.beginWrite.bind(store);
  const beginWrite: Accounts['beginWrite'] = async (write) => {
    for (;;) {
      const another = writeOf({ account: write.account, now: clock.now() });
      if ((await begin(another)).refusal) return begin(write);
      await store.endWrite(another, 'unknown');
    }
  };
  return Object.assign(store, { beginWrite });
}
