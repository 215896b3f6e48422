import { performance } from 'node:perf_hooks';

const LOOK_MS = 50;

/** A loop that has been busy for more of its time than this has none left. */
const BUSY = 0.9;

/** The share is smoothed over so long, that a burst or a pause of the collector is none of it. */
const SMOOTHED_MS = 750;
const LONGEST_LOOK_MS = 200;

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
  #busy = 0;

  constructor(senses: Pick<Senses, 'done'> & Partial<Senses>) {
    this.#senses = { ...loopSenses(), ...senses };
    this.#lookedAt = this.#senses.now();
  }

  /** Looks again and again until the process ends. */
  watch(): this {
    setInterval(() => this.look(), LOOK_MS).unref();
    return this;
  }

  look(): void {
    const { now, utilization, done } = this.#senses;
    const [at, doneSoFar] = [now(), done()];
    const ms = Math.min(at - this.#lookedAt, LONGEST_LOOK_MS);
    this.#busy += (utilization() - this.#busy) * (1 - Math.exp(-ms / SMOOTHED_MS));
    this.#donePerMs += ((doneSoFar - this.#doneBefore) / (at - this.#lookedAt) - this.#donePerMs) * SMOOTHING;
    this.#doneBefore = doneSoFar;
    this.#lookedAt = at;
  }

  isOverloaded(inFlight: number): boolean {
    return this.#busy > BUSY && inFlight > FEW && inFlight > this.#donePerMs * ENOUGH_MS;
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
