import type { SessionState, Use, Window, WindowUse } from '../store.ts';
import type { Changes, Numbered } from './changes.ts';
import type { WriteBegin, WriteBegun, WriteEnded } from '../writes.ts';

/**
 * Keeps what instances share: Redis, or a Durable Object for each account. Each call is one round trip, atomic, and of
 * one account. Names are hashes, values are sealed, everything expires. Durations are in milliseconds, instants in the
 * engine's own time. A call rejects where the engine does not answer; it may have happened then, or happen later.
 * Between a worker and its objects, which may be of two releases, these are the fields as sent.
 */
export interface Engine {
  snapshot(account: string, question: Question): Promise<SnapshotReply>;
  /** Ends a fetch, with or without a copy. */
  save(account: string, save: Save): Promise<SaveReply>;
  beginWrite(account: string, write: WriteBegin): Promise<WriteBegun>;
  /** May be repeated. */
  endWrite(account: string, write: WriteEnded): Promise<void>;
  /** What needs no reply. */
  change(account: string, change: Change): Promise<void>;
  /** Changes nothing, so that a store that takes nothing new may still answer. Absent where there is no such store. */
  session?(account: string, id: string): Promise<SessionState>;
  /** Calls back where the store turns out to be another one, or to have lost what it had. Absent where that cannot be. */
  onAnother?(listener: () => void): void;
  /** What was heard of changes. Absent where each read has to ask. */
  readonly changes?: Changes | undefined;
}

/** By this process's clock, and without what was counted in advance. */
export const useOf = ({ used, leftMs, advance = 0 }: Use, now: number): WindowUse => {
  return { used: used - advance, endsAt: now + leftMs };
};

export interface KeyQuestion {
  readonly key: string;
  /** Its version is made of theirs. */
  readonly tags: readonly string[];
  /** The instance's own copy, which need not be sent again. */
  readonly have?: { readonly version: string; readonly askedAt: number; readonly isFresh: boolean } | undefined;
  /** Nonce of the lease to take where no copy is fresh. */
  readonly lease?: string | undefined;
  /** The lease waited for. Once it is over, a newer copy of any age is enough, and no other lease is waited for. */
  readonly waitedFor?: string | undefined;
}

export interface Question {
  /** Over its limit no key is looked up. */
  readonly window?: Window | undefined;
  /** How many requests to count in it: 1 unless it says so. */
  readonly count?: number | undefined;
  /** How many more to count in it at most, if it has begun before and so many are left. */
  readonly advance?: number | undefined;
  /** Id of a session, and its epoch. A higher one than is known has been lost: it is taken over. */
  readonly session?: string | undefined;
  readonly sessionEpoch?: number | undefined;
  readonly keys: readonly KeyQuestion[];
}

export interface KeyReply {
  readonly version: string;
  /** Of this version. `askedAt`: when the upstream was asked for it. Without a value where the instance has this copy. */
  readonly copy?:
    | { readonly askedAt: number; readonly ageMs: number; readonly value?: Uint8Array | undefined }
    | undefined;
  /** Nonce of the lease to fetch: the request's own, or the one to wait for. Absent: nothing to wait for. */
  readonly lease?: string | undefined;
}

export interface SnapshotReply {
  readonly now: number;
  /** Absent where the engine has no room to count. */
  readonly use?: Use | undefined;
  readonly cooldownMs: number;
  readonly session?: SessionState | undefined;
  /** In the order asked. Undefined where no copy may be used or kept: under a mark, or after the store was replaced. */
  readonly keys: readonly (KeyReply | undefined)[];
  /** Where changes are numbered. */
  readonly numbered?: Numbered | undefined;
}

export interface Save {
  readonly key: string;
  readonly tags: readonly string[];
  /** Of the snapshot before the fetch. */
  readonly version: string;
  /** `now` of that snapshot. */
  readonly askedAt: number;
  readonly lease?: string | undefined;
  readonly copy?: { readonly value: Uint8Array; readonly freshMs: number; readonly lifeMs: number } | undefined;
  /** What is no longer valid: the copy under this key, or everything of the account. */
  readonly drop?: 'key' | 'everything' | undefined;
}

/**
 * `kept`: the copy is stored. `full`: the version is the same, but there is no room, or no copy. `void`: there is a mark,
 * another version or a newer copy.
 */
export type SaveReply = 'kept' | 'full' | 'void';

export interface Change {
  /** A lease to prolong, if it has still this nonce. */
  readonly renewed?: { readonly key: string; readonly lease: string } | undefined;
  readonly cooldownMs?: number | undefined;
  /** A session to revoke, and the epoch of all, which only grows. */
  readonly revoked?:
    | { readonly id?: string | undefined; readonly epoch?: number | undefined; readonly lifeMs: number }
    | undefined;
}

/** Nothing was sent: there is no connection. */
export class NotAsked extends Error {
  override readonly name = 'NotAsked';
  override readonly message = 'there is no connection to the store';
}

/** Of a sealed value: a row of a Durable Object takes 2 MB, its names included. */
export const MAX_VALUE_BYTES = 1_900_000;

/** Versions of an account that an engine keeps; with more it renews all. */
export const MAX_TAGS = 64;

/**
 * What the copies of an account may take together, and what its records may; a sixteenth of the store's memory where that
 * is limited. Beyond it the account loses copies of its own, and takes no further key.
 */
export const MAX_HELD_BYTES = 33_554_432;

/** A copy counts as at least that part, so this is how many there are at most. */
export const MAX_COPIES = 4_096;

/** A record counts as at least so much: its name and its place take that. */
export const LEAST_RECORD_BYTES = 512;

/** Leases of an account; beyond them all are forgotten, which costs calls of the upstream only. */
export const MAX_LEASES = 256;

/** The longest cooldown. One that ends later was set before the engine's clock was set back. */
export const MAX_COOLDOWN_MS = 300_000;

/** How long a lease lasts unless it is renewed. */
export const LEASE_MS = 1_500;
