import type { MaybePromise } from '../core/runtime.ts';

/** Keyed hash of a credential. */
export type AccountId = string;

/** What versions are kept for: a group, one item of it, or all of the account. */
export type Tag = string;

/** Stands for all that an account holds. */
export const EVERYTHING: Tag = '*';

/** The state that an account's tags were in at one moment; equal only if nothing touched them in between. */
export type Versions = string;

/** A cached answer. Instants in milliseconds since the epoch. */
export interface Entry {
  /** JSON as the upstream sent it, links to the upstream's pages made relative. */
  readonly text: string;
  /** Where in `text` the origin of the gateway goes: the links' places, ascending. */
  readonly links: readonly number[];
  /** Strong validator of `text`, quoted. */
  readonly etag: string;
  /** When the upstream was asked: an answer to a later question is never replaced by one to an earlier. */
  readonly askedAt: number;
  /** When it answered. */
  readonly storedAt: number;
  /** What the upstream can be asked with whether it still holds. */
  readonly validators: { readonly etag?: string; readonly lastModified?: string };
}

export interface Found {
  /** Absent when there is none, or when something touched its tags since. */
  readonly entry: Entry | undefined;
  readonly versions: Versions;
}

/** One cached answer's place: whose it is, what it answers, and what invalidates it. */
export interface Place {
  readonly account: AccountId;
  readonly key: string;
  readonly tags: readonly Tag[];
}

/** Answers that may be given again. */
export interface Answers {
  lookup(place: Place): MaybePromise<Found>;
  /** Stores only while `versions` still hold, and in the place of older answers only; says whether it did. */
  save(place: Place, entry: Entry, versions: Versions): MaybePromise<boolean>;
  /** Forgets one answer, and makes reads of it that are under way worthless. */
  drop(place: Place): MaybePromise<void>;
  /** Makes every answer with one of these tags, and every read under way, worthless. */
  touch(account: AccountId, tags: readonly Tag[]): MaybePromise<void>;
}

/** A definite answer to a write, as its client got it. */
export interface WriteAnswer {
  readonly status: number;
  readonly text: string | null;
}

/** One write that must not happen twice. Instants in milliseconds since the epoch. */
export interface Claim {
  /** Whose key it is. */
  readonly account: AccountId;
  readonly key: string;
  /** Hash of what is asked. */
  readonly fingerprint: string;
  readonly now: number;
  readonly expiresAt: number;
  /** Its record outlasts all others: no bound of a store makes its key free before its time. */
  readonly lasting: boolean;
}

/** What is known of such a write. */
export interface WriteRecord {
  readonly fingerprint: string;
  readonly outcome: 'under_way' | 'unknown' | WriteAnswer;
}

/** Records of writes, each written before the first byte goes out: one that is found unsettled is never free. */
export interface Records {
  /**
   * Takes the key, if it is free; else comes back with what is known of it.
   * @throws GatewayError `store_unavailable` where no record can be written
   */
  claim(claim: Claim): MaybePromise<WriteRecord | undefined>;
  settle(claim: Claim, outcome: 'unknown' | WriteAnswer): MaybePromise<void>;
  /** Frees the key: nothing happened. */
  release(claim: Claim): MaybePromise<void>;
}

/** A span of time in which something of an account is counted, from the first of it on. */
export interface Window {
  readonly account: AccountId;
  readonly name: string;
  readonly lengthMs: number;
  readonly now: number;
}

export interface WindowUse {
  /** This one included. */
  readonly used: number;
  readonly endsAt: number;
}

/** How much an account may do. */
export interface Limits {
  take(window: Window): MaybePromise<WindowUse>;
  /** The upstream wants no calls of this account until then. */
  hold(account: AccountId, until: number): MaybePromise<void>;
  heldUntil(account: AccountId): MaybePromise<number>;
}

/**
 * State that instances may share. Everything is per account; versions are unguessable or never repeat, so that a store
 * that comes back empty invalidates everything (`contract.md` sections 5 and 7).
 */
export interface Store {
  readonly answers: Answers;
  readonly records: Records;
  readonly limits: Limits;
}

/** What an in-process store holds; bytes and counts, each of them bounded. */
export interface Usage {
  readonly bytes: number;
  readonly entries: number;
  readonly accounts: number;
  /** Idempotency records: `firm` ones, under way, of unknown outcome or of purchases, are not evicted before their time. */
  readonly records: number;
  readonly firmRecords: number;
  /** Windows of rate limits and budgets, and holds. */
  readonly windows: number;
}
