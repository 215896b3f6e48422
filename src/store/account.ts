import { LRUCache, recent } from './bounded.ts';
import type { Copy } from './copies.ts';
import type { Held, Note } from './note.ts';
import type { AccountId } from './port.ts';

/** A note as it was read. */
export interface Seen {
  readonly note: Note;
  /** Tells it from those before and after it. */
  readonly seen: unknown;
  /** Names the store that it was read from. Versions that were made under another token are void. */
  readonly token: string;
}

/** A note as it was read, and what was asked for with it at the same moment. */
export interface Looked extends Seen {
  /** The record of the idempotency key. */
  readonly held?: Held | undefined;
  /** The copies that the store has under these keys. */
  readonly copies?: readonly (Copy | undefined)[];
}

const MAX_KNOWN_BYTES = 33_554_432;
const KNOWN_BYTES = 600;

/** The notes that were last seen in a store elsewhere. They are bounded by their bytes. */
export const knownNotes = <T extends Seen>(bytesOf: (seen: T) => number) =>
  new LRUCache<AccountId, T>({ maxSize: MAX_KNOWN_BYTES, sizeCalculation: (seen) => KNOWN_BYTES + bytesOf(seen) });

/** How far a window is used. */
export interface OpenWindow {
  used: number;
  endsAt: number;
  /** Counted by a shared store already, and not used yet. */
  left: number;
  /** The question to that store which is under way, and how many wait for it. */
  asking: Promise<unknown> | undefined;
  waiting: number;
}

export interface KeptRecord {
  readonly held: Held;
  readonly until: number;
  readonly bytes: number;
}

/** What this process knows of one account. A request finds it once. */
export class Account {
  readonly id: AccountId;
  /** The upstream has accepted it. */
  isAccepted = false;
  /** The windows of its limits, by their names. */
  readonly windows: Record<string, OpenWindow> = {};
  /** The end of the last change of its note. */
  lastChange: Promise<unknown> | undefined;
  /** What was last read for a change that waited for its turn: it is as new for all who waited with it. */
  lastLook: { readonly key: string; readonly looked: Looked; readonly at: number } | undefined;
  /** Its note, and the records of its keys in the order of their ends, where the store is this process. */
  note: Note | undefined;
  records: Map<string, KeptRecord> | undefined;
  /** It has something that may not be evicted until then. */
  keptUntil = 0;

  constructor(id: AccountId) {
    this.id = id;
  }

  windowOf(name: string): OpenWindow {
    return (this.windows[name] ??= { used: 0, endsAt: 0, left: 0, asking: undefined, waiting: 0 });
  }
}

/** So many accounts without anything to keep are known that the upstream has accepted, and as many others. */
const MOST_IDLE = 50_000;

/** The accounts that this process knows. Made-up credentials evict none that the upstream has accepted. */
export class KnownAccounts {
  /** Those with something that may not be evicted. */
  readonly kept = new Map<AccountId, Account>();
  readonly #accepted = recent<AccountId, Account>(MOST_IDLE);
  readonly #others = recent<AccountId, Account>(MOST_IDLE);

  of(id: AccountId): Account {
    const known = this.kept.get(id) ?? this.#accepted.get(id) ?? this.#others.get(id);
    if (known) return known;
    const made = new Account(id);
    this.#others.set(id, made);
    return made;
  }

  accept(account: Account): void {
    if (account.isAccepted) return;
    account.isAccepted = true;
    if (this.#others.delete(account.id)) this.#accepted.set(account.id, account);
  }

  /** Call this when `keptUntil` has changed, or is over. */
  place(account: Account, now: number): void {
    const { id, isAccepted, keptUntil } = account;
    const idle = isAccepted ? this.#accepted : this.#others;
    if (keptUntil > now) {
      idle.delete(id);
      this.kept.set(id, account);
    } else if (this.kept.delete(id) || !idle.has(id)) idle.set(id, account);
  }
}
