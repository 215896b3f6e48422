import { createAdminApp, createRefuser } from '../../app.ts';
import type { Gateway } from '../../portico.ts';
import { openConsole } from './console/index.ts';
import { type OpenedOnNode, openedOnNode } from './runtime.ts';
import { mostConnections } from './server/connections.ts';
import { serve as listen, type ServeOptions, type Serving } from './server/serve.ts';
import { onStop } from './signals.ts';
import { BAD_CONFIG, nearlyVariables } from './variables.ts';

const HASHES_CHANGE = 'the hashes of accounts and clients in the log change with the process, since SECRETS is not set';

/** Under way at once: beyond that an answer would come too late to be of use. */
const MOST_REQUESTS = 2_000;

const NO_SUCH_HOST = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EADDRNOTAVAIL', 'EINVAL']);

/**
 * Serves an app in which the gateway is mounted, or the gateway's own, at `HOST` and `PORT`, and the admin listener, until
 * SIGTERM or SIGINT: then requests in flight finish, and the process exits. Where it cannot listen, the process ends.
 * `atEnd`: what is to be closed last.
 */
export async function serve(
  app: ServeOptions['app'],
  gateway: Gateway,
  atEnd?: () => Promise<void>,
): Promise<{ readonly url: string; readonly adminUrl: string | undefined }> {
  const opened = openedOnNode(gateway);
  opened.setReady(false);
  const { deps, unsent, scrape, logger, settings, storeOpened, tracesOpened } = opened;
  const { config, waitUntil, metrics } = deps;
  for (const near of nearlyVariables(process.env)) logger.warn(near, 'variable is not known');
  if (config.secrets.length === 0) logger.info({}, HASHES_CHANGE);
  await Promise.all([storeOpened, tracesOpened()]);
  const { host, port, trustedProxies, adminHost, adminPort, upstreamMaxConnections } = config;
  const shared = { refuse: createRefuser(deps), unsent, waitUntil, keepAliveMs: settings.keepAliveMs };
  const bounds = {
    trustedProxies,
    mostConnections: mostConnections(upstreamMaxConnections),
    mostRequests: Math.max(MOST_REQUESTS, 4 * upstreamMaxConnections),
    onOverload: () => metrics.refused('under_way'),
  };
  const unhooked = { ...deps, hooks: undefined }; // the admin listener is no part of what clients see
  const shown = openConsole(opened);
  const ofAdmin = {
    ...shared,
    refuse: createRefuser(unhooked),
    isGateway: true,
    app: createAdminApp(unhooked, scrape, shown.routes),
  };
  const probed = { ...ofAdmin, host: adminHost, port: adminPort };
  const admin = adminPort === 0 ? undefined : await orExit('ADMIN_PORT', probed, listen); // first: a start that fails has served nobody
  const served = { ...shared, ...bounds, isGateway: app === gateway.app, app, host, port };
  const main = await orExit('PORT', served, listen);
  metrics.watch('requests', () => main.load().requests);
  metrics.watch('requests_limit', () => bounds.mostRequests);
  metrics.watch('connections', () => main.load().connections);
  metrics.watch('connections_limit', () => bounds.mostConnections);
  opened.setReady(true);
  onStop((signal) => void stop({ opened, gateway: main, admin, shown, atEnd }, signal));
  logger.info({ url: main.url }, 'listening');
  return { url: main.url, adminUrl: admin?.url };
}

interface Running {
  readonly opened: OpenedOnNode;
  readonly gateway: Serving;
  readonly admin: Serving | undefined;
  readonly shown: { readonly end: () => void };
  readonly atEnd: (() => Promise<void>) | undefined;
}

/** First readiness is turned off, then the public listener drained; the admin one is closed last, for the probes. */
async function stop({ opened, gateway, admin, shown, atEnd }: Running, signal: NodeJS.Signals): Promise<void> {
  const { deps, logger, idle, close } = opened;
  if (!deps.readiness.isReady()) return; // a second signal changes nothing: requests in flight still finish
  opened.setReady(false);
  logger.info({ signal }, 'stopping');
  shown.end();
  const endAt = Date.now() + deps.config.shutdownGraceMs;
  const left = () => Math.max(0, endAt - Date.now());
  await gateway.drain(left());
  await Promise.race([idle(), new Promise((resolve) => setTimeout(resolve, left()))]);
  await admin?.drain(0);
  await Promise.all([close(), atEnd?.()]);
  await logger.end();
  process.exit(0);
}

/** `PORT` and `HOST` belong together, as do `ADMIN_PORT` and `ADMIN_HOST`. Where it cannot listen the process ends. */
export async function orExit<At extends { readonly host: string; readonly port: number }, T>(
  portVariable: string,
  at: At,
  run: (at: At) => Promise<T>,
): Promise<T> {
  try {
    return await run(at);
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    const isBadHost = NO_SUCH_HOST.has(reason);
    const words = reason === 'EADDRINUSE' ? 'it is already in use' : reason;
    if (isBadHost) console.error(`${portVariable.replace('PORT', 'HOST')}: expected a name or address of this machine`);
    else console.error(`${portVariable}: cannot listen on ${at.host}:${at.port}: ${words}`);
    return process.exit(isBadHost ? BAD_CONFIG : 1);
  }
}
