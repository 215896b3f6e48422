import type { Clock } from './runtime.ts';

/**
 * A reply, or an error where there is none in time. Looks once more after the time is up: after a stall of the event
 * loop replies lie in the socket while the timers run.
 */
export function within<T>(clock: Clock, ms: number, reply: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = () => reject(new Error(`no reply in ${ms} ms`));
    let cancel = clock.after(ms, () => {
      cancel = clock.after(0, fail);
    });
    reply.then(resolve, reject).finally(() => cancel());
  });
}
