import { MemoryStore } from '../../src/store/memory.ts';
import type { Store } from '../../src/store/store.ts';

/** What the contract is about: a store, on whatever it keeps things in. */
export interface Engine {
  readonly store: Store;
  /** Lets so much time pass where the engine counts its own. */
  pass(ms: number): void | Promise<void>;
  /** How far off an end may be. */
  readonly slackMs: number;
}

/** One that instances share. */
export interface SharedEngine extends Engine {
  /** Another instance. */
  readonly other: Store;
}

/** Time that passes by itself while a test runs against an engine that counts its own. */
export const ENGINE_SLACK_MS = 3_000;

export type MakeEngine = () => Engine | Promise<Engine>;
export type MakeSharedEngine = () => SharedEngine | Promise<SharedEngine>;

/** Exact, and told the time with each call. */
export function memoryEngine(maxBytes = 1_048_576): Engine {
  const store = new MemoryStore({ maxBytes });
  return { store, pass: () => undefined, slackMs: 0 };
}

/** Goes to so many milliseconds after the test began, never back. */
export function travelling({ pass }: Pick<Engine, 'pass'>): (ms: number) => Promise<void> {
  let passed = 0;
  return async (ms) => {
    await pass(ms - passed);
    passed = ms;
  };
}
