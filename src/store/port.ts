import type { GatewayError } from '../core/errors.ts';
import { type Clock, msSince, type WaitUntil } from '../core/runtime.ts';

/** Keyed hash of a credential, or of a client's address for the calls that take none. */
export type AccountId = string;

/**
 * Whose share of the bounded resources something takes: that of an account which the upstream has accepted, or
 * `address …` for all credentials from an address that the upstream has not accepted yet.
 */
export type Owner = string;

const ADDRESS = 'address ';

/** Hashes of accounts hold no space. */
export const addressOwner = (address: string): Owner => `${ADDRESS}${address}`;

export const isAddress = (owner: Owner): boolean => owner.startsWith(ADDRESS);

/** What versions are kept for: a group of reads, one item of a group, or everything of the account. */
export type Tag = string;

/** The tag for everything of an account; no hash is equal to it. */
export const EVERYTHING: Tag = '*';

/** A version of a cache key's tags. Two are equal only if nothing was invalidated in between. */
export type Version = string;

/** A cached answer. */
export interface Entry {
  /** JSON as the upstream sent it, links to the upstream's pages made relative. */
  readonly text: string;
  /** Places in `text` where a link needs the origin of the gateway in front, ascending. */
  readonly links: readonly number[];
  /** The `Link` header of a page, in the same way. */
  readonly link?: { readonly text: string; readonly links: readonly number[] } | undefined;
  /** Strong validator of `text`, quoted. */
  readonly etag: string;
  /** When the upstream answered, in milliseconds of this process's clock, and of its time of day. */
  readonly storedAt: number;
  readonly storedWall: number;
  /** They make a request to the upstream conditional. */
  readonly validators: { readonly etag?: string; readonly lastModified?: string };
  /** The upstream's own upper limit for how long it is fresh, in milliseconds. */
  readonly maxFreshMs?: number | undefined;
  /** The upstream forbids to answer with it once it is not fresh. */
  readonly isNeverStale?: boolean | undefined;
}

/** The age of an entry, in milliseconds. */
export const ageMsOf = ({ storedAt, storedWall }: Entry, clock: Clock): number => msSince(clock, storedAt, storedWall);

/** How long an entry is fresh when its policy says `freshMs`. */
export const freshFor = (entry: Entry | undefined, freshMs: number) => Math.min(entry?.maxFreshMs ?? freshMs, freshMs);

/** What an answer of an account is kept under. Durations in milliseconds. */
export interface CacheKey {
  /** What it answers. */
  readonly key: string;
  /** What invalidates it. */
  readonly tags: readonly Tag[];
  /** How long an answer is fresh, and how long it is usable at all. Both 0: it is never kept. */
  readonly freshMs: number;
  readonly lifeMs: number;
}

/** Result of looking up a cache key. */
export interface Found {
  readonly entry: Entry | undefined;
  /** Reads share a call of the upstream only under the same version. */
  readonly version: Version;
  /** When it was looked up, by the store's clock: an answer never replaces one that was asked for later. */
  readonly askedAt: number;
  /** No answer may be kept: a write is under way, or the store cannot be relied on just now. */
  readonly isHidden?: boolean;
}

/** What to store after a fetch. */
export interface Fetched {
  readonly entry?: Entry | undefined;
  /** What is no longer valid: the copy under the key, or everything of the account. */
  readonly drop?: 'key' | 'everything' | undefined;
}

/** `holds`: whether what was found is still valid. */
export interface Saved {
  readonly stored: boolean;
  readonly holds: boolean;
}

/** A session of an account. */
export interface SessionId {
  readonly id: string;
  /** When it began, in seconds since 1970, or later: the account's epoch. */
  readonly epoch: number;
}

/** What the store knows of a session. */
export interface SessionState {
  readonly isOver: boolean;
  /** The shared store did not answer: others may know more. */
  readonly isLocal?: boolean;
}

/** What is revoked: one session, or all that began under a lower epoch. */
export type Revoked = { readonly id: string } | { readonly epoch: number };

/** The account that something is asked of, and who keeps the work alive that outlives the request. */
export interface Requested {
  readonly account: AccountId;
  readonly waitUntil: WaitUntil;
}

/** What the store has to know of any request. */
interface StoreRequest extends Requested {
  /** The rate limit to count it in; absent if there is none. */
  readonly window: Window | undefined;
  /** The session that it came by. */
  readonly session?: SessionId | undefined;
}

/** What a request asks of the store when it begins. */
export interface SnapshotRequest extends StoreRequest {
  /** The cache keys that it will look up. */
  readonly keys?: readonly CacheKey[] | undefined;
}

/** A span of time in which requests are counted; it begins with the first. */
export interface Period {
  readonly name: string;
  readonly lengthMs: number;
}

/** More than `limit` is refused. */
export interface Window extends Period {
  readonly limit: number;
}

/** How much of a window is used, this request included; `endsAt` is of this process's clock unless it is said otherwise. */
export interface WindowUse {
  readonly used: number;
  readonly endsAt: number;
}

/** The time until the window ends; at least 1. */
export const secondsLeft = ({ endsAt }: WindowUse, now: number): number =>
  Math.max(1, Math.ceil((endsAt - now) / 1000));

/** A definite answer to a write, as its client got it. */
export interface WriteAnswer {
  readonly status: number;
  readonly text: string | null;
  /** When it was recorded, by wall time. */
  readonly at: number;
}

/** A write has no answer yet, or never will. */
export type OpenState = 'under_way' | 'unknown';

export interface WriteRecord {
  readonly fingerprint: string;
  readonly outcome: OpenState | WriteAnswer;
}

/** A write that invalidates cached answers, has a key, or is a purchase. Instants are of this process's clock. */
export interface NewWrite extends StoreRequest {
  /** What it invalidates. Until it is over, reads of this are neither answered from a copy nor kept. */
  readonly tags: readonly Tag[];
  /** Whether any of that is cached. */
  readonly hasCopies: boolean;
  readonly now: number;
  /** Unique to this write. */
  readonly nonce: string;
  /** When its request is over. */
  readonly endsAt: number;
  /** If its outcome stays unknown, its mark expires then. */
  readonly until: number;
  /** The client's idempotency key, and how long it is remembered. */
  readonly key: string | undefined;
  readonly keyMs: number;
  /** Hash of the request; empty if there is neither a key nor a purchase. */
  readonly fingerprint: string;
  readonly isPurchase: boolean;
}

/** A question after the outcome of a key. */
export type KeyQuestion = StoreRequest & { readonly key: string };

/**
 * How a write ended: answered; refused by the upstream with a 4xx, or with 401 or 403, which refuse the credential;
 * with an unknown outcome; without having been sent.
 */
export type WriteEnd = WriteAnswer | 'refused' | 'credential_refused' | 'unknown' | 'not_sent';

export interface Begun {
  readonly use: WindowUse | undefined;
  /** What prevents it: of its key, or of an equal purchase. */
  readonly record?: WriteRecord | undefined;
  /** Nothing was stored: its rate limit is used up, or the account cools down. */
  readonly isLimited?: boolean;
  /** Nothing was stored: its session was revoked. */
  readonly isRevoked?: boolean;
  /** Nothing was stored: `store_unavailable`. */
  readonly refusal?: GatewayError;
}

/** What the copies of this process take; bounded. */
export interface Usage {
  readonly bytes: number;
  readonly bytesLimit: number;
  readonly entries: number;
  /** Copies that had to go so far, since there was no more room. */
  readonly evicted: number;
}

/** Name of the window in which requests are counted. */
export const requestsBy = (by: 'account' | 'address') => `requests by ${by}`;
