import { createRequire } from 'node:module';
import type { Deps } from '../../app.ts';
import type { Clock } from '../../core/runtime.ts';
import { OncePerMinute } from '../../core/once-per-minute.ts';
import type { DocsAssets } from '../../routes/docs.ts';
import { noteMsOf } from '../../upstream/read.ts';
import { Store } from '../../store/store.ts';
import { MemoryBackend } from '../../store/memory.ts';
import { SealedNotes } from '../../store/sealed.ts';
import type { StoreAddress } from './redis/address.ts';
import { RedisShelf } from './redis/backend.ts';
import { assets } from './assets.ts';
import { assignment, ORIGIN } from './assignment.ts';
import { Compressed } from './compression.ts';
import { Recordings } from './console/recordings.ts';
import { nodeDigest, nodeOpener, nodeSeal } from './digest.ts';
import { notesOfFirst } from './ipc.ts';
import { promMetrics } from './metrics/index.ts';
import { sharedStoreMetrics, usageMetrics } from './metrics/store.ts';
import { peerIn, Proxies } from './server/address.ts';
import { Answer } from './server/traffic.ts';
import { undiciTransport, type Way } from './transport.ts';

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

/** What a start gives, and what tests replace. */
type Given = Partial<Deps> &
  Pick<Deps, 'config' | 'table' | 'overviews' | 'upstream' | 'logger' | 'readiness'> & {
    /** How the upstream is reached; by default as its URL says. */
    readonly way?: Way;
    /** The store that instances share. */
    readonly storeAddress?: StoreAddress | undefined;
    readonly droppedLines?: () => number;
  };

/** The app's dependencies on Node. */
export function nodeDeps(given: Given) {
  const { config, upstream, clock = systemClock, random = Math.random, droppedLines = () => 0 } = given;
  const { store, instruments, opened: storeOpened, close: closeStore } = openStore(given, clock);
  const ending = new AbortController();
  const proxies = new Proxies(config.trustedProxies);
  /** Work that outlives its request: the process waits for it before it ends. */
  const running = new Set<Promise<unknown>>();
  const idle = async () => {
    while (running.size > 0) await Promise.allSettled(running);
  };
  const { transport, close: closeTransport } = undiciTransport(upstream, config, given.way);
  const recordings = config.adminPort === 0 || assignment ? undefined : new Recordings(config.slowMs, clock);
  const others = [...usageMetrics(() => store.usage(), droppedLines), ...instruments];
  const { scrape, measured, ...metrics } = promMetrics(given.table, others, recordings);
  const deps: Deps = {
    ...given,
    transport,
    slots: config.upstreamMaxConnections,
    store,
    metrics,
    recorder: recordings,
    clock,
    random,
    digest: nodeDigest(assignment ? [assignment.secret, ...config.secrets] : config.secrets, upstream.href),
    makeOpener: nodeOpener,
    addressOf: (env, header) => proxies.addressOf(peerIn(env), header),
    ...(config.trustedProxies.length > 0 && { schemeOf: (env, header) => proxies.schemeOf(peerIn(env), header) }),
    compress: new Compressed(config.cacheMaxBytes * COMPRESSED).compress,
    onLeft(env, raw, run) {
      // The adapter's own request stands for the connection. One that a host has made may have a signal of its own.
      if (Object.getPrototypeOf(raw) === Request.prototype) return false;
      if (!('outgoing' in env && env.outgoing instanceof Answer) || env.outgoing.closed) return false;
      env.outgoing.onLeft(run);
      return true;
    },
    leaveRoom: (env) => {
      if ('outgoing' in env && env.outgoing instanceof Answer) env.outgoing.leaveRoom();
    },
    ending: ending.signal,
    waitUntil: (work) => {
      const done = () => void running.delete(work);
      running.add(work);
      void work.then(done, done);
    },
    docsAssets,
  };
  const close = () => {
    closeStore();
    return closeTransport();
  };
  return { deps, endWaits: () => ending.abort(), idle, scrape, measured, recordings, close, storeOpened };
}

/** Added to the longest time of a request: how long a store that was replaced is not relied upon. */
const WINDOW_MARGIN_MS = 5_000;

/** A store of this process and its workers alone, or one that instances share. `opened` resolves after the first try to connect. */
function openStore({ config, table, upstream, logger, storeAddress: address }: Given, clock: Clock) {
  const { secrets, cacheMaxBytes: maxBytes } = config;
  if (!address) {
    const now = () => clock.now();
    const backend = assignment ? notesOfFirst(now) : new MemoryBackend({ now });
    const store = new Store({ backend, clock, maxBytes });
    return { store, instruments: [], opened: undefined, close: () => undefined };
  }
  const { onCommand, instruments } = sharedStoreMetrics(
    () => shelf.isThere,
    () => store.pending,
  );
  const warnings = new OncePerMinute();
  const shelf = new RedisShelf({
    address,
    clock,
    windowMs: config.requestTimeoutMs + WINDOW_MARGIN_MS,
    onCommand,
    onChange: (isThere) => logger.warn({}, isThere ? 'the store answers again' : 'the store does not answer'),
    onTrouble({ reason, words }) {
      if (warnings.isDue(reason, clock.now())) logger.warn({ reason }, `trouble with the store: ${words}`);
    },
  });
  const digest = nodeDigest(secrets, upstream.href);
  const backend = new SealedNotes(shelf, {
    seal: nodeSeal(secrets, 'portico store seal'),
    nameOf: (text) => digest.account(text),
    noteMs: noteMsOf(config, table),
  });
  const store = new Store({ backend, clock, maxBytes });
  return {
    store,
    instruments,
    opened: shelf.opened,
    close: () => {
      const count = store.pending;
      if (count > 0) logger.error({ count }, 'stopping before the store has acknowledged how all writes ended');
      shelf.close();
    },
  };
}

/** The files of the documentation page: those of the npm package where there is no bundle. */
const docsAssets: DocsAssets = {
  read: assets('assets/docs', (name) => createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`)),
};
