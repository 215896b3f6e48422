import type { MaybePromise } from '../core/runtime.ts';
import type { Account, KnownAccounts, Looked, Seen } from './account.ts';
import type { Copy } from './copies.ts';
import type { Held, Note } from './note.ts';
import type { CacheKey, Period, WindowUse } from './port.ts';

/** What takes the place of a note that was seen, and what becomes of the record of a key with it. */
export interface Next {
  readonly note: Note;
  readonly lifeMs: number;
  /** `held` null: there is none any more. */
  readonly record?: { readonly key: string; readonly held: Held | null; readonly lifeMs: number } | undefined;
  /** It begins a write: it is refused where there is little room left, so that writes under way can still end. */
  readonly isBeginning?: boolean | undefined;
}

/** `other`: another note was there than the one that was seen. `full`: no write begins. In both cases nothing has changed. */
export type Swapped = 'done' | 'other' | 'full';

/**
 * Where notes, records, counts and copies are: in this process, in the first of several, in Redis, or in a Durable Object
 * for each account. What cannot be asked rejects.
 */
export interface Backend {
  /** The store is this process: `peek` is what is true now, and no instance knows anything else. */
  readonly isHere: boolean;
  readonly accounts: KnownAccounts;
  /** How long a note is kept at least after a change, in milliseconds. */
  readonly noteMs: number;
  /** Milliseconds since 1970, by the store's clock. */
  now(): number;
  /** What it has told instances may be lost until then, by its clock. */
  readonly reliableAt: number;
  /** The account's note, the copies under these cache keys, and the record of this idempotency key. */
  look(account: Account, keys?: readonly CacheKey[], key?: string): MaybePromise<Looked>;
  /** The last note of the account that this instance has seen. */
  peek(account: Account): Seen | undefined;
  swap(account: Account, seen: Seen, next: Next): MaybePromise<Swapped>;
  /** Counts so many at once. The window's end is by the store's clock. */
  count(account: Account, window: Period, many: number): MaybePromise<WindowUse>;
  /**
   * Keeps a copy for other instances, if it is not too large. Resolves with whether this instance may keep it too: the
   * account has the note that its version came from, and one that outlives it.
   */
  keep?(account: Account, key: CacheKey, copy: Copy): Promise<boolean>;
  /** The upstream accepts the account: to be told to the process that keeps it. */
  accept?(account: Account): void;
}
