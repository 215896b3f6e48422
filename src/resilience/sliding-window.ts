const STEPS = 20;

/** A count of the last `spanMs`, forgotten in steps of a twentieth of it. */
export class SlidingWindow {
  readonly #stepMs: number;
  /** Counts of the last steps, each at its number modulo `STEPS`. */
  readonly #counts: number[] = Array.from({ length: STEPS }, () => 0);
  #sum = 0;
  /** Number of the latest step, since the epoch. */
  #latest = 0;

  constructor(spanMs: number) {
    this.#stepMs = spanMs / STEPS;
  }

  /** A negative `count` takes back what was added at that instant. What is older than the span changes nothing. */
  add(at: number, count = 1): void {
    const step = this.#advance(at);
    if (step <= this.#latest - STEPS) return;
    this.#counts[step % STEPS] = (this.#counts[step % STEPS] ?? 0) + count;
    this.#sum += count;
  }

  sum(now: number): number {
    this.#advance(now);
    return this.#sum;
  }

  /** Forgets what is older than the span. Returns the number of the step. */
  #advance(now: number): number {
    const step = Math.floor(now / this.#stepMs);
    this.#latest = Math.max(this.#latest, step - STEPS);
    while (this.#latest < step) {
      this.#latest++;
      this.#sum -= this.#counts[this.#latest % STEPS] ?? 0; // its place was that of the step that is over
      this.#counts[this.#latest % STEPS] = 0;
    }
    return step;
  }
}
