/**
 * Ends work before its time. What it is cancelled with is the error of everybody who waits for that work. An
 * `AbortSignal` does the same and costs ten times as much, and every call of the upstream has one of these.
 */
export class Cancellation {
  #reason: unknown;
  #isCancelled = false;
  readonly #listeners: ((reason: unknown) => void)[] = []; // hardly ever more than three

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

  /** Runs the listener when this is cancelled; at once where it is already. */
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

  /** One that is cancelled with this one, or on its own. `release` lets go of this one. */
  child(): { readonly child: Cancellation; readonly release: () => void } {
    const child = new Cancellation();
    const end = (reason: unknown) => child.cancel(reason);
    this.on(end);
    return { child, release: () => this.off(end) };
  }
}
