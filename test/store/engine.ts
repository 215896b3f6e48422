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

/** One that instances share. */
export interface SharedEngine extends Engine {
  /** Another instance. */
  readonly other: Store;
}

/** Time that passes during a test in an engine with a clock of its own. */
export const ENGINE_SLACK_MS = 3_000;

export type MakeEngine = () => Engine | Promise<Engine>;
export type MakeSharedEngine = () => SharedEngine | Promise<SharedEngine>;

/** Exact: it gets the time with each call. */
export function memoryEngine(maxBytes = 1_048_576): Engine {
  const store = new MemoryStore({ maxBytes });
  return { store, pass: () => undefined, slackMs: 0 };
}

/** Moves to a time since the beginning of the test, never back. */
export function travelling({ pass }: Pick<Engine, 'pass'>): (ms: number) => Promise<void> {
  let passed = 0;
  return async (ms) => {
    await pass(ms - passed);
    passed = ms;
  };
}
