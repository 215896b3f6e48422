import type { Context } from 'hono';
import { GatewayError } from '../core/errors.ts';
import type { RouteFacts } from '../core/request.ts';
import { type Env, HonoRequest, type HttpDeps } from './request.ts';

/** Segments of unreserved characters, none of them `.` or `..`: no proxy can read such a path in another way. */
const PLAIN_PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]*)+$/;

/**
 * Makes the `HonoRequest` of a request, and sets it as `c.get('porticoRequest')`. Hono's router decodes paths. None of ours
 * needs decoding, so one that does, below where the app is mounted, is refused.
 * @throws GatewayError `unknown_endpoint`
 */
export function beginRequest(c: Context<Env>, route: RouteFacts, tools: HttpDeps): HonoRequest {
  const request = beginAt(c, route, tools);
  const { path } = request;
  if (!PLAIN_PATH.test(path) && !PLAIN_PATH.test(path.slice(request.mounted.length)))
    throw GatewayError.of('unknown_endpoint');
  return request;
}

/** As `beginRequest`, for a host's own route, whose path may be any. */
export function beginAt(c: Context<Env>, route: RouteFacts, tools: HttpDeps): HonoRequest {
  c.env ??= {}; // `app.request()` gives none
  const request = new HonoRequest(c.req, route, tools, c);
  c.set('porticoRequest', request); // for `problem`, which Hono calls with the context alone
  return request;
}
