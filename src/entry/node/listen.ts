import { createRefuser } from '../../app.ts';
import type { Gateway } from '../../portico.ts';
import { consoleRoutes } from './console/index.ts';
import { listenForOperators, orExit } from './operators.ts';
import { type OpenedOnNode, openedOnNode } from './runtime.ts';
import { mostConnections } from './server/connections.ts';
import { serve as listen, type Served, type ServeOptions, type Serving } from './server/serve.ts';
import { onSignal } from './signals.ts';
import { nearlyVariables } from './variables.ts';
import { role } from './workers/role.ts';

const HASHES_CHANGE = 'the hashes of accounts and clients in the log change with the process, since SECRETS is not set';

const CUT_OFF = 'requests were cut off, since SHUTDOWN_GRACE_MS was over';

const NEVER_THAT_LONG = 'UPSTREAM_TIMEOUT_MS is more than REQUEST_TIMEOUT_MS, so an upstream call never gets that long';

/** Under way at once: beyond that an answer would come too late to be of use. */
const MOST_REQUESTS = 2_000;

/** What a worker may take to end beside its delay and grace: to send spans and to write its log. */
const END_MS = 3_000;

/**
 * Serves an app in which the gateway is mounted, or the gateway's own, at `HOST` and `PORT`, and the admin listener, until
 * a signal ends it: then requests in flight finish, and the process exits. With `WORKERS` this process starts others that
 * run the same file, and they serve. Where it cannot listen, the process ends. `atEnd`: what is to be closed last.
 */
export async function serve(app: ServeOptions['app'], gateway: Gateway, atEnd?: () => Promise<void>): Promise<Served> {
  const opened = openedOnNode(gateway);
  const { logger, deps, isPrimary } = opened;
  if (!role) {
    for (const near of nearlyVariables(process.env)) logger.warn(near, 'variable is not known');
    if (deps.config.secrets.length === 0) logger.info({}, HASHES_CHANGE);
    if (deps.config.upstreamTimeoutMs > deps.config.requestTimeoutMs) logger.warn({}, NEVER_THAT_LONG);
  }
  if (!isPrimary) return serveHere({ app, opened, atEnd });
  const { supervise } = await import('./workers/primary.ts');
  return supervise(opened, atEnd);
}

interface Parts {
  readonly app: ServeOptions['app'];

  readonly opened: OpenedOnNode;
  readonly atEnd: (() => Promise<void>) | undefined;
}

async function serveHere({ app, opened, atEnd }: Parts): Promise<Served> {
  let isReady = false;
  opened.readyWhen(() => isReady);
  const { deps, unsent, rooms, scrape, logger, settings, storeOpened, tracesOpened } = opened;
  const { config, waitUntil } = deps;
  await Promise.all([storeOpened, tracesOpened()]);
  const admin = role ? undefined : await listenForOperators(opened, scrape, consoleRoutes(opened)); // first: a start that fails has served nobody
  const bounds = boundsOf(opened);
  const { host, port } = config;
  const refuse = createRefuser(deps);
  const { keepAliveMs } = settings;
  const served = {
    app,
    refuse,
    unsent,
    rooms,
    waitUntil,
    keepAliveMs,
    ...bounds,
    host,
    port,
  };
  const main = await orExit('PORT', served, listen);
  watchLoad(opened, main, bounds);
  isReady = true;
  const end = ending(opened, main, async () => {
    await Promise.all([admin?.drain(0), atEnd?.()]);
  });
  const stop = async ({ isReplaced }: { readonly isReplaced: boolean }) => {
    isReady = isReplaced; // who asks may hear of others
    opened.endWaits();
    await end({ delayMs: isReplaced ? 0 : settings.shutdownDelayMs });
  };
  onSignal((signal) => {
    if (isReady && !role) logger.info({ signal }, 'stopping');
    void stop({ isReplaced: false });
  });
  if (role) await tellPrimary(opened, main.url, stop);
  else logger.info({ url: main.url }, 'listening');
  return { url: main.url, adminUrl: admin?.url };
}

type Bounds = ReturnType<typeof boundsOf>;

function boundsOf({ deps: { config, metrics } }: OpenedOnNode) {
  const { trustedProxies, upstreamMaxConnections } = config;
  return {
    trustedProxies,
    mostConnections: mostConnections(upstreamMaxConnections),
    mostRequests: Math.max(MOST_REQUESTS, 4 * upstreamMaxConnections),
    onOverload: () => metrics.refused('under_way'),
  };
}

function watchLoad(
  { deps: { metrics } }: OpenedOnNode,
  main: Serving,
  { mostRequests, mostConnections: most }: Bounds,
) {
  metrics.watch('requests', () => main.load().requests);
  metrics.watch('requests_limit', () => mostRequests);
  metrics.watch('connections', () => main.load().connections);
  metrics.watch('connections_limit', () => most);
}

async function tellPrimary(
  { settings, deps: { config }, measure }: OpenedOnNode,
  url: string,
  stop: (why: { readonly isReplaced: boolean }) => Promise<void>,
): Promise<void> {
  const { serveFor } = await import('./workers/worker.ts');
  const endMs = settings.shutdownDelayMs + config.shutdownGraceMs + END_MS;
  await serveFor({ started: { url, workers: settings.workers, endMs }, measure, stop });
}

/**
 * How it ends, once: while it waits for `delayMs` the balancer may notice; then the public listener is drained. What `last`
 * closes is closed last, for the probes.
 */
function ending(
  { deps, logger, idle, close, cutOff, measure }: OpenedOnNode,
  main: Serving,
  last: () => Promise<void>,
) {
  let hasBegun = false;
  const onCut = (count: number) => {
    cutOff();
    for (let n = 0; n < count; n++) deps.metrics.refused('cut_off');
    logger.warn({ count }, CUT_OFF);
  };
  return async ({ delayMs }: { readonly delayMs: number }) => {
    if (hasBegun) return; // a second signal changes nothing: requests in flight still finish
    hasBegun = true;
    if (delayMs > 0) {
      main.tellToClose();
      await passed(delayMs);
    }
    const endAt = Date.now() + deps.config.shutdownGraceMs;
    const left = () => Math.max(0, endAt - Date.now());
    await main.drain(left(), onCut);
    await Promise.race([idle(), passed(left())]);
    await last();
    await close();
    await logger.end();
    if (role) await (await import('./workers/worker.ts')).tellLast(measure);
    process.exit(0);
  };
}

const passed = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
