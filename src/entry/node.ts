import { onStop } from './node/signals.ts';
import { createAdminApp, createApp, createRefuser } from '../app.ts';
import { nodeDeps, openStore } from './node/deps.ts';
import { pinoLogger } from './node/logger.ts';
import { mostConnections } from './node/server/connections.ts';
import { serve, type Serving } from './node/server/serve.ts';
import { BAD_CONFIG, nearlyVariables, readConfig } from './node/variables.ts';
import type { RunningSandbox } from '../../sandbox/src/node.ts';

/** Under way at once: beyond that an answer would come too late to be of use. */
const MOST_REQUESTS = 2_000;

const SANDBOX_PORT = 8789;

const NO_SUCH_HOST = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EADDRNOTAVAIL', 'EINVAL']);

interface Running {
  readonly sandbox: RunningSandbox | undefined;
  readonly gateway: Serving;
  readonly admin: Serving | undefined;
  readonly idle: () => Promise<unknown>;
  readonly close: () => Promise<void>;
}

const config = readConfig();
const logger = pinoLogger(config.logLevel);
/** From when the public listener is open to the signal that ends it. */
let ready = false;
void start();

async function start(): Promise<void> {
  for (const near of nearlyVariables(process.env)) logger.warn(near, 'variable is not known');
  const sandbox = config.upstreamBaseUrl ? undefined : await sandboxBeside();
  const upstream = config.upstreamBaseUrl ?? new URL(sandbox?.url ?? '');
  const trialAccounts = sandbox?.sandbox.accounts;
  const given = { config, upstream, logger, readiness: { isReady: () => ready }, trialAccounts };
  const store = await openStore(given);
  const { deps, unsent, idle, scrape, close } = nodeDeps(given, store, logger.dropped);
  for (const variable of config.ignored) logger.warn({ variable }, 'variable has no effect yet');
  const { host, port, trustedProxies, adminHost, adminPort, upstreamMaxConnections } = config;
  const shared = { isGateway: true, refuse: createRefuser(deps), unsent, waitUntil: deps.waitUntil };
  const bounds = {
    trustedProxies,
    mostConnections: mostConnections(upstreamMaxConnections),
    mostRequests: Math.max(MOST_REQUESTS, 4 * upstreamMaxConnections),
    onOverload: () => deps.metrics.refused('under_way'),
  };
  const options = { app: createApp(deps), host, port, ...shared, ...bounds };
  const probed = { ...shared, app: createAdminApp(deps, scrape), host: adminHost, port: adminPort };
  const admin = adminPort === 0 ? undefined : await orExit('ADMIN_PORT', probed, serve); // first: a start that fails has served nobody
  const running = { sandbox, idle, close, admin, gateway: await orExit('PORT', options, serve) };
  ready = true;
  onStop((signal) => void stop(running, signal));
  announce(running);
}

/** On `SANDBOX_PORT`; without that on 8789, or on any free port if that is taken. Its code is loaded only if it is used. */
async function sandboxBeside(): Promise<RunningSandbox> {
  // oxlint-disable-next-line no-restricted-imports -- the only place; it is loaded late
  const { startSandbox } = await import('../../sandbox/src/node.ts');
  const { sandboxPort: port } = config;
  const isOurs = config.port === SANDBOX_PORT || config.adminPort === SANDBOX_PORT;
  if (port === undefined) return startSandbox({ port: isOurs ? 0 : SANDBOX_PORT }).catch(() => startSandbox());
  return orExit('SANDBOX_PORT', { host: '127.0.0.1', port }, startSandbox);
}

/** `PORT` and `HOST` belong together, as do `ADMIN_PORT` and `ADMIN_HOST`. */
async function orExit<At extends { readonly host: string; readonly port: number }, T>(
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

/** First readiness is turned off, then the public listener drained; the admin one is closed last, for the probes. */
async function stop({ sandbox, gateway, admin, idle, close }: Running, signal: NodeJS.Signals): Promise<void> {
  if (!ready) return; // a second signal changes nothing: requests in flight still finish
  ready = false;
  logger.info({ signal }, 'stopping');
  const endAt = Date.now() + config.shutdownGraceMs;
  const left = () => Math.max(0, endAt - Date.now());
  await gateway.drain(left());
  await Promise.race([idle(), new Promise((resolve) => setTimeout(resolve, left()))]);
  await admin?.drain(0);
  await Promise.all([close(), sandbox?.close()]);
  await logger.end();
  process.exit(0);
}

function announce({ gateway: { url }, sandbox: started }: Running): void {
  logger.info({ url }, 'listening');
  const [account] = started?.sandbox.accounts ?? [];
  if (!started || !account) return;
  console.log(`
Portico is at ${url}, with a sandbox upstream at ${started.url}. Try:

  curl -i -H 'Authorization: Token ${account.key}' ${url}/bff/v1/account-overview

The same once more is answered from the cache. Accounts to play with:
${started.sandbox.accounts.map(({ key, description }) => `  ${key.padEnd(28)}${description}`).join('\n')}

Documentation: ${url}/docs
`);
}
