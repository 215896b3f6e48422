import type { Soon } from './soon.ts';

/** What the core needs of a runtime. `entry/` builds these; tests pass their own. */

/** Milliseconds since the epoch, and the only timer in use. */
export interface Clock {
  /** Never goes back, and may stand still while the machine sleeps. */
  now(): number;
  /** The time of day, which may be set forth and back. */
  wall(): number;
  /** Runs once after `ms`; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
}

/** Keeps work alive that outlives its request, as an execution context of Workers does; on Node the drain awaits it. */
export type WaitUntil = (work: Promise<unknown>) => void;

export interface Digest {
  /** Keyed hash of a credential, one for each secret: an `AccountId` of the store. */
  account(credential: string): Soon<string>;
  /** Hash of a body, for a strong ETag. */
  body(text: string): Soon<string>;
}

/** Makes what opens sealed values (base64url) without waiting, for one purpose; undefined for what was not sealed for it. */
export type MakeOpener = (
  secrets: readonly string[],
  purpose: string,
) => (additionalData: string, value: string) => string | undefined;
