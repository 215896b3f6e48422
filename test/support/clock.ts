import type { Clock } from '../../src/core/runtime.ts';

export interface ManualClock extends Clock {
  /** Lets time pass: what falls due runs in the order of its time, seeing that time as `now`. */
  advance(ms: number): void;
  /** Timers not yet run or cancelled; a component that has stopped leaves none. */
  pending(): number;
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/** The first to fall due until `end`; of equals the one set first, since a Set keeps that order. */
const nextDue = (timers: ReadonlySet<Timer>, end: number): Timer | undefined => {
  let first: Timer | undefined;
  for (const timer of timers) if (timer.at <= end && (!first || timer.at < first.at)) first = timer;
  return first;
};

/** When a manual clock begins. */
export const START_MS = Date.UTC(2026, 5, 9, 12);

/** Time that stands still until a test moves it. */
export const manualClock = (startMs = START_MS): ManualClock => {
  const timers = new Set<Timer>();
  let now = startMs;

  const after = (ms: number, run: () => void) => {
    const timer = { at: now + Math.max(0, ms), run };
    timers.add(timer);
    return () => void timers.delete(timer);
  };

  const advance = (ms: number) => {
    const end = now + ms;
    // Looked up anew each time: a timer may set or cancel others.
    for (let due = nextDue(timers, end); due; due = nextDue(timers, end)) {
      timers.delete(due);
      now = due.at;
      due.run();
    }
    now = end;
  };

  return { now: () => now, wall: () => now, after, advance, pending: () => timers.size };
};

/** Deadlines wait for `advance`; pauses between attempts are shorter than this and pass by themselves. */
export const LONGEST_PAUSE_MS = 1000;

export const clockOfDeadlines = (): ManualClock => {
  const clock = manualClock();
  return {
    ...clock,
    after(ms, run) {
      if (ms >= LONGEST_PAUSE_MS) return clock.after(ms, run);
      const pause = setImmediate(run);
      return () => clearImmediate(pause);
    },
  };
};

/** A clock that tells when somebody begins to wait. */
export interface WatchedClock extends ManualClock {
  /** Resolves once so many timers of such a length have been set, those before now included. */
  waits(isMeant: (ms: number) => boolean, times?: number): Promise<void>;
  /** Lengths of all timers so far. */
  readonly lengths: readonly number[];
}

export const watchedClock = (): WatchedClock => {
  const clock = manualClock();
  const lengths: number[] = [];
  let watchers: readonly (() => void)[] = [];
  return {
    ...clock,
    lengths,
    after(ms, run) {
      lengths.push(ms);
      const cancel = clock.after(ms, run);
      for (const look of watchers) look();
      return cancel;
    },
    waits: (isMeant, times = 1) =>
      new Promise((resolve) => {
        const look = () => {
          if (lengths.filter(isMeant).length >= times) resolve();
        };
        watchers = [...watchers, look];
        look();
      }),
  };
};
