import type { Cancellation } from './cancellation.ts';
import type { Clock } from './runtime.ts';

/** Rejects with the reason once the work is cancelled. */
export function pause(clock: Clock, ms: number, cancellation: Cancellation): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (reason: unknown) => {
      cancel();
      reject(reason);
    };
    const cancel = clock.after(ms, () => {
      cancellation.off(leave);
      resolve();
    });
    cancellation.on(leave);
  });
}
