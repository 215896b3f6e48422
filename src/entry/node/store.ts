import type { Config } from '../../config.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Logger } from '../../core/logger.ts';
import { MemoryStore } from '../../store/memory.ts';
import type { Store, Usage } from '../../store/store.ts';

/** A store beyond this process, for those who watch over it. */
export interface SharedEngine {
  readonly isThere: () => boolean;
  readonly untoldAccounts: () => number;
  /** Whom to tell of each command. */
  readonly watch: (watch: (command: string, outcome: 'good' | 'failed', ms: number) => void) => void;
}

export interface OpenedStore {
  readonly store: Store & { usage(): Usage };
  readonly shared?: SharedEngine;
  readonly close: () => Promise<void>;
}

interface StoreOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** State of this process alone. */
export function ownStore({ cacheMaxBytes: maxBytes }: Config): OpenedStore {
  return { store: new MemoryStore({ maxBytes }), close: async () => undefined };
}

/** The process's own state, or what all instances with the same `STORE_URL` share. */
export async function openStore({ config, clock, logger }: StoreOptions): Promise<OpenedStore> {
  const { storeUrl: url, secrets, cacheMaxBytes: maxBytes } = config;
  if (url === undefined) return ownStore(config);
  const { openRedisStore } = await import('./redis/store.ts');
  const onChange = (isThere: boolean) =>
    isThere ? logger.info({}, 'the store answers again') : logger.warn({}, 'the store does not answer');
  return openRedisStore({ url, secrets, maxBytes, clock, onChange });
}
