import type { Config } from '../../config.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Logger } from '../../core/logger.ts';
import { MemoryStore } from '../../store/memory.ts';
import { SharedStore } from '../../store/shared.ts';
import { Sealer } from '../../store/shared/sealer.ts';
import type { Store, Usage } from '../../store/store.ts';

/** The shared store, as metrics see it. */
export interface SharedEngine {
  /** The part of it that answers, 0 to 1. */
  readonly up: () => number;
  /** Reports that it has not acknowledged. */
  readonly pending: () => number;
  /** Sets a function to be called after each command. */
  readonly watch: (watch: (command: string, outcome: 'good' | 'failed', ms: number) => void) => void;
}

export interface OpenedStore {
  readonly store: Store & { usage(): Usage };
  readonly shared?: SharedEngine;
  readonly close: () => Promise<void>;
}

interface StoreOptions {
  readonly config: Config;
  readonly upstream: URL;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A store of this process alone. */
export function ownStore({ cacheMaxBytes: maxBytes }: Config): OpenedStore {
  return { store: new MemoryStore({ maxBytes }), close: async () => undefined };
}

/** The store that instances with the same `STORE_URL` share; without one, a store of this process alone. */
export async function openStore({ config, upstream, clock, logger }: StoreOptions): Promise<OpenedStore> {
  const { storeUrl: url, secrets, cacheMaxBytes: maxBytes, upstreamTimeoutMs: waitMs } = config;
  if (url === undefined) return ownStore(config);
  const { openRedisEngine } = await import('./redis/store.ts');
  const windowMs = config.requestTimeoutMs + WINDOW_MARGIN_MS;
  const { onLost, ...watching } = reports(logger);
  const { engine, close, ...shared } = await openRedisEngine({ url, windowMs, ...watching });
  const sealer = new Sealer(secrets, upstream.href);
  const hasBudget = config.upstreamBudgetPerMinute > 0;
  const store = new SharedStore({ engine, sealer, maxBytes, clock, waitMs, hasBudget });
  return {
    store,
    shared: { ...shared, pending: () => store.pending },
    async close() {
      if (store.pending > 0) onLost(store.pending);
      close();
    },
  };
}

/** Added to the longest time of a request: how long after a change of stores copies are not used. */
const WINDOW_MARGIN_MS = 5_000;

const SAME_TROUBLE_MS = 60_000;

/** Logs each change of a shared store, and the same trouble at most once a minute. */
function reports(logger: Logger) {
  const last = new Map<string, number>();
  return {
    onChange: (isThere: boolean) =>
      isThere ? logger.info({}, 'the store answers again') : logger.warn({}, 'the store does not answer'),
    onTrouble(reason: string) {
      if (performance.now() - (last.get(reason) ?? -Infinity) < SAME_TROUBLE_MS) return;
      last.set(reason, performance.now());
      logger.warn({ reason }, 'trouble with the store');
    },
    onLost: (count: number) =>
      logger.error({ count }, 'stopping before the store has acknowledged how all writes ended'),
  };
}
