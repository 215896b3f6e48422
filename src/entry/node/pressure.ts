import { performance } from 'node:perf_hooks';

const LOOK_MS = 50;

/** A loop that is idle for less of its time than this has no time left. */
const BUSY = 0.95;

/** Busy for so long, in so many looks, it is more than with a burst or a pause of the collector. */
const STANDING_MS = 1_500;
const STANDING_LOOKS = 5;

/** How long what is in flight may take to work off then; what comes on top is refused. */
const ENOUGH_MS = 150;

/** With fewer in flight it is not they who keep the loop. */
const FEW = 50;

/** Of the last look, in the mean of all before. */
const SMOOTHING = 0.2;

export interface Pressure {
  /** Whether a request that comes now, with so many before it, is one too many. */
  isOverloaded(inFlight: number): boolean;
}

interface Senses {
  readonly now: () => number;
  /** Share of its time since the last asking that the event loop was busy. */
  readonly utilization: () => number;
  /** Requests so far that are over and were not refused. */
  readonly done: () => number;
}

/**
 * A loop that has had no idle moment for a while serves as fast as it can: what is in flight, divided by what is done in
 * a second, is how long a request has to wait. In good times asking costs a comparison.
 */
export class LoopPressure implements Pressure {
  readonly #senses: Senses;
  #doneBefore = 0;
  #donePerMs = 0;
  #lookedAt: number;
  #idleAt: number;
  #busyLooks = 0;

  constructor(senses: Pick<Senses, 'done'> & Partial<Senses>) {
    this.#senses = { ...loopSenses(), ...senses };
    [this.#lookedAt, this.#idleAt] = [this.#senses.now(), this.#senses.now()];
  }

  /** Looks again and again until the process ends. */
  watch(): this {
    setInterval(() => this.look(), LOOK_MS).unref();
    return this;
  }

  look(): void {
    const now = this.#senses.now();
    const isBusy = this.#senses.utilization() >= BUSY;
    if (!isBusy) this.#idleAt = now;
    this.#busyLooks = isBusy ? this.#busyLooks + 1 : 0;
    const done = this.#senses.done();
    this.#donePerMs += ((done - this.#doneBefore) / (now - this.#lookedAt) - this.#donePerMs) * SMOOTHING;
    this.#doneBefore = done;
    this.#lookedAt = now;
  }

  isOverloaded(inFlight: number): boolean {
    if (this.#busyLooks < STANDING_LOOKS || inFlight <= FEW) return false;
    return this.#senses.now() - this.#idleAt > STANDING_MS && inFlight > this.#donePerMs * ENOUGH_MS;
  }
}

function loopSenses(): Omit<Senses, 'done'> {
  let last = performance.eventLoopUtilization();
  return {
    now: () => performance.now(),
    utilization() {
      const all = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(all, last);
      last = all;
      return utilization;
    },
  };
}
