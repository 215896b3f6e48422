/**
 * Ends work before its time. What it is cancelled with is the error of everybody who waits for that work. An
 * `AbortSignal` does the same and costs ten times as much, and every call of the upstream has one of these.
 */
export class Cancellation {
  #reason: unknown;
  #isCancelled = false;
  #listeners: Set<(reason: unknown) => void> | undefined;

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
    const listeners = this.#listeners;
    this.#listeners = undefined;
    for (const listener of listeners ?? []) listener(reason);
  }

  /** Runs the listener when this is cancelled; at once where it is already. */
  on(listener: (reason: unknown) => void): void {
    if (this.#isCancelled) listener(this.#reason);
    else (this.#listeners ??= new Set()).add(listener);
  }

  off(listener: (reason: unknown) => void): void {
    this.#listeners?.delete(listener);
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
