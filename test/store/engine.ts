import { MemoryStore } from '../../src/store/memory.ts';
import type { Store } from '../../src/store/store.ts';

/** A store under test. */
export interface Engine {
  readonly store: Store;
  /** Moves the engine's time. */
  pass(ms: number): void | Promise<void>;
  /** How far off an end may be. */
  readonly slackMs: number;
}

export type MakeEngine = () => Engine | Promise<Engine>;

/** Exact: it gets the time with each call. */
export function memoryEngine(maxBytes = 1_048_576): Engine {
  const store = new MemoryStore({ maxBytes });
  return { store, pass: () => undefined, slackMs: 0 };
}
