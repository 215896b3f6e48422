import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createApp, type Deps } from '../../app.ts';
import { Cancellation } from '../../core/cancellation.ts';
import type { Logger } from '../../core/logger.ts';
import { noMetrics } from '../../core/metrics.ts';
import { allOverviews } from '../../gateway/overviews.ts';
import { MemoryStore } from '../../store/memory.ts';
import { exampleOf } from '../../upstream/example.ts';
import { matchPath } from '../../upstream/match.ts';
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
  try {
    await withUpstream((upstream) => answerOverviews(deps, upstream));
  } catch (error) {
    deps.logger.warn({ reason: error instanceof Error ? error.message : 'unknown' }, 'could not warm up');
  }
}

async function answerOverviews(deps: Deps, upstream: URL): Promise<void> {
  const { transport, close } = transportTo(upstream);
  const store = new MemoryStore({ maxBytes: BYTES });
  const app = createApp({ ...deps, upstream, transport, store, logger: silent, metrics: noMetrics });
  const gateway = await listen({ app, background: () => undefined, host: LOOPBACK, port: 0 });
  const client = transportTo(new URL(gateway.url));
  const common = { method: 'GET', headers: ['authorization', 'Token warm-up'], maxBodyBytes: BYTES };
  const cancellation = new Cancellation();
  const stopTimer = deps.clock.after(LIMIT_MS, () => cancellation.cancel(new Error('it took too long')));
  try {
    for (const { path } of allOverviews) await client.transport({ ...common, path, cancellation });
  } finally {
    stopTimer();
    await Promise.all([client.close(), close(), gateway.drain(0)]);
  }
}

const transportTo = (upstream: URL) => undiciTransport({ upstream, maxConnections: 16, connectTimeoutMs: LIMIT_MS });

async function withUpstream(act: (upstream: URL) => Promise<void>): Promise<void> {
  const server = createServer(({ url = '' }, response) => {
    response.setHeader('Content-Type', 'application/json').end(exampleAt(url));
  }).listen(0, LOOPBACK);
  await once(server, 'listening');
  try {
    await act(new URL(`http://${LOOPBACK}:${(server.address() as AddressInfo).port}`));
  } finally {
    server.close();
  }
}

function exampleAt(url: string): string {
  const [pathname = ''] = url.split('?', 1);
  const schema = matchPath(pathname)?.methods.get('GET')?.answer;
  return JSON.stringify(schema ? exampleOf(schema) : {});
}
