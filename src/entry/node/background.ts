import type { Background } from '../../core/runtime.ts';

/** Work that outlives its request, and a way to wait for it before the process ends. */
export function trackedBackground(): { background: Background; idle: () => Promise<unknown> } {
  const running = new Set<Promise<unknown>>();
  return {
    background(work) {
      running.add(work);
      const done = () => running.delete(work);
      void work.then(done, done);
    },
    async idle() {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}
