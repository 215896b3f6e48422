import { once } from 'node:events';
import { createServer, get, type RequestOptions } from 'node:http';
import { createApp, type Deps } from '../../app.ts';
import type { Logger } from '../../core/logger.ts';
import { noMetrics } from '../../core/metrics.ts';
import { allOverviews } from '../../gateway/overviews.ts';
import { MemoryStore } from '../../store/memory.ts';
import { exampleOf } from '../../upstream/example.ts';
import { matchPath } from '../../upstream/match.ts';
import { urlOf } from './server/acceptors.ts';
import { listen } from './server/listen.ts';
import { undiciTransport } from './upstream/transport.ts';

const LOOPBACK = '127.0.0.1';
const LIMIT_MS = 2_000;
const BYTES = 1_048_576;

const nothing = () => undefined;
const silent: Logger = { info: nothing, warn: nothing, error: nothing, request: nothing };

/**
 * Answers each overview once before the port opens, over real sockets and from example answers of an upstream. Code runs
 * slowly the first time, and otherwise the first user would wait for that. Shares no state with the real app. If it
 * fails, the start goes on without.
 */
export async function warmUp(deps: Deps): Promise<void> {
  const server = createServer(({ url = '' }, response) => {
    response.setHeader('Content-Type', 'application/json').end(exampleAt(url));
  });
  try {
    await once(server.listen(0, LOOPBACK), 'listening');
    await answerOverviews(deps, new URL(urlOf(server, LOOPBACK)));
  } catch (error) {
    deps.logger.warn({ reason: error instanceof Error ? error.message : 'unknown' }, 'could not warm up');
  } finally {
    server.close();
  }
}

async function answerOverviews(deps: Deps, upstream: URL): Promise<void> {
  const { transport, close } = undiciTransport({ upstream, maxConnections: 16, connectTimeoutMs: LIMIT_MS });
  const store = new MemoryStore({ maxBytes: BYTES });
  const app = createApp({ ...deps, upstream, transport, store, logger: silent, metrics: noMetrics });
  const gateway = await listen({ app, waitUntil: nothing, host: LOOPBACK, port: 0 });
  const asking = { headers: { Authorization: 'Token warm-up' }, signal: AbortSignal.timeout(LIMIT_MS) };
  try {
    for (const { path } of allOverviews) await ask(gateway.url + path, asking);
  } finally {
    await Promise.all([close(), gateway.drain(0)]);
  }
}

function ask(url: string, options: RequestOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    get(url, options, (answer) => answer.resume().on('end', resolve).on('error', reject)).on('error', reject);
  });
}

function exampleAt(url: string): string {
  const [pathname = ''] = url.split('?', 1);
  const schema = matchPath(pathname)?.methods.get('GET')?.answer;
  return JSON.stringify(schema ? exampleOf(schema) : {});
}
