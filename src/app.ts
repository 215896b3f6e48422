import { Hono } from 'hono';
import type { Config } from './config.ts';
import { GatewayError } from './core/errors.ts';
import type { Logger } from './core/logger.ts';
import { type Metrics, noMetrics } from './core/metrics.ts';
import type { Clock, Digest } from './core/runtime.ts';
import { createGateway } from './gateway/gateway.ts';
import type { Env } from './http/bindings.ts';
import { type Conductor, conductor, type Handler } from './http/conduct.ts';
import { type Cors, corsFor, type Taken } from './http/cors.ts';
import { rateLimit } from './http/rate-limit.ts';
import { batchRoute } from './routes/batch.ts';
import { type DocsAssets, docsRoutes, type OpenApiText } from './routes/docs.ts';
import { healthRoutes, type Readiness } from './routes/health.ts';
import { metricsRoute, type Scrape } from './routes/metrics.ts';
import { overviewRoutes } from './routes/overviews.ts';
import { passthroughRoutes } from './routes/passthrough.ts';
import { problemsRoutes } from './routes/problems.ts';
import { type Accepted, acceptedAccounts } from './resilience/accepted.ts';
import type { Route } from './routes/route.ts';
import type { Store } from './store/store.ts';
import { seenCodes } from './upstream/seen-codes.ts';
import { countedDrift } from './upstream/drift.ts';
import type { Transport } from './upstream/transport.ts';

/** What a runtime gives; `entry/` builds it. */
export interface Deps {
  readonly config: Config;
  /** The upstream's `{base_url}`: configured, or the sandbox's. */
  readonly upstream: URL;
  readonly transport: Transport;
  readonly store: Store;
  readonly clock: Clock;
  readonly digest: Digest;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Upstream calls under way at once; undefined where the platform sees to it. */
  readonly slots: number | undefined;
  readonly readiness: Readiness;
  readonly docsAssets: DocsAssets;
  readonly openApiText: OpenApiText;
}

export type App = Hono<Env>;

/** The gateway: what every client sees, on any runtime. */
export function createApp(deps: Deps): App {
  const { config, clock, digest, logger } = deps;
  const accepted = acceptedAccounts();
  const seen = seenCodes();
  const cors = corsFor(config.allowedOrigins);
  const gateway = createGateway({
    ...deps,
    accepted,
    seen,
    attemptTimeoutMs: config.upstreamTimeoutMs,
    requestTimeoutMs: config.requestTimeoutMs,
    budgetPerMinute: config.upstreamBudgetPerMinute,
    maxBodyBytes: config.upstreamMaxBodyBytes,
    policyOf: config.policyOf,
    onDrift: countedDrift((drift) => logger.warn(drift, 'upstream answer does not fit its schema')),
  });
  const routes = [
    ...passthroughRoutes(gateway),
    ...overviewRoutes({ gateway, clock, digest }),
    batchRoute(gateway),
    ...problemsRoutes(seen),
    ...docsRoutes(deps.docsAssets, deps.openApiText),
    ...healthRoutes(deps.readiness),
  ];
  return mount(conductorOf(deps, { accepted, cors }), routes, cors);
}

/** What the operator sees, on the admin listener. Probes and scrapes are no traffic to measure. */
export function createAdminApp(deps: Deps, scrape: Scrape): App {
  return mount(conductorOf({ ...deps, metrics: noMetrics }, { accepted: acceptedAccounts() }), [
    ...healthRoutes(deps.readiness),
    metricsRoute(scrape),
  ]);
}

interface Made {
  readonly accepted: Accepted;
  readonly cors?: Cors | undefined;
}

function conductorOf({ config, clock, digest, logger, metrics, store }: Deps, made: Made): Conductor {
  const { rateLimitPerMinute: perMinute, ...given } = config;
  const limit = rateLimit({ clock, metrics, perMinute });
  return conductor({ ...given, clock, digest, logger, metrics, store, rateLimit: limit, ...made });
}

function mount(conduct: Conductor, routes: readonly Route[], cors?: Cors): App {
  const app: App = new Hono<Env>({ strict: false });
  for (const { method, path, name, handler } of routes) app.on(method, path, conduct(name, handler));
  const nothing = nothingHere(app);
  if (cors)
    for (const [path, ways] of Map.groupBy(routes, (route) => route.path))
      app.on('OPTIONS', path, conduct('(none)', cors.preflights(nothing, takenBy(ways))));
  app.notFound(conduct('(none)', cors?.preflights(nothing) ?? nothing));
  app.onError((error, context) =>
    conduct('(none)', () => {
      throw error;
    })(context),
  );
  return app;
}

function takenBy(ways: readonly Route[]): Taken {
  const headers = ways.flatMap(({ takes = [] }) => takes);
  return { methods: allowHeader(ways.map(({ method }) => method)), headers: [...new Set(headers)] };
}

const METHODS = ['GET', 'POST', 'PATCH', 'DELETE'] as const;
const KNOWN_METHODS = new Set<string>([...METHODS, 'HEAD', 'PUT', 'OPTIONS']);

/** Tells an unknown path from a known one that is asked with another method, by the router's own word. */
function nothingHere(app: App): Handler {
  return ({ context }) => {
    const allowed = METHODS.filter((method) => app.router.match(method, context.req.path)[0].length > 0);
    if (allowed.length > 0) throw GatewayError.of('method_not_allowed', { headers: { Allow: allowHeader(allowed) } });
    throw GatewayError.of(KNOWN_METHODS.has(context.req.method) ? 'unknown_endpoint' : 'method_not_implemented');
  };
}

/** HEAD works where GET does. */
function allowHeader(allowed: readonly string[]): string {
  return allowed.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
}
