import { DAY, type Instant } from './time.ts';

/** The sandbox's own clock: the given one, moved by hand. */
export interface Clock {
  readonly now: () => Instant;
  readonly advance: (seconds: number) => void;
  readonly set: (epochMs: number) => void;
  readonly reset: () => void;
}

/** Not 0, so that a client that drops microseconds is noticed. */
const MICROSECONDS = 337;

export function createClock(base: () => number): Clock {
  let offsetMs = 0;
  return {
    now: () => Math.floor(base() + offsetMs) * 1000 + MICROSECONDS,
    advance: (seconds) => void (offsetMs += seconds * 1000),
    set: (epochMs) => void (offsetMs = epochMs - base()),
    reset: () => void (offsetMs = 0),
  };
}

/** As `seedTime`: sandboxes that start on the same day have the same data. */
export const startOfDay = (instant: Instant): Instant => instant - (instant % DAY) + MICROSECONDS;
