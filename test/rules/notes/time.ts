import type { Clock } from '../../../src/core/runtime.ts';

interface Event {
  readonly at: number;
  readonly run: () => void;
}

/** So many events, then whatever else this process has to do gets its turn. */
const EVENTS_AT_ONCE = 2_000;

/** Time that passes from event to event. Before the next event all promises that the last one settled have been heard. */
export class VirtualTime {
  now: number;
  /** The next one last. */
  readonly #events: Event[] = [];

  constructor(startMs: number) {
    this.now = startMs;
  }

  at(at: number, run: () => void): void {
    const event: Event = { at: Math.max(at, this.now), run };
    const before = this.#events.findLastIndex((other) => other.at > event.at);
    this.#events.splice(before + 1, 0, event);
  }

  after(ms: number, run: () => void): void {
    this.at(this.now + ms, run);
  }

  /** Runs all events until then. Promises are heard before a tick that a microtask has asked for. */
  play(until: number): Promise<void> {
    return new Promise((resolve, reject) => {
      let count = 0;
      const step = () => {
        const event = this.#events.at(-1);
        if (!event || event.at > until) return resolve();
        this.#events.pop();
        this.now = event.at;
        try {
          event.run();
        } catch (error) {
          return reject(error);
        }
        if (++count % EVENTS_AT_ONCE === 0) setImmediate(step);
        else queueMicrotask(() => process.nextTick(step));
      };
      step();
    });
  }
}

/** A process that can be killed, and can stand still: what is due meanwhile runs when it goes on. */
export class SimulatedProcess {
  readonly clock: Clock;
  isAlive = true;
  #pausedUntil = -Infinity;
  readonly #time: VirtualTime;

  constructor(time: VirtualTime) {
    this.#time = time;
    this.clock = {
      now: () => time.now,
      wall: () => time.now,
      after: (ms, run) => {
        let isCancelled = false;
        time.after(Math.max(0, ms), () => this.run(() => void (isCancelled || run())));
        return () => {
          isCancelled = true;
        };
      },
    };
  }

  run(what: () => void): void {
    if (!this.isAlive) return;
    if (this.#time.now >= this.#pausedUntil) what();
    else this.#time.at(this.#pausedUntil, () => this.run(what));
  }

  after(ms: number, what: () => void): void {
    this.#time.after(ms, () => this.run(what));
  }

  /** Never resolves in a process that was killed. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  standStill(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#time.now + ms);
  }
}
