import type { Clock } from '../core/runtime.ts';
import type { Call } from './client.ts';

/** Counts calls and their time for the request that caused them. */
export function tallied({ clock }: { clock: Clock }) {
  return (next: Call): Call =>
    async (call) => {
      const begunAt = clock.now();
      call.tally.upstreamCalls++;
      try {
        return await next(call);
      } finally {
        call.tally.upstreamMs += clock.now() - begunAt;
      }
    };
}
