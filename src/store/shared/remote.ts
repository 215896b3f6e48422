/** Where a copy stands in time: its versions, and when the upstream was asked for it. */
interface Stamp {
  readonly versions: string;
  readonly askedAt: number;
}

/** One place that is asked about, its names hashed. */
export interface PlaceQuestion {
  readonly key: string;
  readonly tags: readonly string[];
  /** The copy that is here already, whose value need not come again. */
  readonly have: Stamp | undefined;
}

export interface Question {
  readonly places: readonly PlaceQuestion[];
  /** A window to be counted in. */
  readonly window?: { readonly name: string; readonly lengthMs: number } | undefined;
}

export interface PlaceReply {
  readonly versions: string;
  /** Of a copy whose versions hold. */
  readonly askedAt?: number | undefined;
  /** How long the engine has had it, by the engine's clock. */
  readonly ageMs?: number | undefined;
  /** Sealed; absent where `have` is that very copy. */
  readonly value?: Uint8Array | undefined;
}

export interface Reply {
  /** In the order asked. */
  readonly places: readonly PlaceReply[];
  readonly use?: { readonly used: number; readonly leftMs: number } | undefined;
  /** How long the upstream wants no calls of the account; 0: not at all. */
  readonly heldMs: number;
}

/** A copy to be kept, as long as its versions hold. */
export interface NewCopy extends Stamp {
  readonly key: string;
  readonly tags: readonly string[];
  /** Sealed. */
  readonly value: Uint8Array;
  readonly lifeMs: number;
}

export interface NewTurn {
  readonly key: string;
  readonly versions: string;
  readonly instance: string;
  readonly lifeMs: number;
}

/** How far a write has come: claimed by a request, about to be sent or sent, over. */
export type Stage = 'claimed' | 'sent' | 'settled';

/** The record of one write, as its request wants it written. */
export interface NewRecord {
  readonly key: string;
  /** The request's own; nobody else changes its record. */
  readonly nonce: string;
  readonly stage: Stage;
  /** Sealed. */
  readonly value: Uint8Array;
  readonly lifeMs: number;
}

export interface KnownRecord {
  readonly stage: Stage;
  readonly value: Uint8Array;
  /** Since it came to this stage. */
  readonly ageMs: number;
}

/**
 * An engine that instances share: Redis, Durable Objects. Each method is one round trip and atomic, and rejects when the
 * engine does not answer in time; what was asked may then have happened, or may still. All is of one account, every
 * name is hashed, every value sealed, and everything expires.
 */
export interface Remote {
  /** `silent`: the last question had no answer; `gone`: there is nobody to ask. Absent where that is not known. */
  readonly state?: () => 'there' | 'silent' | 'gone';
  /** Whether no instance is missing that may write what the engine does not hear of. Absent where that is not known. */
  readonly isWhole?: () => boolean;
  visit(account: string, question: Question): Promise<Reply>;
  /** Keeps a copy while its versions hold, in the place of older ones only; says whether it did. */
  save(account: string, copy: NewCopy): Promise<boolean>;
  /** Gives these tags new versions; with `*` among them, everything of the account. */
  touch(account: string, tags: readonly string[]): Promise<void>;
  /** Gives the turn at a place to an instance; takes it from one that has it for other versions. Says who has it. */
  takeTurn(account: string, turn: NewTurn): Promise<boolean>;
  passTurn(account: string, turn: Pick<NewTurn, 'key' | 'instance'>): Promise<void>;
  hold(account: string, ms: number): Promise<void>;
  /** Writes the record where there is none; else comes back with the one that is there. */
  claim(account: string, record: NewRecord): Promise<KnownRecord | undefined>;
  /** Writes over the request's own record, and says whether it was there; any record of another's stays. */
  advance(account: string, record: NewRecord): Promise<boolean>;
  /** Writes the request's own record, where no other's is. */
  settle(account: string, record: NewRecord): Promise<void>;
  release(account: string, record: Pick<NewRecord, 'key' | 'nonce'>): Promise<void>;
}

/** Stands for everything of an account, and is no hash. */
export const ALL = '*';

/** Versions of an account that an engine keeps; more are one new epoch. */
export const MAX_TAGS = 64;

/** Of a sealed value: what the smallest of the engines takes, a row of a Durable Object, with room for its names. */
export const MAX_VALUE_BYTES = 1_900_000;
