import { Bag } from '../../core/bag.ts';
import type { Background } from '../../core/runtime.ts';

/** Keeps track of work that outlives its request, so that the process can wait for it before it ends. */
export function trackedBackground(): { background: Background; idle: () => Promise<unknown> } {
  const running = new Bag<Promise<unknown>>();
  return {
    background(work) {
      const done = running.add(work);
      void work.then(done, done);
    },
    async idle() {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}
