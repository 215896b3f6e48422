import type { Clock } from './runtime.ts';

/**
 * The reply, or an error if there is none in time. Waits one more turn after the time is up: after a stall of the event
 * loop, timers run before replies are read from the socket.
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
