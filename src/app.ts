import { type Context as HonoContext, Hono } from 'hono';
import { GatewayError } from './core/errors.ts';
import type { Inbound, Outbound } from './core/inbound.ts';
import { noMetrics } from './core/metrics.ts';
import type { MakeOpener } from './core/runtime.ts';
import { createGateway, type GatewayDeps } from './gateway/gateway.ts';
import type { Context } from './http/context.ts';
import { type Cors, corsFor, type Supported } from './http/cors.ts';
import { responseOf, type WebBindings, WebInbound } from './http/inbound.ts';
import { Lifecycle, type Route } from './http/lifecycle.ts';
import { Sessions } from './http/sessions.ts';
import { batchRoute } from './routes/batch/handler.ts';
import { type DocsAssets, docsRoutes, type TrialAccount } from './routes/docs.ts';
import { documentRoute } from './routes/document.ts';
import { healthRoutes, type Readiness } from './routes/health.ts';
import { homeRoute } from './routes/home.ts';
import { metricsRoute, type Scrape } from './routes/metrics.ts';
import { overviewRoutes } from './routes/overviews/handler.ts';
import { passthroughRoutes } from './routes/passthrough/handler.ts';
import { problemsRoutes } from './routes/problems.ts';
import { sessionRoutes } from './routes/session/handler.ts';

/** What a runtime gives; `entry/` builds it. */
export interface Deps extends GatewayDeps {
  readonly readiness: Readiness;
  readonly docsAssets: DocsAssets;
  /** Absent where only WebCrypto can open what is sealed. */
  readonly makeOpener?: MakeOpener;
  /** Accounts of the sandbox, for the documentation page; undefined with a real upstream. */
  readonly trialAccounts?: readonly TrialAccount[] | undefined;
}

/** What a runtime passes with a `Request`: the request as plain values, if it has read it itself. */
interface Bindings extends WebBindings {
  readonly inbound?: Inbound;
  /** The request's context, if `App.enter` has begun it. */
  readonly begun?: Context | undefined;
  /** Sends an answer past Hono, and returns a placeholder for Hono. */
  readonly send?: (answer: Outbound) => Response;
}

export interface Env {
  Bindings: Bindings;
}

/** A request that was begun outside Hono, with its answer if that needs no waiting. */
interface Entered {
  readonly begun: Context;
  readonly answer: Outbound | undefined;
}

export interface App extends Hono<Env> {
  /** Hono's road without Hono, for a GET that may be a hit: begins it, and answers it if that needs no waiting. */
  enter(inbound: Inbound): Entered | undefined;
  /** Answers what never comes to a route. `isLogged`: somebody else writes its line in the log. */
  refuse(inbound: Inbound, error: GatewayError, isLogged?: boolean): Outbound;
}

/** The gateway: what every client sees, on any runtime. */
export function createApp(deps: Deps): App {
  const seen = new Set<string>();
  const { config } = deps;
  const gateway = createGateway(deps, seen);
  const { isLiving } = gateway.sessions;
  const sessions = config.sessions ? new Sessions({ ...deps, isLiving }) : undefined;
  const routes = [
    ...passthroughRoutes(gateway),
    ...overviewRoutes(gateway, deps),
    batchRoute(gateway, config.upstreamMaxBodyBytes),
    ...(sessions ? sessionRoutes(gateway, sessions) : []),
    ...problemsRoutes(seen),
    homeRoute,
    documentRoute(),
    ...docsRoutes(deps),
    ...healthRoutes(deps.readiness),
  ];
  return mount(deps, routes, { cors: corsFor(deps), sessions });
}

/** The app of the admin listener. Its requests, probes and scrapes, are not counted in metrics. */
export function createAdminApp(deps: Deps, scrape: Scrape): App {
  return mount({ ...deps, metrics: noMetrics }, [...healthRoutes(deps.readiness), metricsRoute(scrape)]);
}

interface ForBrowsers {
  readonly cors?: Cors | undefined;
  readonly sessions?: Sessions | undefined;
}

function mount(
  { config, clock, logger, metrics }: Deps,
  routes: readonly Route[],
  { cors, sessions }: ForBrowsers = {},
): App {
  const options = { ...config, clock, logger, metrics, cors, sessions };
  const lifecycle = new Lifecycle(options);
  // What comes to no route is not counted with what routes answer.
  const refusing = new Lifecycle({ ...options, metrics: noMetrics });
  const app = new Hono<Env>({ strict: false });
  const serve = (route: Route) => (context: HonoContext<Env>) => answerOf(lifecycle, route, context);
  for (const route of routes) app.on(route.method, route.path, serve(route));
  const nothing = nothingHere(app);
  if (cors?.hasAny)
    for (const [path, ways] of Map.groupBy(routes, (route) => route.path))
      app.on('OPTIONS', path, serve(noRoute(cors.preflights(nothing, supportedBy(ways)))));
  app.notFound(serve(noRoute(cors?.preflights(nothing) ?? nothing)));
  app.onError((error, context) => {
    const failing = noRoute(async () => {
      throw error;
    });
    return serve(failing)(context);
  });
  const hits = new Map(routes.filter(({ hit }) => hit).map((route) => [route.path, route]));
  return Object.assign(app, {
    enter: (inbound: Inbound) => enter(lifecycle, { app, hits }, inbound),
    refuse(inbound: Inbound, error: GatewayError, isLogged = false) {
      const context = refusing.begin(inbound, noRoute(nothing));
      context.isStream = isLogged; // so the line is not written here
      return refusing.fail(context, error);
    },
  });
}

function answerOf(lifecycle: Lifecycle, route: Route, context: HonoContext<Env>): Response | Promise<Response> {
  const { env, req } = context;
  const { inbound = new WebInbound(req.raw, env), begun, send = responseOf } = env ?? {};
  const isBegun = begun?.route === route;
  const own = isBegun ? begun : lifecycle.begin(inbound, route, Object.values(req.param())[0]);
  const hit = isBegun ? undefined : lifecycle.hit(own);
  return hit ? send(hit) : lifecycle.answer(own, send);
}

/** Finds the route with Hono's own router, and treats a trailing slash as Hono does. */
function enter(
  lifecycle: Lifecycle,
  { app, hits }: { app: Hono<Env>; hits: ReadonlyMap<string, Route> },
  inbound: Inbound,
): Entered | undefined {
  const [[matched], stash] = app.router.match('GET', withoutSlash(inbound.path));
  const route = matched && hits.get(matched[0][1].path);
  if (!matched || !route) return undefined;
  const params: Readonly<Record<string, string | number>> = matched[1];
  const [at] = Object.values(params);
  const begun = lifecycle.begin(inbound, route, typeof at === 'number' ? stash?.[at] : at);
  return { begun, answer: lifecycle.hit(begun) };
}

const withoutSlash = (path: string) => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path);

const noRoute = (handle: Route['handle']): Route => ({ method: 'OPTIONS', path: '*', name: '(none)', handle });

function supportedBy(ways: readonly Route[]): Supported {
  const headers = ways.flatMap(({ takes = [] }) => takes);
  return { methods: allowHeader(ways.map(({ method }) => method)), headers: [...new Set(headers)] };
}

const METHODS = ['GET', 'POST', 'PATCH', 'DELETE'] as const;
const KNOWN_METHODS = new Set<string>([...METHODS, 'HEAD', 'PUT', 'OPTIONS']);

/** Answers what no route matches: the path is unknown, or known with other methods only. */
function nothingHere(app: Hono<Env>): Route['handle'] {
  return async ({ inbound: { path, method } }) => {
    const allowed = METHODS.filter((one) => app.router.match(one, withoutSlash(path))[0].length > 0);
    if (allowed.length > 0) throw GatewayError.of('method_not_allowed', { headers: { Allow: allowHeader(allowed) } });
    throw GatewayError.of(KNOWN_METHODS.has(method) ? 'unknown_endpoint' : 'method_not_implemented');
  };
}

/** HEAD is allowed wherever GET is. */
function allowHeader(allowed: readonly string[]): string {
  return allowed.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
}
