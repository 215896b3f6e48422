/** Something that can be aborted: what an `AbortController` and its signal are, without events. */
export class Abortable {
  isAborted = false;
  reason: unknown = undefined;
  #listeners: Set<(reason: unknown) => void> | undefined;

  abort(reason: unknown): void {
    if (this.isAborted) return;
    this.isAborted = true;
    this.reason = reason;
    for (const run of this.#listeners ?? []) run(reason); // a Set leaves out what is deleted meanwhile
    this.#listeners = undefined;
  }

  /** Runs it when this is aborted, or at once if it is already. Returns what prevents that. */
  onAbort(run: (reason: unknown) => void): () => void {
    if (this.isAborted) run(this.reason);
    else (this.#listeners ??= new Set()).add(run);
    return () => void this.#listeners?.delete(run);
  }

  /** A part that is aborted with this, or before it. */
  part(): Abortable {
    const part = new Abortable();
    this.onAbort((reason) => part.abort(reason));
    return part;
  }

  throwIfAborted(): void {
    if (this.isAborted) throw this.reason;
  }
}
