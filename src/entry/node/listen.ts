import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { createAdminApp, createRefuser } from '../../app.ts';
import type { Gateway } from '../../portico.ts';
import type { Scrape } from '../../routes/health.ts';
import type { Route } from '../../routes/route.ts';
import { assignment } from './assignment.ts';
import { consoleRoutes } from './console/index.ts';
import { tellFirst, type ToWorker } from './ipc.ts';
import { type OpenedOnNode, openedOnNode } from './runtime.ts';
import { serve as listen, type Served, type ServeOptions, type Serving } from './server/serve.ts';
import { onSignal } from './signals.ts';
import { exitBadly, orExit } from './variables.ts';

const CUT_OFF = 'requests were cut off, since SHUTDOWN_GRACE_MS was over';
const NEVER_THAT_LONG = 'UPSTREAM_TIMEOUT_MS is more than REQUEST_TIMEOUT_MS, so an upstream call never gets that long';
const ONE_GATEWAY = '1, since this process serves several gateways';

let isServing = false;
let hasWorkers = assignment !== undefined;

/**
 * Serves an app in which the gateway is mounted, or the gateway's own, at `HOST` and `PORT`, and the admin listener, until
 * a signal ends it: then requests in flight finish, and the process exits. Where it cannot listen, the process ends.
 * With `WORKERS` above 1 other processes, which run the same main module, serve the app. `atEnd`: what is to be closed last.
 */
export async function serve(app: ServeOptions['app'], gateway: Gateway, atEnd?: () => Promise<void>): Promise<Served> {
  const opened = openedOnNode(gateway);
  const { deps, logger, settings, state } = opened;
  hasWorkers ||= settings.workers > 1;
  if (isServing && hasWorkers) exitBadly([{ variable: 'WORKERS', expected: ONE_GATEWAY }]); // all would take one port
  isServing = true;
  if (!assignment) {
    if (deps.config.upstreamTimeoutMs > deps.config.requestTimeoutMs) logger.warn({}, NEVER_THAT_LONG);
    if (settings.workers > 1) return (await import('./workers.ts')).startWorkers(opened, atEnd);
  }
  let isReady = false;
  state.isReady = () => isReady;
  await Promise.all([opened.storeOpened, opened.tracesOpened()]);
  // First: a start that fails has served nobody.
  const admin = assignment
    ? undefined
    : await listenForOperators(opened, opened.scrape, consoleRoutes(deps.config.adminHost, opened.recordings));
  const main = await listenForClients(app, opened);
  isReady = true;
  onSignal((signal) => {
    if (!isReady) return; // a second signal changes nothing: requests in flight still finish
    isReady = false;
    if (assignment) tellFirst({ isReady });
    else logger.info({ signal }, 'stopping');
    void end(opened, main, async () => void (await Promise.all([admin?.drain(0), atEnd?.()])));
  });
  if (assignment) {
    process.on('message', ({ measure }: ToWorker) => {
      if (measure) void opened.measured().then((measured) => tellFirst({ measured }));
    });
    tellFirst({ isReady });
  } else logger.info({ url: main.url }, 'listening');
  return { url: main.url, adminUrl: admin?.url, ...(admin && { consoleUrl: `${admin.url}/console` }) };
}

/** How many connections operators and probes may have. */
const MOST_OF_OPERATORS = 512;

/** The admin listener, with these pages; undefined with `ADMIN_PORT=0`. Where it cannot listen the process ends. */
export async function listenForOperators(
  { deps }: OpenedOnNode,
  scrape: Scrape,
  pages: readonly Route[],
): Promise<Serving | undefined> {
  const at = { host: deps.config.adminHost, port: deps.config.adminPort };
  if (at.port === 0) return undefined;
  const unhooked = { ...deps, hooks: undefined }; // it is no part of what clients see
  const [app, refuse] = [createAdminApp(unhooked, scrape, pages), createRefuser(unhooked)];
  const options = { app, ...at, refuse, waitUntil: deps.waitUntil, mostConnections: MOST_OF_OPERATORS };
  return orExit('ADMIN_PORT', at, listen(options));
}

/** How many requests may be under way at once: beyond that an answer would come too late to be of use. */
const MOST_REQUESTS = 2_000;

/** Descriptors that the log, the store, the admin listener and the sockets that listen take. */
const OTHER_DESCRIPTORS = 128;

async function listenForClients(app: ServeOptions['app'], { deps }: OpenedOnNode): Promise<Serving> {
  const { config, metrics, waitUntil } = deps;
  const { upstreamMaxConnections } = config;
  const at = { host: config.host, port: assignment?.port ?? config.port };
  const descriptors = descriptorLimit();
  // Connections to the upstream may be twice as many as calls of it: one that is idle for reads is not used by a write.
  const mostConnections = Math.floor(
    Math.max(descriptors / 3, descriptors - 2 * upstreamMaxConnections - OTHER_DESCRIPTORS),
  );
  const mostRequests = Math.max(MOST_REQUESTS, 4 * upstreamMaxConnections);
  const [refuse, onOverload] = [createRefuser(deps), () => metrics.refused('under_way')];
  const reusePort = assignment !== undefined;
  const options = { app, ...at, reusePort, refuse, waitUntil, mostRequests, onOverload, mostConnections };
  const main = await orExit('PORT', at, listen(options));
  metrics.watch('requests', () => main.load().requests);
  metrics.watch('requests_limit', () => mostRequests);
  metrics.watch('connections', () => main.load().connections);
  metrics.watch('connections_limit', () => mostConnections);
  return main;
}

/** The limit where the system tells none. */
const USUAL_DESCRIPTORS = 4_096;

/** How many files and connections this process may have. Node has raised that as far as it may. */
function descriptorLimit(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'latin1');
    return Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? USUAL_DESCRIPTORS);
  } catch {
    return USUAL_DESCRIPTORS; // no Linux
  }
}

/**
 * Waits for `SHUTDOWN_DELAY_MS`, so that the balancer may notice, then drains the public listener. `last` closes what probes
 * ask until the end.
 */
async function end(opened: OpenedOnNode, main: Serving, last: () => Promise<void>): Promise<never> {
  const { deps, settings, logger, state } = opened;
  opened.endWaits();
  if (settings.shutdownDelayMs > 0) {
    main.tellToClose();
    await delay(settings.shutdownDelayMs);
  }
  const endAt = Date.now() + deps.config.shutdownGraceMs;
  const left = () => Math.max(0, endAt - Date.now());
  await main.drain(left(), (count) => {
    state.isCuttingOff = true;
    for (let n = 0; n < count; n++) deps.metrics.refused('cut_off');
    logger.warn({ count }, CUT_OFF);
  });
  await Promise.race([opened.idle(), delay(left())]);
  await last();
  await opened.close();
  await logger.end();
  return process.exit(0);
}
