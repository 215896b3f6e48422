import type { Metric } from 'prom-client';
import type { Config } from '../../config.ts';
import type { Deps } from '../../app.ts';
import type { Logger } from '../../core/logger.ts';
import { MemoryStore } from '../../store/memory.ts';
import { SharedStore } from '../../store/shared.ts';
import { Sealer } from '../../store/shared/sealer.ts';
import type { Store, Usage } from '../../store/store.ts';
import { engineMetrics } from './metrics.ts';

export interface OpenedStore {
  readonly store: Store & { usage(): Usage };
  /** Of a shared store. */
  readonly instruments?: readonly Metric[];
  readonly close: () => Promise<void>;
}

/** Added to the longest time of a request: how long after a change of stores copies are not used. */
const WINDOW_MARGIN_MS = 5_000;

const SAME_TROUBLE_MS = 60_000;

/** A store of this process alone. */
export function ownStore({ cacheMaxBytes: maxBytes }: Config): OpenedStore {
  return { store: new MemoryStore({ maxBytes }), close: async () => undefined };
}

/** The store that instances with the same `STORE_URL` share; without one, a store of this process alone. */
export async function openStore(given: Pick<Deps, 'config' | 'upstream' | 'clock' | 'logger'>): Promise<OpenedStore> {
  const { config, upstream, clock, logger } = given;
  const { storeUrl: address, secrets, cacheMaxBytes: maxBytes, upstreamTimeoutMs: waitMs } = config;
  if (!address) return ownStore(config);
  const { RedisEngine } = await import('./redis/engine.ts'); // loaded only if it is used
  const windowMs = config.requestTimeoutMs + WINDOW_MARGIN_MS;
  const { onCommand, instruments } = engineMetrics({ up: () => engine.up, pending: () => store.pending });
  const engine = await RedisEngine.open({ address, windowMs, onCommand, ...reports(logger) });
  const sealer = new Sealer(secrets, upstream.href);
  const hasBudget = config.upstreamBudgetPerMinute > 0;
  const store = new SharedStore({ engine, sealer, maxBytes, clock, waitMs, hasBudget });
  return {
    store,
    instruments,
    async close() {
      const count = store.pending;
      if (count > 0) logger.error({ count }, 'stopping before the store has acknowledged how all writes ended');
      engine.close();
    },
  };
}

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
  };
}
