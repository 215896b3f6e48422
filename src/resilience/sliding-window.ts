const STEPS = 20;

/** A count of the last `spanMs`, forgotten in steps of a twentieth of it. */
export class SlidingWindow {
  readonly #stepMs: number;
  /** Counts of the last steps, each at its number modulo `STEPS`. */
  readonly #counts = Array.from({ length: STEPS }, () => 0);
  #sum = 0;
  /** Number of the latest step, since the epoch. */
  #latest = 0;

  constructor(spanMs: number) {
    this.#stepMs = spanMs / STEPS;
  }

  /** A negative `count` takes back what was added at that instant. What is older than the span changes nothing. */
  add(at: number, count = 1): void {
    const step = this.#stepOf(at);
    this.#forgetUpTo(step);
    if (step <= this.#latest - STEPS) return;
    this.#set(step, this.#of(step) + count);
  }

  sum(now: number): number {
    this.#forgetUpTo(this.#stepOf(now));
    return this.#sum;
  }

  #stepOf(at: number): number {
    return Math.floor(at / this.#stepMs);
  }

  #forgetUpTo(step: number): void {
    this.#latest = Math.max(this.#latest, step - STEPS);
    while (this.#latest < step) {
      this.#latest++;
      this.#set(this.#latest, 0); // it has the place of the one that is over
    }
  }

  #of(step: number): number {
    return this.#counts[step % STEPS] ?? 0;
  }

  #set(step: number, count: number): void {
    this.#sum += count - this.#of(step);
    this.#counts[step % STEPS] = count;
  }
}
