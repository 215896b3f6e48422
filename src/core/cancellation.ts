/**
 * Cancels work. The reason is the error for all who wait for the work. An `AbortSignal` does the same at ten times the
 * cost, and every upstream call needs one.
 */
export class Cancellation {
  #reason: unknown;
  #isCancelled = false;
  readonly #listeners: ((reason: unknown) => void)[] = []; // rarely more than three

  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  get reason(): unknown {
    return this.#reason;
  }

  /** Only the first reason counts. */
  cancel(reason: unknown): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.#reason = reason;
    for (const listener of this.#listeners.splice(0)) listener(reason);
  }

  /** Runs the listener when this is cancelled, or at once if it already is. */
  on(listener: (reason: unknown) => void): void {
    if (this.#isCancelled) listener(this.#reason);
    else this.#listeners.push(listener);
  }

  off(listener: (reason: unknown) => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }

  throwIfCancelled(): void {
    if (this.#isCancelled) throw this.#reason;
  }

  /** A cancellation that this one's cancels too. `release` separates the two. */
  child(): { readonly child: Cancellation; readonly release: () => void } {
    const child = new Cancellation();
    const end = (reason: unknown) => child.cancel(reason);
    this.on(end);
    return { child, release: () => this.off(end) };
  }
}
