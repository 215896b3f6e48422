const SAME_TROUBLE_MS = 60_000;

/** Whether a trouble may be logged: the same one once a minute. There are some dozens of them. */
export class Sparing {
  readonly #toldAt = new Map<string, number>();

  /** `now`: in milliseconds. */
  isDue(trouble: string, now: number): boolean {
    if (now - (this.#toldAt.get(trouble) ?? -Infinity) < SAME_TROUBLE_MS) return false;
    this.#toldAt.set(trouble, now);
    return true;
  }
}
