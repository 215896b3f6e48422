import { createRequire } from 'node:module';
import type { Metric } from 'prom-client';
import type { Deps } from '../../app.ts';
import type { Logger } from '../../core/logger.ts';
import type { Clock, WaitUntil } from '../../core/runtime.ts';
import { OncePerMinute } from '../../core/once-per-minute.ts';
import type { DocsAssets } from '../../routes/docs.ts';
import { noteMsOf } from '../../cache/keys.ts';
import { Accounts } from '../../store/accounts.ts';
import { MemoryBackend } from '../../store/memory.ts';
import { SealedNotes } from '../../store/sealed.ts';
import { RedisShelf } from './redis/backend.ts';
import type { StoreAddress } from './redis/client.ts';
import { assets } from './assets.ts';
import { assignment, ORIGIN } from './assignment.ts';
import { compressing } from './compression.ts';
import { Recordings } from './console/recordings.ts';
import { nodeDigest, nodeOpener, nodeSeal } from './digest.ts';
import { notesOfFirst } from './ipc.ts';
import { promMetrics } from './metrics/index.ts';
import { sharedStoreMetrics, usageMetrics } from './metrics/store.ts';
import { addresses, schemes } from './server/address.ts';
import { peerIn } from './server/guard.ts';
import { Answer } from './server/traffic.ts';
import { undiciTransport } from './transport.ts';
import type { Way } from './way.ts';

/** What is kept compressed beside the copies, as a part of what they may have. */
const COMPRESSED = 1 / 4;

/** Monotonic: setting the machine's clock back neither keeps answers fresh nor makes ages negative. */
const systemClock: Clock = {
  now: () => ORIGIN + performance.now(),
  wall: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/** Its timers do not keep the process alive. */
const idleClock: Clock = {
  ...systemClock,
  after(ms, run) {
    const timer = setTimeout(run, ms).unref();
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
  readonly random?: Deps['random'];
};

/** The app's dependencies on Node. */
export function nodeDeps(
  given: Given,
  { store, instruments = [], close: closeStore }: OpenedStore = openStore(given),
  droppedLines: () => number = () => 0,
) {
  const { config, upstream, clock = systemClock, random = Math.random } = given;
  const ending = new AbortController();
  const addressOf = addresses(config.trustedProxies);
  const schemeOf = schemes(config.trustedProxies);
  const { waitUntil, idle } = trackedWork();
  const { transport, close: closeTransport } = undiciTransport(upstream, config, given.way);
  const { scrape, measured, ...metrics } = promMetrics(given.table, [
    ...usageMetrics(() => store.usage(), droppedLines),
    ...instruments,
  ]);
  const recordings = config.adminPort === 0 || assignment ? undefined : new Recordings(config.slowMs);
  const deps: Deps = {
    ...given,
    transport,
    slots: config.upstreamMaxConnections,
    store,
    metrics: recordings?.hearing(metrics, () => clock.now()) ?? metrics,
    recorder: recordings,
    clock,
    random,
    digest: nodeDigest(assignment ? [assignment.secret, ...config.secrets] : config.secrets, upstream.href),
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
  return { deps, endWaits: () => ending.abort(), idle, scrape, measured, recordings, close };
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
  readonly store: Accounts;
  /** Of a shared store. */
  readonly instruments?: readonly Metric[];
  /** Resolves after the first attempt to connect, successful or not. */
  readonly opened: Promise<void>;
  readonly close: () => Promise<void>;
}

/** Added to the longest time of a request: how long a store that was replaced is not relied upon. */
const WINDOW_MARGIN_MS = 5_000;

/** The store that instances with the same `STORE_URL` share; without that address, a store of this process alone. */
export function openStore(
  {
    config,
    table,
    upstream,
    logger,
    clock = systemClock,
  }: Pick<Given, 'config' | 'table' | 'upstream' | 'logger' | 'clock'>,
  address?: StoreAddress,
): OpenedStore {
  const { secrets, cacheMaxBytes: maxBytes } = config;
  if (!address) {
    const now = () => clock.now();
    const backend = assignment ? notesOfFirst(now) : new MemoryBackend({ now });
    const store = new Accounts({ backend, clock, maxBytes });
    return { store, opened: Promise.resolve(), close: async () => undefined };
  }
  const windowMs = config.requestTimeoutMs + WINDOW_MARGIN_MS;
  const { onCommand, instruments } = sharedStoreMetrics(
    () => shelf.isThere,
    () => store.pending,
  );
  const digest = nodeDigest(secrets, upstream.href);
  const shelf = new RedisShelf({
    address,
    clock: clock === systemClock ? idleClock : clock,
    windowMs,
    onCommand,
    ...reports(logger, clock),
  });
  const backend = new SealedNotes(shelf, {
    seal: nodeSeal(secrets, 'portico store seal'),
    nameOf: (text) => digest.account(text),
    noteMs: noteMsOf(config, table),
  });
  const store = new Accounts({ backend, clock, maxBytes });
  return {
    store,
    instruments,
    opened: shelf.opened,
    async close() {
      const count = store.pending;
      if (count > 0) logger.error({ count }, 'stopping before the store has acknowledged how all writes ended');
      shelf.close();
    },
  };
}

/** Logs each change of a shared store, and the same trouble at most once a minute. */
function reports(logger: Logger, clock: Clock) {
  const warnings = new OncePerMinute();
  return {
    onChange: (isThere: boolean) => logger.warn({}, isThere ? 'the store answers again' : 'the store does not answer'),
    onTrouble(reason: string) {
      if (warnings.isDue(reason, clock.now())) logger.warn({ reason }, 'trouble with the store');
    },
  };
}

/** From the npm package where there is no bundle. */
const docsAssets: DocsAssets = {
  read: assets('assets/docs', (name) => createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`)),
};
