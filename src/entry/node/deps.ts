import { createRequire } from 'node:module';
import { performance } from 'node:perf_hooks';
import type { Metric } from 'prom-client';
import type { Deps } from '../../app.ts';
import type { Logger } from '../../core/logger.ts';
import type { Clock, WaitUntil } from '../../core/runtime.ts';
import { OncePerMinute } from '../../core/once-per-minute.ts';
import type { StoreAddress } from './redis/client.ts';
import type { DocsAssets } from '../../routes/docs.ts';
import { MemoryStore } from '../../store/memory.ts';
import { SharedStore } from '../../store/shared.ts';
import { Sealer } from '../../store/shared/sealer.ts';
import type { Store, Usage } from '../../store/store.ts';
import { RedisEngine } from './redis/engine.ts';
import { assets } from './assets.ts';
import { compressing } from './compression.ts';
import { Recordings } from './console/recordings.ts';
import { nodeDigest, nodeOpener } from './digest.ts';
import { promMetrics } from './metrics/index.ts';
import { engineMetrics, usageMetrics } from './metrics/store.ts';
import { addresses, schemes } from './server/address.ts';
import { peerIn } from './server/guard.ts';
import { Answer } from './server/traffic.ts';
import { undiciTransport } from './transport.ts';
import type { Way } from './way.ts';

/** What is kept compressed beside the copies, as a part of what they may have. */
const COMPRESSED = 1 / 4;

const { timeOrigin } = performance;

/** Monotonic: setting the machine's clock back neither keeps answers fresh nor makes ages negative. */
const systemClock: Clock = {
  now: () => timeOrigin + performance.now(),
  wall: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

type Given = Pick<
  Deps,
  | 'config'
  | 'table'
  | 'overviews'
  | 'hooks'
  | 'upstream'
  | 'logger'
  | 'readiness'
  | 'isCuttingOff'
  | 'trialAccounts'
  | 'tracing'
> & {
  /** How the upstream is reached; by default as its URL says. */
  readonly way?: Way;
  /** In tests. */
  readonly clock?: Clock;
};

/** The app's dependencies on Node. */
export function nodeDeps(
  given: Given,
  { store, instruments = [], close: closeStore }: OpenedStore = openStore(given),
  droppedLines: () => number = () => 0,
) {
  const { config, upstream, clock = systemClock } = given;
  const ending = new AbortController();
  const addressOf = addresses(config.trustedProxies);
  const schemeOf = schemes(config.trustedProxies);
  const { waitUntil, idle } = trackedWork();
  const { transport, close: closeTransport } = undiciTransport(upstream, config, given.way);
  const { scrape, ...metrics } = promMetrics(given.table, [
    ...usageMetrics(() => store.usage(), droppedLines),
    ...instruments,
  ]);
  const recordings = config.adminPort === 0 ? undefined : new Recordings(config.slowMs);
  const deps: Deps = {
    ...given,
    transport,
    slots: config.upstreamMaxConnections,
    store,
    metrics: recordings?.hearing(metrics, () => clock.now()) ?? metrics,
    recorder: recordings,
    clock,
    digest: nodeDigest(config.secrets, upstream.href),
    makeOpener: nodeOpener,
    addressOf: (env, header) => addressOf(peerIn(env), header),
    ...(config.trustedProxies.length > 0 && { schemeOf: (env, header) => schemeOf(peerIn(env), header) }),
    compress: compressing(config.cacheMaxBytes * COMPRESSED),
    leaveRoom: (env) => {
      if ('outgoing' in env && env.outgoing instanceof Answer) env.outgoing.leaveRoom();
    },
    ending: ending.signal,
    waitUntil,
    docsAssets,
  };
  const close = async () => void (await Promise.all([closeTransport(), closeStore()]));
  return { deps, endWaits: () => ending.abort(), idle, scrape, recordings, close };
}

/** Keeps track of work that outlives its request. `idle` resolves when none goes on, so that the process can wait for it. */
function trackedWork() {
  const running = new Set<Promise<unknown>>();
  const waitUntil: WaitUntil = (work) => {
    const done = () => void running.delete(work);
    running.add(work);
    void work.then(done, done);
  };
  const idle = async () => {
    while (running.size > 0) await Promise.allSettled(running);
  };
  return { waitUntil, idle };
}

interface OpenedStore {
  readonly store: Store & { usage(): Usage };
  /** Of a shared store. */
  readonly instruments?: readonly Metric[];
  /** Resolves after the first attempt to connect, successful or not. */
  readonly opened: Promise<void>;
  readonly close: () => Promise<void>;
}

/** Added to the longest time of a request: how long after a change of stores copies are not used. */
const WINDOW_MARGIN_MS = 5_000;

/** The store that instances with the same `STORE_URL` share; without that address, a store of this process alone. */
export function openStore(
  { config, upstream, logger }: Pick<Given, 'config' | 'upstream' | 'logger'>,
  address?: StoreAddress,
): OpenedStore {
  const { secrets, cacheMaxBytes: maxBytes, upstreamTimeoutMs: waitMs } = config;
  if (!address)
    return { store: new MemoryStore({ maxBytes }), opened: Promise.resolve(), close: async () => undefined };
  const windowMs = config.requestTimeoutMs + WINDOW_MARGIN_MS;
  const { onCommand, instruments } = engineMetrics(() => {
    const { pending, unaskedHits, isUsable, waitsGivenUp } = store;
    return { up: engine.up, changes: engine.changes, pending, unaskedHits, isUsable, waitsGivenUp };
  });
  const { engine, opened } = RedisEngine.opening({ address, windowMs, onCommand, ...reports(logger) });
  const sealer = new Sealer(secrets, upstream.href);
  const store = new SharedStore({ engine, sealer, maxBytes, clock: systemClock, waitMs });
  return {
    store,
    instruments,
    opened,
    async close() {
      const count = store.pending;
      if (count > 0) logger.error({ count }, 'stopping before the store has acknowledged how all writes ended');
      engine.close();
    },
  };
}

const NO_CHANNEL =
  "hits ask the store, since its user may not tell or hear of changes: add '+publish +subscribe +pubsub|numsub " +
  "&portico:changes:*' to its ACL";

/** Logs each change of a shared store, and the same trouble at most once a minute. */
function reports(logger: Logger) {
  const warnings = new OncePerMinute();
  return {
    onChange: (isThere: boolean) => logger.warn({}, isThere ? 'the store answers again' : 'the store does not answer'),
    onTrouble(reason: string) {
      if (warnings.isDue(reason, systemClock.now()))
        logger.warn({ reason }, reason === 'NO_CHANNEL' ? NO_CHANNEL : 'trouble with the store');
    },
  };
}

/** From the npm package where there is no bundle. */
const docsAssets: DocsAssets = {
  read: assets('assets/docs', (name) => createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`)),
};
