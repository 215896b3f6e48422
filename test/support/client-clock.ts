import { onTestFinished, vi } from 'vitest';

/** After so long a watch gives a try up. That is no pause. */
export const TRY_MS = 45_000;

/** Waits without `Retry-After`, as random as they are in these tests. */
export const FIRST_PAUSE = 250;
export const SECOND_PAUSE = 500;

/** A time for which the client waits. */
export interface Pause {
  readonly ms: number;
  readonly end: () => void;
}

/**
 * The time of the test in place of the global one. Nothing passes but by `pass`, and the client's pauses, unless they are
 * held. `more` takes the place of what is global too.
 */
export function createClock({ random = 0.5, more = {} }: { random?: number; more?: object } = {}) {
  let now = Date.parse('2026-06-09T18:50:08Z');
  let isHeld = false;
  const lengths: number[] = [];
  const pauses: Pause[] = [];
  const running = new Map<unknown, () => void>();
  let told = 0;
  let look: (() => void) | undefined;

  const setTimeout = (run: () => void, ms: number) => {
    const timer = Symbol(ms);
    running.set(timer, run);
    if (ms === TRY_MS) return timer;
    const end = () => {
      now += ms;
      if (running.delete(timer)) run();
    };
    lengths.push(ms);
    pauses.push({ ms, end });
    look?.();
    if (!isHeld) queueMicrotask(end);
    return timer;
  };

  const clearTimeout = (timer: unknown) => void running.delete(timer);
  for (const [name, value] of Object.entries({ setTimeout, clearTimeout, ...more })) vi.stubGlobal(name, value);
  vi.spyOn(Date, 'now').mockImplementation(() => now);
  vi.spyOn(Math, 'random').mockReturnValue(random);
  onTestFinished(() => void vi.unstubAllGlobals().restoreAllMocks());
  return {
    /** All pauses so far. */
    lengths: lengths as readonly number[],
    pass: (ms: number) => void (now += ms),
    /** From now on pauses end when the test says so. */
    hold: () => void (isHeld = true),
    /** The next pause, when it begins. Each is told of once. */
    next: (): Promise<Pause> =>
      new Promise((resolve) => {
        const number = told++;
        look = () => void (pauses.length > number && resolve(pauses[number]!));
        look();
      }),
    /** All that is waited for is over: with pauses held, a try of a watch that has no answer. */
    end: () => {
      now += TRY_MS;
      for (const run of running.values()) run();
    },
  };
}

/** Page and network, as the test says. */
export function createSurroundings() {
  const heard = new Set<unknown>();
  const listening = () => ({
    addEventListener: (_: string, hear: unknown) => void heard.add(hear),
    removeEventListener: (_: string, hear: unknown) => void heard.delete(hear),
  });
  const tell = () => [...heard].forEach((hear) => (hear as () => void)());
  const document = { visibilityState: 'visible', ...listening() };
  return {
    more: { document, ...listening() },
    heard,
    turn(state: 'visible' | 'hidden') {
      document.visibilityState = state;
      tell();
    },
    /** The network is back. */
    online: tell,
  };
}
