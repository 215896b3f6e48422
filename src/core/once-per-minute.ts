/** Lets each message through once a minute. There are some dozens of messages, so none is forgotten. */
export class OncePerMinute {
  readonly #loggedAt = new Map<string, number>();

  /** `now`: in milliseconds. */
  isDue(what: string, now: number): boolean {
    if (now - (this.#loggedAt.get(what) ?? -Infinity) < 60_000) return false;
    this.#loggedAt.set(what, now);
    return true;
  }
}
