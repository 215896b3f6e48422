import type { Globals } from './globals.ts';
import { reasonOf } from './send.ts';

export const isHidden = ({ document }: Globals): boolean => document?.visibilityState === 'hidden';
/** Not every runtime says it. */
export const isOffline = ({ navigator }: Globals): boolean => !(navigator?.onLine ?? true);

/**
 * One thing after another. What is under way is interrupted by the signal, when the page is hidden or shown, and when the network
 * is back.
 */
export function createTurns(globals: Globals, signal: AbortSignal | undefined) {
  let turn = new AbortController();
  let isOver = false;
  const interrupt = () => turn.abort();
  const heard = [
    [signal, 'abort'],
    [globals.document, 'visibilitychange'],
    [globals, 'online'],
  ] as const;
  const listen = (how: 'addEventListener' | 'removeEventListener') => {
    for (const [target, type] of heard) target?.[how]?.(type, interrupt);
  };

  return {
    interrupt,
    isOver: () => isOver,
    end() {
      isOver = true;
      interrupt();
    },
    /** Undefined if it was interrupted; rejects with the reason of the signal. */
    async take<T>(act: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
      if (signal?.aborted) throw reasonOf(signal);
      turn = new AbortController();
      listen('addEventListener');
      try {
        return await act(turn.signal);
      } catch (error) {
        if (signal?.aborted) throw reasonOf(signal, error);
        if (turn.signal.aborted) return undefined;
        throw error;
      } finally {
        listen('removeEventListener');
      }
    },
  };
}
