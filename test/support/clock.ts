import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../src/core/runtime.ts';

/** Time that stands still until the test moves it. */
export interface TestClock extends Clock {
  /**
   * Lets so many seconds pass. What falls due runs in the order of its time and sees that time as `now`; what it starts in
   * this process has settled before the next.
   */
  pass(seconds: number): Promise<void>;
  /** The same where nothing has to settle in between. */
  advance(ms: number): void;
  /** Milliseconds of the timers that have been set and neither run nor been cancelled. */
  timers(): readonly number[];
}

interface Timer {
  readonly ms: number;
  readonly at: number;
  readonly run: () => void;
}

/** The first to fall due until `end`; of equals the one set first, since a Set keeps that order. */
const nextDue = (timers: ReadonlySet<Timer>, end: number): Timer | undefined => {
  let first: Timer | undefined;
  for (const timer of timers) if (timer.at <= end && (!first || timer.at < first.at)) first = timer;
  return first;
};

/** When it begins. */
export const START_MS = Date.UTC(2026, 5, 9, 12);

export function testClock(startMs = START_MS): TestClock {
  const timers = new Set<Timer>();
  /** Timers of no length, which pass by themselves. */
  const atOnce = new Set<NodeJS.Immediate>();
  let now = startMs;

  const after = (ms: number, run: () => void) => {
    if (ms <= 0) {
      const immediate = setImmediate(() => {
        atOnce.delete(immediate);
        run();
      });
      atOnce.add(immediate);
      return () => {
        atOnce.delete(immediate);
        clearImmediate(immediate);
      };
    }
    const timer = { ms, at: now + ms, run };
    timers.add(timer);
    return () => void timers.delete(timer);
  };

  /** All that promises and timers of no length lead to. */
  const settled = async () => {
    do await turn();
    while (atOnce.size > 0);
  };

  return {
    now: () => now,
    wall: () => now,
    after,
    async pass(seconds) {
      const end = now + seconds * 1000;
      await settled();
      for (let due = nextDue(timers, end); due; due = nextDue(timers, end)) {
        timers.delete(due);
        now = due.at;
        due.run();
        await settled();
      }
      now = end;
    },
    advance(ms) {
      const end = now + ms;
      for (let due = nextDue(timers, end); due; due = nextDue(timers, end)) {
        timers.delete(due);
        now = due.at;
        due.run();
      }
      now = end;
    },
    timers: () => Array.from(timers, ({ ms }) => ms),
  };
}
