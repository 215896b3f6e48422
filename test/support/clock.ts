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

/** Time that stands still until a test moves it. */
export const manualClock = (startMs = Date.UTC(2026, 5, 9, 12)): ManualClock => {
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

  return { now: () => now, after, advance, pending: () => timers.size };
};
