import type { Context } from 'hono';
import { GatewayError } from '../core/errors.ts';
import type { RouteFacts } from '../core/request.ts';
import { type Env, HonoRequest, type HttpDeps } from './request.ts';

/** Segments of unreserved characters, none of them `.` or `..`: no proxy can read such a path in another way. */
const PLAIN_PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]*)+$/;

/**
 * Gives a request its id, trace and deadline, as `c.get('porticoRequest')`. Hono's router decodes a path; one that has to be
 * decoded below where the app is mounted is not ours.
 * @throws GatewayError `unknown_endpoint`
 */
export function beginRequest(c: Context<Env>, route: RouteFacts, tools: HttpDeps): HonoRequest {
  const request = beginAt(c, route, tools);
  const { path } = request;
  if (!PLAIN_PATH.test(path) && !PLAIN_PATH.test(path.slice(request.mounted.length)))
    throw GatewayError.of('unknown_endpoint');
  return request;
}

/** As `beginRequest`, at a path of the host's, which may be any. */
export function beginAt(c: Context<Env>, route: RouteFacts, tools: HttpDeps): HonoRequest {
  c.env ??= {}; // `app.request()` gives none
  const request = new HonoRequest(c.req, route, tools, c);
  c.set('porticoRequest', request); // `problem` needs it
  return request;
}
