import type { RouteFacts } from '../core/request.ts';
import type { MaybePromise } from '../core/runtime.ts';
import type { Answer } from '../http/reply.ts';
import { type HonoRequest, routeParam } from '../http/request.ts';
import { type Form, type Params, sourceOf } from '../upstream/path.ts';
import type { Method } from '../upstream/operation.ts';
import type { Description } from './openapi.ts';

/** A path and method of ours. */
export interface Route extends RouteFacts {
  readonly method: Method;
  /** Hono's pattern, without a slash at its end. */
  readonly path: string;
  /** Its requests need a credential, which a session's cookie may have. */
  readonly takesCredential?: true;
  readonly handle: (request: HonoRequest) => MaybePromise<Answer>;
}

/** A GET whose path has no parameters. */
export const pageAt = (path: string, handle: Route['handle']): Route => ({
  method: 'GET',
  path,
  name: path,
  mayBeCompressed: true,
  handle,
});

/** The route of a description. `forms`: of each parameter that has one. */
export const routeOf = (
  { method, path, operationId, security }: Description,
  rest: Pick<Route, 'handle'> & Partial<Route>,
  forms: Params = {},
): Route => ({
  method: method.toUpperCase() as Route['method'],
  path: path.replaceAll(/\{(\w+)\}/g, (_, of: string) => `:${routeParam(of)}${formIn(forms[of])}`).replace(/\/$/, ''),
  name: path,
  operation: operationId,
  mayBeCompressed: true,
  ...(security === undefined && { takesCredential: true }),
  ...rest,
});

const formIn = (form: Form | undefined) => (form === undefined ? '' : `{${sourceOf(form)}}`);

/** Describes a GET that tells of the gateway itself. It takes no credential. */
export const about = (
  path: string,
  operationId: string,
  summary: string,
  details: Description['details'],
): Description => ({ method: 'get', path, operationId, tags: ['About'], summary, security: [], details });
