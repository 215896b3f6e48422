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

/**
 * State that instances may share. Everything is per account; versions are unguessable or never repeat, so that a store
 * that comes back empty invalidates everything (`contract.md` sections 5 and 7).
 */
export interface Store {
  lookup(place: Place): MaybePromise<Found>;
  /** Stores only while `versions` still hold, and in the place of older answers only; says whether it did. */
  save(place: Place, entry: Entry, versions: Versions): MaybePromise<boolean>;
  /** Forgets one answer, and makes reads of it that are under way worthless. */
  drop(place: Place): MaybePromise<void>;
  /** Makes every answer with one of these tags, and every read under way, worthless. */
  touch(account: AccountId, tags: readonly Tag[]): MaybePromise<void>;
}
