import { existsSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { createAdminApp, createApp } from '../app.ts';
import { type Config, parseConfig } from '../config.ts';
import { trackedBackground } from './node/background.ts';
import { nodeDeps } from './node/deps.ts';
import { pinoLogger } from './node/logger.ts';
import { listen, type Listener, type ListenerOptions } from './node/server.ts';
import { warmUp } from './node/warm-up.ts';
import { type RunningSandbox, startSandbox } from './node/sandbox.ts';

/** `EX_CONFIG` of sysexits.h. */
const BAD_CONFIG = 78;

function readConfig(): Config {
  if (existsSync('.env')) loadEnvFile('.env');
  const parsed = parseConfig(process.env);
  const problems = 'problems' in parsed ? parsed.problems : missingIn(parsed.config);
  for (const { variable, expected } of problems) console.error(`${variable}: expected ${expected}`);
  if ('problems' in parsed || problems.length > 0) process.exit(BAD_CONFIG);
  return parsed.config;
}

function missingIn({ production, upstreamBaseUrl }: Config) {
  const isMissing = production && !upstreamBaseUrl;
  return isMissing ? [{ variable: 'UPSTREAM_BASE_URL', expected: 'a URL, since NODE_ENV is production' }] : [];
}

const config = readConfig();
const sandbox = config.upstreamBaseUrl ? undefined : await startSandbox();
const upstream = config.upstreamBaseUrl ?? new URL(sandbox?.url ?? '');
const logger = pinoLogger(config.logLevel);
const { background, idle } = trackedBackground();
let ready = true;
const { deps, close } = nodeDeps({ config, upstream, logger, readiness: { isReady: () => ready } });

await warmUp(deps);
const gateway = await open('PORT', { app: createApp(deps), background, host: config.host, port: config.port });
const admin =
  config.adminPort === 0
    ? undefined
    : await open('ADMIN_PORT', {
        app: createAdminApp(deps),
        background,
        host: config.adminHost,
        port: config.adminPort,
      });
announce(gateway.url, sandbox);

for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, (signal) => void stop(signal));

async function open(variable: string, options: ListenerOptions): Promise<Listener> {
  try {
    return await listen(options);
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    const words = reason === 'EADDRINUSE' ? 'it is already in use' : reason;
    console.error(`${variable}: cannot listen on ${options.host}:${options.port}: ${words}`);
    return process.exit(1);
  }
}

/** Readiness first, then the public listener; the admin one goes last, so that probes see it all. */
async function stop(signal: NodeJS.Signals): Promise<void> {
  logger.info({ signal }, 'stopping');
  ready = false;
  const endAt = Date.now() + config.shutdownGraceMs;
  const left = () => Math.max(0, endAt - Date.now());
  await gateway.drain(left());
  await Promise.race([idle(), new Promise((resolve) => setTimeout(resolve, left()))]);
  await admin?.drain(0);
  await Promise.all([close(), sandbox?.close()]);
  logger.flush();
  process.exit(0);
}

function announce(url: string, started: RunningSandbox | undefined): void {
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
