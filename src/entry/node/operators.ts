import { createAdminApp, createRefuser } from '../../app.ts';
import type { Scrape } from '../../routes/health.ts';
import type { Route } from '../../routes/route.ts';
import type { OpenedOnNode } from './runtime.ts';
import { serve, type Serving } from './server/serve.ts';
import { BAD_CONFIG } from './variables.ts';

/** How many connections operators and probes may have. */
const MOST_CONNECTIONS = 512;

/** The admin listener, with these pages; undefined with `ADMIN_PORT=0`. Where it cannot listen the process ends. */
export async function listenForOperators(
  { deps }: OpenedOnNode,
  scrape: Scrape,
  pages: readonly Route[],
): Promise<Serving | undefined> {
  const { adminHost: host, adminPort: port } = deps.config;
  if (port === 0) return undefined;
  const unhooked = { ...deps, hooks: undefined }; // it is no part of what clients see
  const refuse = createRefuser(unhooked);
  const app = createAdminApp(unhooked, scrape, pages);
  const listening = serve({ app, host, port, refuse, waitUntil: deps.waitUntil, mostConnections: MOST_CONNECTIONS });
  return orExit('ADMIN_PORT', { host, port }, listening);
}

const NO_SUCH_HOST = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EADDRNOTAVAIL', 'EINVAL']);

/**
 * Resolves when `listening` does; where that cannot listen the process ends. `PORT` and `HOST` belong together, as do
 * `ADMIN_PORT` and `ADMIN_HOST`.
 */
export async function orExit<T>(
  portVariable: string,
  { host, port }: { readonly host: string; readonly port: number },
  listening: Promise<T>,
): Promise<T> {
  try {
    return await listening;
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    const isBadHost = NO_SUCH_HOST.has(reason);
    const words = reason === 'EADDRINUSE' ? 'it is already in use' : reason;
    if (isBadHost) console.error(`${portVariable.replace('PORT', 'HOST')}: expected a name or address of this machine`);
    else console.error(`${portVariable}: cannot listen on ${host}:${port}: ${words}`);
    return process.exit(isBadHost ? BAD_CONFIG : 1);
  }
}
