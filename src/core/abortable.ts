/** An `AbortController` and its signal in one, without the cost of DOM events. */
export class Abortable {
  isAborted = false;
  reason: unknown = undefined;
  #listeners: Set<(reason: unknown) => void> | undefined;

  abort(reason: unknown): void {
    if (this.isAborted) return;
    this.isAborted = true;
    this.reason = reason;
    for (const run of this.#listeners ?? []) run(reason); // a listener removed meanwhile is skipped
    this.#listeners = undefined;
  }

  /** Calls `run` on abort, or at once if this is aborted already. Returns a function that removes `run`. */
  onAbort(run: (reason: unknown) => void): () => void {
    if (this.isAborted) run(this.reason);
    else (this.#listeners ??= new Set()).add(run);
    return () => void this.#listeners?.delete(run);
  }

  /** A new one, which is aborted whenever this is. It may also be aborted alone. */
  child(): Abortable {
    const child = new Abortable();
    this.onAbort((reason) => child.abort(reason));
    return child;
  }

  /** @throws the reason of the abort */
  throwIfAborted(): void {
    if (this.isAborted) throw this.reason;
  }
}
