import { DAY, type Instant } from './time.ts';

/** Not 0, so that a client that drops microseconds is noticed. */
const MICROSECONDS = 337;

export type Clock = ReturnType<typeof createClock>;

/** The sandbox's own clock: the given one, moved by hand. */
export function createClock(base: () => number) {
  let offsetMs = 0;
  return {
    now: (): Instant => Math.floor(base() + offsetMs) * 1000 + MICROSECONDS,
    advance: (seconds: number) => void (offsetMs += seconds * 1000),
    set: (epochMs: number) => void (offsetMs = epochMs - base()),
    reset: () => void (offsetMs = 0),
  };
}

/** As `seedTime`: sandboxes that start on the same day have the same data. */
export const startOfDay = (instant: Instant): Instant => instant - (instant % DAY) + MICROSECONDS;
