/** Whether something may be logged that is the same each time. There are some dozens of such things. */
export class OncePerMinute {
  readonly #loggedAt = new Map<string, number>();

  /** `now`: in milliseconds. */
  isDue(what: string, now: number): boolean {
    if (now - (this.#loggedAt.get(what) ?? -Infinity) < 60_000) return false;
    this.#loggedAt.set(what, now);
    return true;
  }
}
