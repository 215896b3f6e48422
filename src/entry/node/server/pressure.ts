import { performance } from 'node:perf_hooks';

const LOOK_MS = 50;

/** An event loop that is busy for more than this share of its time is saturated. */
const BUSY = 0.9;

/** The share is smoothed over so long that neither a burst nor a garbage collection counts as saturation. */
const SMOOTHED_MS = 750;
const LONGEST_LOOK_MS = 200;

/** How long the requests in flight may then take to be served; any more are refused. */
const ENOUGH_MS = 150;

/** With fewer requests in flight, it is not they that keep the loop busy. */
const FEW = 50;

/** Weight of the last look in the moving average. */
const SMOOTHING = 0.2;

interface Senses {
  /** Requests so far that are over and were not refused. */
  readonly done: () => number;
  readonly now?: () => number;
  /** Share of the time since the last call that the event loop was busy. */
  readonly utilization?: () => number;
}

/**
 * A saturated event loop serves as fast as it can: the number of requests in flight, divided by the rate at which they
 * are done, is how long a request has to wait. While the loop is not saturated, a check costs one comparison.
 */
export class LoopPressure {
  readonly #senses: Required<Senses>;
  #doneBefore = 0;
  #donePerMs = 0;
  #lookedAt: number;
  #busy = 0;

  constructor({ done, now = () => performance.now(), utilization = loopUtilization() }: Senses) {
    this.#senses = { done, now, utilization };
    this.#lookedAt = now();
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

  /** Whether a request that comes now, with so many in flight, should be refused. */
  isOverloaded(inFlight: number): boolean {
    return this.#busy > BUSY && inFlight > FEW && inFlight > this.#donePerMs * ENOUGH_MS;
  }
}

function loopUtilization(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const all = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(all, last);
    last = all;
    return utilization;
  };
}
