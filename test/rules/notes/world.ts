import type { Judge } from './judge.ts';
import type { VirtualTime } from './time.ts';

/** Milliseconds. How long the upstream may take, and may carry out a write without an answer after that. */
export const REQUEST_MS = 4_000;
export const LATE_MS = 6_000;
/** Rule 13: for so long a store that is new is not relied on. */
export const WINDOW_MS = REQUEST_MS + 5_000;
/** Rule 11. */
export const HELLO_MS = 1_000;
export const SILENCE_MS = 2_500;
/** A connection that owes a reply for so long is given up. */
export const MAX_OWED_MS = 2_000;
/** What `down-after-milliseconds` is for: no other primary is promoted sooner. And `min-replicas-max-lag`, with the second in which it is found. */
export const DOWN_AFTER_MS = 5_000;
export const MAX_LAG_MS = 3_000;
/** How much longer a note lives than a copy: a copy may be kept so long after it was asked for. */
export const NOTE_OUTLIVES_COPY_MS = 10_000;
/** A schedule, the part of it with load and faults, and the quiet part after it. */
export const LOAD_MS = 51_000;
export const END_MS = 85_000;

/** Numbers from 0 to 1, the same for the same seed. */
export type Random = () => number;

export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export const oneOf = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)]!;

/** What all parts of one schedule share. */
export interface World {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly judge: Judge;
  /** Milliseconds that a command, a reply or a call of the upstream is under way. */
  readonly delay: () => number;
  /** Of the reads that the upstream answers with a refusal of the account. */
  readonly refusing: number;
  /** No instance is killed or stands still, and nothing is refused, after that. */
  readonly faultsUntil: number;
  /** How long a copy may be used. */
  readonly copyMs: number;
}

/** Few, now and then many. */
export const usualDelay = (random: Random) => () => (random() < 0.02 ? random() * 1_500 : 2 + random() * 20);
