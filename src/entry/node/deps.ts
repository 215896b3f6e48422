import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { performance } from 'node:perf_hooks';
import type { Deps } from '../../app.ts';
import type { Clock } from '../../core/runtime.ts';
import type { DocsAssets } from '../../routes/docs.ts';
import type { Scrape } from '../../routes/metrics.ts';
import { type OpenedStore, ownStore } from './store.ts';
import { nodeDigest, nodeOpener } from './digest.ts';
import { promMetrics } from './metrics/prometheus.ts';
import { total } from './metrics/instruments.ts';
import { usageGauges } from './metrics/store-metrics.ts';
import { addresses } from './server/address.ts';
import { noted, peerIn } from './server/env.ts';
import { Unsent } from './server/unsent.ts';
import { undiciTransport } from './upstream/transport.ts';
import { trackedWork } from './wait-until.ts';

const { timeOrigin } = performance;

/** Monotonic: setting the machine's clock back neither keeps answers fresh nor makes ages negative. */
export const systemClock: Clock = {
  now: () => timeOrigin + performance.now(),
  wall: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/** What the build puts beside the bundle. */
const beside = (name: string) => readFile(new URL(name, import.meta.url));

const packaged = (name: string) => readFile(createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`));

/** From the npm package where there is no bundle; read once for all answers. */
function docsAssetsOf(): DocsAssets {
  const kept = new Map<string, Uint8Array<ArrayBuffer>>();
  return {
    async read(name) {
      const bytes = kept.get(name) ?? new Uint8Array(await beside(`swagger-ui/${name}`).catch(() => packaged(name)));
      kept.set(name, bytes);
      return bytes;
    },
  };
}

interface NodeDeps {
  readonly deps: Deps;
  readonly unsent: Unsent;
  readonly scrape: Scrape;
  /** Resolves when no work goes on that has outlived its request. */
  idle(): Promise<unknown>;
  close(): Promise<void>;
}

/** The app's dependencies on Node. */
export function nodeDeps(
  given: Pick<Deps, 'config' | 'upstream' | 'logger' | 'readiness' | 'trialAccounts'>,
  { store, instruments = [], close: closeStore }: OpenedStore = ownStore(given.config),
  droppedLines: () => number = () => 0,
): NodeDeps {
  const { config, upstream } = given;
  const unsent = new Unsent();
  const addressOf = addresses(config.trustedProxies);
  const { waitUntil, idle } = trackedWork();
  const { transport, close: closeTransport } = undiciTransport({
    upstream,
    maxConnections: config.upstreamMaxConnections,
    connectTimeoutMs: config.upstreamTimeoutMs,
  });
  const { scrape, ...metrics } = promMetrics([
    ...usageGauges(() => store.usage()),
    ...instruments,
    total('portico_log_lines_dropped_total', 'Log lines that could not be written.', droppedLines),
  ]);
  return {
    deps: {
      ...given,
      transport,
      slots: config.upstreamMaxConnections,
      store,
      metrics,
      clock: systemClock,
      digest: nodeDigest(config.secrets, upstream.href),
      makeOpener: nodeOpener,
      addressOf: (env, header) => addressOf(peerIn(env), header('x-forwarded-for')),
      headOf: noted,
      backlog: unsent,
      waitUntil,
      docsAssets: docsAssetsOf(),
    },
    unsent,
    idle,
    scrape,
    async close() {
      await Promise.all([closeTransport(), closeStore()]);
    },
  };
}
