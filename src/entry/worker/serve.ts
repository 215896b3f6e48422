import type { ExecutionContext } from 'hono';
import type { Deps } from '../../app.ts';
import { noteMsOf } from '../../upstream/read.ts';
import { type ConfigProblem, NO_UPSTREAM } from '../../config.ts';
import { clientAt } from '../../core/address.ts';
import { noMetrics } from '../../core/metrics.ts';
import type { Runtime } from '../../portico.ts';
import { Store } from '../../store/store.ts';
import { MemoryBackend } from '../../store/memory.ts';
import { SealedNotes } from '../../store/sealed.ts';
import { type AccountsBinding, ObjectShelf, secretsOf } from './account.ts';
import { type AssetsBinding, assetsOf, clock, consoleLogger, webDigest, webSeal } from './deps.ts';
import { type Fetch, fetchTransport } from './transport.ts';

/** Bindings of `wrangler.toml`, besides the variables of `config.ts`. */
export interface WorkerEnv extends Record<string, unknown> {
  readonly SANDBOX?: string;
  readonly ASSETS?: AssetsBinding;
  readonly ACCOUNTS?: AccountsBinding;
}

/** An upstream in the isolate, for development, and its accounts. */
type MakeSandbox = () => { readonly fetch: Fetch; readonly accounts: NonNullable<Deps['trialAccounts']> };

/** Anything that answers as a Hono app does. */
interface App {
  fetch(request: Request, env: WorkerEnv, execution: ExecutionContext): Response | Promise<Response>;
}

/** Makes the app that is served: the gateway's own, or one in which it is mounted. `options` are for `portico`. */
type MakeApp = (options: { readonly runtime: Runtime }, env: WorkerEnv) => App;

/**
 * The worker's handler. The app is made once in each isolate, since variables do not change while it lives: at its first
 * request, since before that there is neither a store nor a random number.
 */
export function worker(make: MakeApp, makeSandbox?: MakeSandbox) {
  let kept: App | undefined;
  return {
    async fetch(request: Request, env: WorkerEnv, execution: ExecutionContext): Promise<Response> {
      if (kept) return kept.fetch(request, env, execution);
      // Until it is made, each request makes its own: on Workers none may wait for another's.
      const { runtime, isKept } = await runtimeOf(env, makeSandbox);
      const app = make({ runtime }, env);
      if (isKept) kept ??= app;
      return app.fetch(request, env, execution);
    },
  };
}

/** `isKept`: whether all requests of the isolate may use what is made with it; else the next one tries again to reach the store. */
async function runtimeOf(env: WorkerEnv, makeSandbox: MakeSandbox | undefined) {
  const { SECRETS: told = '', ACCOUNTS: accounts } = env;
  const own = told === '' && accounts ? await secretsOf(accounts, clock) : [];
  const isKept = told !== '' || !accounts || own.length > 0;
  const sandbox = env.SANDBOX === 'true' ? makeSandbox?.() : undefined;
  const open: Runtime['open'] = (given) => {
    const { config, table } = given;
    const upstream = config.upstreamBaseUrl ?? (sandbox && new URL('http://sandbox.invalid'));
    if (!upstream) return refuse([NO_UPSTREAM]);
    const outside = config.upstreamBaseUrl ? undefined : sandbox;
    const known = config.secrets.length > 0 ? config.secrets : own;
    // Without a secret no account can be named: requests that need the store are refused, others are served.
    const secrets = isKept ? known : [crypto.randomUUID() + crypto.randomUUID()];
    const digest = webDigest(secrets, upstream.href);
    const backend = accounts
      ? new SealedNotes(new ObjectShelf(isKept ? accounts : undefined, clock), {
          seal: webSeal(secrets),
          nameOf: (text) => digest.account(text),
          noteMs: noteMsOf(config, table),
        })
      : new MemoryBackend({ now: () => clock.now() });
    const deps: Deps = {
      ...given,
      upstream,
      transport: fetchTransport(upstream, outside?.fetch ?? ((request) => fetch(request))),
      slots: undefined,
      store: new Store({ backend, clock, maxBytes: config.cacheMaxBytes }),
      clock,
      random: Math.random,
      digest,
      logger: consoleLogger(config.logLevel),
      metrics: noMetrics,
      readiness: { isReady: () => true },
      docsAssets: assetsOf(env.ASSETS),
      trialAccounts: outside?.accounts,
      // The platform sets this header, whatever a client sends.
      addressOf: (_, header) => clientAt(header('cf-connecting-ip') ?? ''),
    };
    return { deps, drain: async () => undefined };
  };
  const runtime: Runtime = { variables: env, open, refuse };
  return { isKept, runtime };
}

/** @throws Error naming every bad variable; the platform then answers 500 and logs it */
function refuse(problems: readonly ConfigProblem[]): never {
  const named = problems.map(({ variable, expected }) => `${variable}: expected ${expected}`);
  throw new Error(`bad configuration\n${named.join('\n')}`);
}
