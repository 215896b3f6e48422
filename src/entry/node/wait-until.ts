import { Bag } from '../../core/bag.ts';
import type { WaitUntil } from '../../core/runtime.ts';

/** Keeps track of work that outlives its request, so that the process can wait for it before it ends. */
export function trackedWork(): { waitUntil: WaitUntil; idle: () => Promise<unknown> } {
  const running = new Bag<Promise<unknown>>();
  return {
    waitUntil(work) {
      const done = running.add(work);
      void work.then(done, done);
    },
    async idle() {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}
