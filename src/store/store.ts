import type { GatewayError } from '../core/errors.ts';
import type { Cancellation } from '../core/cancellation.ts';
import type { Background } from '../core/runtime.ts';
import type { Owner } from './owner.ts';
import type { Window } from './shared/engine.ts';

/** Keyed hash of a credential, or of an address. */
export type AccountId = string;

/** What versions are kept for: a group, one item of it, or all of the account. */
export type Tag = string;

/** Stands for all that an account holds. */
export const EVERYTHING: Tag = '*';

/** The state that the tags of a cache key were in at one moment; equal only if nothing was invalidated in between. */
export type Version = string;

/** A cached answer. */
export interface Entry {
  /** JSON as the upstream sent it, links to the upstream's pages made relative. */
  readonly text: string;
  /** Where in `text` the origin of the gateway goes: the links' places, ascending. */
  readonly links: readonly number[];
  /** Known to be ASCII alone: then it need not be encoded. */
  readonly isAscii?: boolean | undefined;
  /** Strong validator of `text`, quoted. */
  readonly etag: string;
  /** When the upstream answered, in milliseconds of this process's clock. */
  readonly storedAt: number;
  /** What the upstream can be asked with whether it still holds. */
  readonly validators: { readonly etag?: string; readonly lastModified?: string };
  /** The upstream wants it to count as fresh for no longer, in milliseconds. */
  readonly maxFreshMs?: number;
}

/** How long an entry is fresh where its policy says `freshMs`. */
export const freshFor = (entry: Entry | undefined, freshMs: number) => Math.min(entry?.maxFreshMs ?? freshMs, freshMs);

/** What one cached answer is kept under. Durations in milliseconds. */
export interface CacheKey {
  readonly account: AccountId;
  /** What it answers. */
  readonly key: string;
  /** What invalidates it. */
  readonly tags: readonly Tag[];
  /** How long an answer is fresh, and of any use. Both 0: it is never kept. */
  readonly freshMs: number;
  readonly lifeMs: number;
}

/** What stands under a cache key. */
export interface Found {
  /** Absent where there is none, or where something has invalidated it. */
  readonly entry: Entry | undefined;
  /** Reads share a call of the upstream only under the same version. */
  readonly version: Version;
  /** When this was found, in the time of the store: an answer never takes the place of one that was asked for later. */
  readonly askedAt: number;
  /** No answer may be kept: a write is under way, or the store cannot be relied upon. */
  readonly isHidden?: boolean;
  /** Another instance is fetching it. */
  readonly isElsewhere?: boolean;
  /** The copy that another instance has made while this one waited. */
  readonly isMade?: boolean;
}

/** What a fetch comes back with. */
export interface Fetched {
  /** To be kept. */
  readonly entry?: Entry | undefined;
  /** What is no longer true: the copy under the key, or everything of the account. */
  readonly drop?: 'key' | 'everything' | undefined;
}

export interface Saved {
  readonly stored: boolean;
  /** Whether nothing has invalidated what was found. */
  readonly holds: boolean;
}

/** What a request sees of the store. With a shared store all of its questions of one moment are one round trip. */
export interface Snapshot {
  /** Of the limit that the request counts in; absent where there is none. */
  readonly use: WindowUse | undefined;
  /** `now` in milliseconds of this process's clock. */
  lookup(key: CacheKey, now: number): Promise<Found>;
  /**
   * Comes out when it is this instance's turn to fetch, or with the copy that another one has made. Rejects with the
   * reason of the cancellation. Absent where there are no other instances.
   */
  lease?(key: CacheKey, found: Found, cancellation: Cancellation): Promise<Found>;
  /** Ends a fetch. An answer is kept only where nothing has invalidated what was found before it. Never rejects. */
  save(key: CacheKey, found: Found, fetched: Fetched): Promise<Saved>;
  /** The request is over. */
  end?(): void;
}

/** Who counts for what, and whose share of what is bounded that takes. */
export interface Holder {
  /** An account; for the social calls an address, hashed. */
  readonly principal: AccountId;
  readonly owner: Owner;
}

/** A request, with what it counts in and what it will look for. */
export interface Arrival extends Holder {
  readonly now: number;
  /** None where no limit applies. */
  readonly window: Window | undefined;
  /** Asked for with the copies that this instance holds, whether or not they still hold. */
  readonly keys?: ((held: (key: CacheKey) => Entry | undefined) => readonly CacheKey[]) | undefined;
  /** Whether it fetches what is not there, unless another instance does so. */
  readonly fetches?: boolean;
  readonly background: Background;
}

/** How often something was done in a window. */
export interface WindowUse {
  /** This one included. */
  readonly used: number;
  /** In milliseconds of this process's clock. */
  readonly endsAt: number;
}

/** Until a window ends; 1 at least. */
export const secondsLeft = ({ endsAt }: WindowUse, now: number): number =>
  Math.max(1, Math.ceil((endsAt - now) / 1000));

/** A definite answer to a write, as its client got it. */
export interface WriteAnswer {
  readonly status: number;
  readonly text: string | null;
}

/** What is known of a write. */
export interface WriteRecord {
  readonly fingerprint: string;
  readonly outcome: 'under_way' | 'unknown' | WriteAnswer;
}

/** A write that touches what is cached, has a key, or buys. Instants in milliseconds of this process's clock. */
export interface NewWrite extends Holder {
  /** What it counts in. */
  readonly window: Window | undefined;
  /** What it touches. Until the write is over, reads of this are neither answered from a copy nor kept. */
  readonly tags: readonly Tag[];
  /** Tells it from all others. */
  readonly nonce: string;
  readonly now: number;
  /** When its request is over. */
  readonly endsAt: number;
  /** Where nobody learns how it ended, it stays announced until then. */
  readonly until: number;
  /** The client's idempotency key. */
  readonly key: string | undefined;
  /** How long the key is remembered, in milliseconds. */
  readonly keyMs: number;
  /** Hash of what is asked; empty where there is neither a key nor a purchase. */
  readonly fingerprint: string;
  readonly isPurchase: boolean;
  readonly background: Background;
}

/**
 * How a write ended: answered; refused by the upstream (4xx), perhaps with the credential (401, 403); without anybody
 * knowing whether it was done; without having been sent.
 */
export type WriteEnd = WriteAnswer | 'refused' | 'credential_refused' | 'unknown' | 'not_sent';

export interface Begun {
  readonly use: WindowUse | undefined;
  /** What stands in its way: the record of its key, or an equal purchase. */
  readonly known?: WriteRecord | undefined;
  /** Nothing of it was noted: its window is used up, or the upstream wants no calls of the account. */
  readonly isHeldBack?: boolean;
  /** Nothing of it was noted: `store_unavailable`. */
  readonly refusal?: GatewayError;
}

/**
 * State that instances may share. Everything is of one account; versions are unguessable or never repeat, so that a
 * store that comes back empty invalidates everything (`contract.md` sections 5 and 7).
 */
export interface Store {
  /** All that a request needs to begin, in one round trip. Comes out without what the store cannot tell. */
  snapshot(arrival: Arrival): Promise<Snapshot>;
  /** Counts a write, takes its key and announces it, before its first byte goes out. Never rejects. */
  beginWrite(write: NewWrite): Promise<Begun>;
  /** A write of unknown outcome stays announced until its time is over. Never rejects. */
  endWrite(write: NewWrite, end: WriteEnd): Promise<void>;
  /** The upstream wants no calls of this account until then. */
  coolDown(holder: Holder, until: number, background: Background): void;
  /** As far as this instance knows, which each snapshot brings up to date. */
  coolsUntil(account: AccountId): number;
  /** Counts a call in the account's budget of calls of the upstream. Other instances hear of it soon. */
  spend(holder: Holder, now: number, background: Background): WindowUse;
  /** Where everything is in this process: what can be asked without waiting. */
  readonly local?: LocalStore;
}

/** As much of a store as a hit needs. */
export interface LocalStore {
  /** The copy under a key; none while a write that touches it is under way or of unknown outcome. */
  copy(key: CacheKey, owner: Owner, now: number): Entry | undefined;
  /** Counts a request. */
  count(holder: Holder, window: Window, now: number): WindowUse;
}

/** What an in-process store holds; bytes and counts, each of them bounded. */
export interface Usage {
  readonly bytes: number;
  readonly entries: number;
  readonly accounts: number;
  /** Idempotency records. */
  readonly records: number;
  /** Those under way, of unknown outcome or of purchases: they are not evicted before they expire. */
  readonly pinnedRecords: number;
  /** Windows of rate limits and budgets, and cooldowns. */
  readonly windows: number;
}

/** In which an account's calls of the upstream are counted. */
export const BUDGET = { name: 'upstream calls', lengthMs: 60_000 } as const;

/** What is found where nothing may be answered from a copy or kept; reads share a call only under the same `name`. */
export const hidden = (name: string): Found => ({
  entry: undefined,
  version: `hidden ${name}`,
  askedAt: 0,
  isHidden: true,
});
