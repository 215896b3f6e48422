import { type App, createApp } from '../app.ts';
import { type Config, parseConfig } from '../config.ts';
import { customerOf } from '../core/address.ts';
import { noMetrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import type { DocsAssets } from '../routes/docs.ts';
import { createSandbox } from '../sandbox/sandbox.ts';
import { MemoryStore } from '../store/memory.ts';
import { webDigest } from './worker/digest.ts';
import { consoleLogger } from './worker/logger.ts';
import { type Fetch, fetchTransport } from './worker/transport.ts';

/** Bindings of `wrangler.toml`, besides the variables of `config.ts`. */
interface WorkerEnv extends Record<string, unknown> {
  readonly SANDBOX?: string;
  readonly ASSETS?: { fetch(request: Request): Promise<Response> };
}

interface WorkerContext {
  waitUntil(work: Promise<unknown>): void;
}

const clock: Clock = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

const SANDBOX_URL = 'http://sandbox.invalid';

/** One app per isolate: variables do not change while it lives. */
let app: App | undefined;

export default {
  fetch(request: Request, env: WorkerEnv, context: WorkerContext): Response | Promise<Response> {
    app ??= appOf(env);
    // The platform sets this header, whatever a client sends.
    const address = customerOf(request.headers.get('cf-connecting-ip') ?? '');
    return app.fetch(request, { background: (work) => context.waitUntil(work), address });
  },
};

function appOf(env: WorkerEnv): App {
  const config = configOf(env);
  const upstream = config.upstreamBaseUrl ?? new URL(SANDBOX_URL);
  return createApp({
    config,
    upstream,
    transport: fetchTransport(upstream, config.upstreamBaseUrl ? (request) => fetch(request) : sandboxFetch()),
    slots: undefined,
    store: new MemoryStore({ maxBytes: config.cacheMaxBytes }),
    clock,
    digest: webDigest(),
    logger: consoleLogger(config.logLevel),
    metrics: noMetrics,
    readiness: { isReady: () => true },
    docsAssets: docsAssets(env),
  });
}

/** @throws Error naming every bad variable; the platform then answers 500 and logs it */
function configOf(env: WorkerEnv): Config {
  const parsed = parseConfig(env);
  const problems = 'problems' in parsed ? parsed.problems : [];
  if ('config' in parsed && (parsed.config.upstreamBaseUrl || env.SANDBOX === 'true')) return parsed.config;
  const missing = { variable: 'UPSTREAM_BASE_URL', expected: 'a URL, or SANDBOX=true' };
  const named = (problems.length > 0 ? problems : [missing]).map(
    ({ variable, expected }) => `${variable}: expected ${expected}`,
  );
  throw new Error(`bad configuration\n${named.join('\n')}`);
}

function sandboxFetch(): Fetch {
  const sandbox = createSandbox();
  return (request) => sandbox.app.fetch(request);
}

function docsAssets({ ASSETS }: WorkerEnv): DocsAssets {
  return {
    async read(name) {
      const response = await ASSETS?.fetch(new Request(`https://assets.invalid/docs/${name}`));
      return response?.ok ? new Uint8Array(await response.arrayBuffer()) : null;
    },
  };
}
