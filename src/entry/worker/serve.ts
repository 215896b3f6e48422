import type { ExecutionContext, Hono } from 'hono';
import { createApp, type Deps } from '../../app.ts';
import { type Config, parseConfig } from '../../config.ts';
import { clientAt } from '../../core/address.ts';
import { noMetrics } from '../../core/metrics.ts';
import type { Env } from '../../middleware/request.ts';
import { MemoryStore } from '../../store/memory.ts';
import { SharedStore } from '../../store/shared.ts';
import { Sealer } from '../../store/shared/sealer.ts';
import type { Store } from '../../store/store.ts';
import { type AssetsBinding, assetsOf, clock, consoleLogger, webDigest } from './deps.ts';
import { type AccountsBinding, durableEngine, secretsOf } from './engine.ts';
import { type Fetch, fetchTransport } from './transport.ts';

/** Bindings of `wrangler.toml`, besides the variables of `config.ts`. */
interface WorkerEnv extends Record<string, unknown> {
  readonly SANDBOX?: string;
  readonly ASSETS?: AssetsBinding;
  readonly ACCOUNTS?: AccountsBinding;
}

/** An upstream in the isolate, for development, and its accounts. */
type MakeSandbox = () => { readonly fetch: Fetch; readonly accounts: NonNullable<Deps['trialAccounts']> };

/** The worker's handler. The app is made once in each isolate, since variables do not change while it lives. */
export function workerOf(makeSandbox?: MakeSandbox) {
  let app: Hono<Env> | undefined;
  return {
    async fetch(request: Request, env: WorkerEnv, execution: ExecutionContext): Promise<Response> {
      // Until it is made, each request makes its own: on Workers none may wait for another's.
      const made = app ? { app, isKept: true } : await appOf(env, makeSandbox);
      if (made.isKept) app ??= made.app;
      return made.app.fetch(request, env, execution);
    },
  };
}

/** `isKept`: whether all requests of the isolate use it; else the next one tries again to reach the store. */
export async function appOf(env: WorkerEnv, makeSandbox: MakeSandbox | undefined) {
  const hasSandbox = env.SANDBOX === 'true' && makeSandbox !== undefined;
  const config = configOf(env, hasSandbox);
  const sandbox = config.upstreamBaseUrl || !hasSandbox ? undefined : makeSandbox();
  const upstream = config.upstreamBaseUrl ?? new URL('http://sandbox.invalid');
  const { store, secrets, isKept } = await stateOf(env, { config, upstream: upstream.href });
  const app = createApp({
    config,
    upstream,
    transport: fetchTransport(upstream, sandbox?.fetch ?? ((request) => fetch(request))),
    slots: undefined,
    store,
    clock,
    digest: webDigest(secrets, upstream.href),
    logger: consoleLogger(config.logLevel),
    metrics: noMetrics,
    readiness: { isReady: () => true },
    docsAssets: assetsOf(env.ASSETS),
    trialAccounts: sandbox?.accounts,
    // The platform sets this header, whatever a client sends.
    addressOf: (_, header) => clientAt(header('cf-connecting-ip') ?? ''),
    waitUntil: () => undefined, // the platform always passes an execution context
  });
  return { app, isKept };
}

/** The store that all isolates share; without the binding, a store of the isolate's own. */
async function stateOf(
  { ACCOUNTS: accounts }: WorkerEnv,
  { config, upstream }: { readonly config: Config; readonly upstream: string },
): Promise<{ store: Store; secrets: readonly string[]; isKept: boolean }> {
  const { cacheMaxBytes: maxBytes, upstreamTimeoutMs: waitMs } = config;
  if (!accounts) return { store: new MemoryStore({ maxBytes }), secrets: config.secrets, isKept: true };
  const kept = config.secrets.length > 0 ? config.secrets : await secretsOf(accounts, clock);
  const isKept = kept.length > 0;
  // Without a secret no account can be named: requests that need the store are refused, others are served.
  const secrets = isKept ? kept : [crypto.randomUUID() + crypto.randomUUID()];
  const engine = durableEngine(isKept ? accounts : undefined);
  const sealer = new Sealer(secrets, upstream);
  const hasBudget = config.upstreamBudgetPerMinute > 0;
  return { store: new SharedStore({ engine, sealer, maxBytes, clock, waitMs, hasBudget }), secrets, isKept };
}

/** @throws Error naming every bad variable; the platform then answers 500 and logs it */
function configOf(env: WorkerEnv, hasSandbox: boolean): Config {
  const parsed = parseConfig(env);
  if ('config' in parsed && (parsed.config.upstreamBaseUrl || hasSandbox)) return parsed.config;
  const missing = { variable: 'UPSTREAM_BASE_URL', expected: 'a URL, or in development SANDBOX=true' };
  const problems = 'problems' in parsed ? parsed.problems : [missing];
  const named = problems.map(({ variable, expected }) => `${variable}: expected ${expected}`);
  throw new Error(`bad configuration\n${named.join('\n')}`);
}
