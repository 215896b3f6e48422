/**
 * What instances share, as an engine keeps it: Redis, or a Durable Object for each account. Five questions, each one
 * round trip, atomic, and of one account. Every name is a hash, every value is sealed, and everything expires.
 * Durations are in milliseconds. Instants are the engine's own: no clock but the engine's counts in it.
 * Each rejects where the engine does not answer; what was asked may then have happened, or may still happen.
 */
export interface Engine {
  /** What stands under these keys, and what the request counts in. */
  snapshot(account: string, question: Question): Promise<Snapshot>;
  /** Ends a fetch, with a copy or with nothing. */
  save(account: string, save: Save): Promise<Saved>;
  /** Announces a write before it is sent. */
  beginWrite(account: string, write: WriteBegin): Promise<WriteBegun>;
  /** Says how a write ended. Asked again, it does nothing new. */
  endWrite(account: string, write: WriteEnded): Promise<void>;
  /** What needs no answer. */
  change(account: string, change: Change): Promise<void>;
}

/** A span of time in which something of an account is counted, from the first of it on. */
export interface Window {
  readonly name: string;
  readonly lengthMs: number;
  /** More than this is refused. */
  readonly limit: number;
}

export interface Use {
  /** This one included. */
  readonly used: number;
  readonly leftMs: number;
}

export interface KeyQuestion {
  readonly key: string;
  /** What its version is made of. */
  readonly tags: readonly string[];
  /** The copy that this instance has, which need not be sent again. */
  readonly have?: { readonly version: string; readonly askedAt: number; readonly isFresh: boolean } | undefined;
  /** Nonce of the lease to take where no copy is fresh. Absent: none is wanted. */
  readonly lease?: string | undefined;
  /**
   * The lease that was waited for: where it is over, a newer copy of any age is enough, and there is no other lease to
   * wait for.
   */
  readonly waitedFor?: string | undefined;
}

export interface Question {
  /** Counted in. Over the limit no key is looked at. */
  readonly window?: Window | undefined;
  /** Looked at only. */
  readonly budget?: Omit<Window, 'limit'> | undefined;
  readonly keys: readonly KeyQuestion[];
}

interface CopyReply {
  /** When the upstream was asked for it. */
  readonly askedAt: number;
  readonly ageMs: number;
  /** Sealed. Absent where the instance has this very copy. */
  readonly value?: Uint8Array | undefined;
}

export interface KeyReply {
  readonly version: string;
  /** Of this version; absent where there is none. */
  readonly copy?: CopyReply | undefined;
  /** Nonce of who fetches: the asker's own, or the one to wait for. Absent: nobody has to wait. */
  readonly lease?: string | undefined;
}

export interface Snapshot {
  readonly now: number;
  /** Absent where the engine has no room to count in. */
  readonly use?: Use | undefined;
  readonly budget?: Use | undefined;
  /** How long the upstream wants no calls of the account; 0: not at all. */
  readonly cooldownMs: number;
  /**
   * In the order asked. Nothing where no copy may be given or kept: under a mark, or in the window of another store.
   */
  readonly keys: readonly (KeyReply | undefined)[];
}

export interface Save {
  readonly key: string;
  readonly tags: readonly string[];
  /** As the snapshot said it, before the upstream was asked. */
  readonly version: string;
  /** The time of that snapshot. */
  readonly askedAt: number;
  /** The lease that ends with this. */
  readonly lease?: string | undefined;
  readonly copy?: { readonly value: Uint8Array; readonly freshMs: number; readonly lifeMs: number } | undefined;
  /** What is no longer true: the copy under this key, or everything of the account. */
  readonly drop?: 'key' | 'everything' | undefined;
}

/**
 * `kept`: it is there. `full`: the version holds, but there is no room for it (or there was no copy). `void`: a mark
 * stands, the version is another one, or a newer copy is there.
 */
export type Saved = 'kept' | 'full' | 'void';

/** Where a write stands that a record or a mark speaks of. */
export type Standing = 'under_way' | 'unknown';

export interface WriteBegin {
  readonly nonce: string;
  readonly window?: Window | undefined;
  /** Reads with one of these are neither answered from a copy nor kept while the mark stands. */
  readonly tags: readonly string[];
  /** How long the request may take. From then on a mark or a record that nobody has settled is of unknown outcome. */
  readonly busyMs: number;
  /** How long the mark stands where nobody says how the write ended. */
  readonly markMs: number;
  /** Of a write with a key. */
  readonly record?: { readonly key: string; readonly value: Uint8Array; readonly lifeMs: number } | undefined;
  /** Of a purchase: what it buys, hashed. One without a key meets any live mark of it, one with a key those without. */
  readonly purchase?: string | undefined;
}

/**
 * What became of the announcement. Everything but `begun` leaves nothing behind.
 * `over`: the nonce was ended before. `limit`: the window is used up. `record`: the key is taken. `equal`: so is the
 * purchase. `cooldown`: the upstream wants no calls. `another_store`: what it knows may not be all. `full`: no room.
 */
export type WriteBegun = { readonly use?: Use | undefined } & (
  | { readonly is: 'begun' | 'over' | 'limit' | 'full' }
  /** `leftMs`: until it may be relied upon. */
  | { readonly is: 'another_store'; readonly leftMs: number }
  | { readonly is: 'cooldown'; readonly cooldownMs: number }
  | { readonly is: 'equal'; readonly standing: Standing }
  /** `isOver`: the time of its request has passed. */
  | { readonly is: 'record'; readonly value: Uint8Array; readonly isOver: boolean }
);

export interface WriteEnded extends Pick<WriteBegin, 'nonce' | 'tags' | 'purchase'> {
  /**
   * `done`: the record is settled, the mark goes. `refused`: the record and the mark go. `unknown`: the record says so,
   * the mark stays. `not_sent`: record and mark go, and versions stay as they are. With all but the last, what has the
   * tags gets new versions when its mark goes, by its time too.
   */
  readonly end: 'done' | 'refused' | 'unknown' | 'not_sent';
  /** How long the mark has still to stand, or its nonce to be remembered. */
  readonly markMs: number;
  readonly record?:
    | { readonly key: string; readonly value?: Uint8Array | undefined; readonly lifeMs: number }
    | undefined;
  /** The credential was refused: nothing of the account is true any more. */
  readonly dropEverything?: boolean | undefined;
}

export interface Change {
  /** A lease to be kept for longer, where it is still the nonce's. */
  readonly renewed?: { readonly key: string; readonly lease: string } | undefined;
  /** The upstream wants no calls for so long. */
  readonly cooldownMs?: number | undefined;
  /** A call of the upstream's, to be counted in its budget. */
  readonly spent?: Omit<Window, 'limit'> | undefined;
}

/** Nothing was asked: there is no connection. */
export class NotAsked extends Error {
  constructor() {
    super('there is no connection to the store');
    this.name = 'NotAsked';
  }
}

/** Stands for everything of an account among tags, and is no hash. */
export const ALL = '*';

/** Of a sealed value: what the smallest of the engines takes, a row of a Durable Object, with room for its names. */
export const MAX_VALUE_BYTES = 1_900_000;

/** Versions of an account that an engine keeps; with more it begins anew. */
export const MAX_TAGS = 64;

/** Marks of an account that an engine keeps; with more a write is refused. */
export const MAX_MARKS = 1_000;

/** Leases of an account that an engine keeps; with more it forgets all, which only costs calls of the upstream. */
export const MAX_LEASES = 256;

/** A lease that is not renewed is over after this. */
export const LEASE_MS = 1_500;
