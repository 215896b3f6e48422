import { type Context, type Handler, Hono, type MiddlewareHandler } from 'hono';
import { GatewayError } from './core/errors.ts';
import { noMetrics } from './core/metrics.ts';
import type { RouteFacts } from './core/request.ts';
import { whenDone, type MakeOpener } from './core/runtime.ts';
import { Gateway } from './gateway/gateway.ts';
import { overviewsIn } from './gateway/overview.ts';
import { endRequest } from './http/access-log.ts';
import { beginRequest } from './http/begin.ts';
import { limitBody } from './http/body.ts';
import { callsOf, type HostEnv } from './http/calls.ts';
import { Cors } from './http/cors.ts';
import { type Answer, problem, refuser, reply } from './http/reply.ts';
import type { Env, HonoRequest, HttpDeps } from './http/request.ts';
import { Sessions } from './http/session.ts';
import { batchRoute } from './routes/batch.ts';
import { type DocsAssets, docsRoutes, type TrialAccount } from './routes/docs.ts';
import { documentRoute } from './routes/document.ts';
import { healthRoutes, metricsRoute, type Readiness, type Scrape } from './routes/health.ts';
import { mcpRoute } from './routes/mcp.ts';
import { outcomeRoute } from './routes/outcome.ts';
import { overviewRoutes } from './routes/overviews.ts';
import { passthroughRoutes } from './routes/passthrough.ts';
import { problemsRoutes } from './routes/problems.ts';
import type { Route } from './routes/route.ts';
import { sessionRoutes } from './routes/session.ts';
import { fixedFirst } from './upstream/table.ts';

/** What a runtime gives; `entry/` builds it. */
export interface Deps extends Omit<HttpDeps, 'cors' | 'limitBody'> {
  readonly readiness: Readiness;
  readonly docsAssets: DocsAssets;
  /** Absent where only WebCrypto can open what is sealed. */
  readonly makeOpener?: MakeOpener;
  /** Accounts of the sandbox, for the documentation page; undefined with a real upstream. */
  readonly trialAccounts?: readonly TrialAccount[] | undefined;
}

/**
 * The gateway: what every client sees, on any runtime, and the middleware behind which handlers of a host's reach the
 * upstream. The app may be mounted in another one.
 * @throws TypeError in words for an overview that cannot be
 */
export function createParts(given: Deps): { readonly app: Hono<Env>; readonly request: MiddlewareHandler<HostEnv> } {
  const { config, table } = given;
  const deps = { ...given, overviews: overviewsIn(table, given.overviews) };
  const gateway = new Gateway(deps);
  const sessions = config.sessions
    ? new Sessions({ ...deps, isLiving: (request, session) => gateway.sessions.isLiving(request, session) })
    : undefined;
  const reads = [...passthroughRoutes(gateway, table), ...overviewRoutes(gateway)];
  const routes = [
    ...reads,
    ...(config.mcp ? [mcpRoute(gateway, reads)] : []),
    batchRoute(gateway),
    outcomeRoute(gateway),
    ...(sessions ? sessionRoutes(gateway, table, sessions) : []),
    ...problemsRoutes(table),
    documentRoute(deps),
    ...docsRoutes(deps.docsAssets, deps.trialAccounts),
    ...healthRoutes(deps.readiness),
  ];
  deps.metrics.expect(
    routes.flatMap(({ operation, isProbe }) => (operation === undefined || isProbe ? [] : operation)),
  );
  const tools = { ...deps, cors: new Cors(config), sessions, limitBody: limitBody(config.maxBodyBytes) };
  return { app: mount(routes, tools, ['/api/*', '/bff/*']), request: callsOf({ ...tools, gateway }) };
}

/** How a server refuses what it does not hand to the app. Not counted with what routes answer, and in no trace. */
export const createRefuser = (deps: Deps) =>
  refuser({ ...deps, metrics: noMetrics, tracing: undefined, cors: new Cors(deps.config) });

/**
 * The app of the admin listener, with what a runtime adds to it. Its requests, probes and scrapes, are not counted in
 * metrics, and in no trace; what clients are slow to take is no reason to refuse them.
 */
export function createAdminApp(deps: Deps, scrape: Scrape, more: readonly Route[]): Hono<Env> {
  const routes = [...healthRoutes(deps.readiness), metricsRoute(scrape), ...more];
  return mount(routes, {
    ...deps,
    metrics: noMetrics,
    tracing: undefined,
    recorder: undefined,
  });
}

interface MountDeps extends HttpDeps {
  readonly cors?: Cors;
  readonly sessions?: Sessions | undefined;
}

/**
 * One handler matches a request. With a second one Hono would compose the two, at the price of six promises. So the answers
 * to other methods and unknown paths are in a second app, `others`. There is no middleware before all routes: `route()`
 * would copy it to the app of a host.
 * @param ownPrefixes patterns below which an unknown path is ours too where the app is mounted
 */
function mount(routes: readonly Route[], deps: MountDeps, ownPrefixes: string[] = []) {
  const app = new Hono<Env>().onError(problem);
  const others = new Hono<Env>().onError(problem);
  const notFound = handlerOf({ name: NOWHERE, handle: unknown }, deps);
  addRoutes(app, others, routes, deps);
  others.on(ALL, ownPrefixes, notFound);
  app.routes = [...app.routes, ...others.routes]; // what `route()` copies; the app itself answers by its router
  others.all('*', notFound);
  return app.notFound((c) => others.fetch(c.req.raw, c.env));
}

/** Adds the routes to `app`, and to `others` what other methods of their paths get. */
function addRoutes(app: Hono<Env>, others: Hono<Env>, routes: readonly Route[], deps: MountDeps): void {
  const routesByPath = Map.groupBy(routes, (route) => route.path);
  for (const [path, there] of [...routesByPath].toSorted(([a], [b]) => fixedFirst(a, b))) {
    checkMethods(path, there);
    const paths = path === '/' ? [path] : [path, `${path}/`]; // a strict app that this one is mounted in tells them apart
    for (const route of there) app.on(route.method, paths, handlerOf(route, deps));
    const allowed = there.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
    others.on(ALL, paths, handlerOf({ name: NOWHERE, handle: notAllowed(allowed) }, deps));
  }
}

/** @throws TypeError if a row or an overview is where another one or a page of ours is */
function checkMethods(path: string, routes: readonly Route[]): void {
  if (new Set(routes.map(({ method }) => method)).size === routes.length) return;
  const names = routes.map(({ operation, name }) => `\`${operation ?? name}\``);
  throw new TypeError(`several calls are at the same method of ${path}, of ${names.join(' and ')}`);
}

type Handled = RouteFacts & Pick<Route, 'handle'> & Partial<Route>;

/**
 * A route with all that stands before it and after it, as one handler of Hono's: for each further one it would make three
 * promises, and an answer from the cache needs none.
 */
function handlerOf(route: Handled, deps: MountDeps): Handler<Env> {
  const { cors } = deps;
  const sessions = route.takesCredential ? deps.sessions : undefined;
  return (c: Context<Env, string>) => {
    const request = beginRequest(c, route, deps);
    const preflight = cors?.preflight(request);
    if (preflight) return ended(request, reply(c, request, preflight));
    if (!sessions) return whenDone(route.handle(request), (answer) => ended(request, reply(c, request, answer)));
    const renewed = (answer: Answer) =>
      whenDone(sessions.renew(request, reply(c, request, answer)), (response) => ended(request, response));
    return whenDone(sessions.enter(request), () => whenDone(route.handle(request), renewed));
  };
}

/** What throws is ended by `problem`. */
function ended(request: HonoRequest, response: Response): Response {
  endRequest(request, response.status);
  return response;
}

/** Hono's name for any method. */
const ALL = 'ALL';

const NOWHERE = '(none)';

export const KNOWN_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'PUT', 'OPTIONS']);

const unknown: Route['handle'] = ({ method }) => {
  throw GatewayError.of(KNOWN_METHODS.has(method) ? 'unknown_endpoint' : 'method_not_implemented');
};

const notAllowed = (allowed: string) => (): never => {
  throw GatewayError.of('method_not_allowed', { headers: { Allow: allowed } });
};
