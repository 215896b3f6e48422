import type { Clock } from './runtime.ts';

/** Rejects with the signal's reason once that is aborted. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const leave = () => {
    cancel();
    reject(signal.reason);
  };
  const cancel = clock.after(ms, () => {
    signal.removeEventListener('abort', leave);
    resolve();
  });
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  return promise;
}
