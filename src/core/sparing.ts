const SAME_TROUBLE_MS = 60_000;

/** Says whether it is time to tell of a trouble: of the same one once a minute. There are some dozens. */
export class Sparing {
  readonly #toldAt = new Map<string, number>();

  /** `now`: in milliseconds. */
  isDue(trouble: string, now: number): boolean {
    if (now - (this.#toldAt.get(trouble) ?? -Infinity) < SAME_TROUBLE_MS) return false;
    this.#toldAt.set(trouble, now);
    return true;
  }
}
