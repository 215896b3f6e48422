/**
 * Runs the listener with the reason when the signal is aborted, or at once if it already is. Returns what removes it,
 * for a signal that lives longer.
 */
export function onAbort(signal: AbortSignal, run: (reason: unknown) => void): () => void {
  const listener = () => run(signal.reason);
  if (signal.aborted) listener();
  else signal.addEventListener('abort', listener, { once: true });
  return () => signal.removeEventListener('abort', listener);
}

/** A controller that ends with the signal, or before it. */
export function childOf(signal: AbortSignal): AbortController {
  const child = new AbortController();
  onAbort(signal, (reason) => child.abort(reason));
  return child;
}
