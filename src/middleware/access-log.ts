import type { StatusClass } from '../core/metrics.ts';
import type { ClientRequest } from './request.ts';

/** Not in any RFC, but the usual status for a client that has left. It is only logged. */
export const CLIENT_LEFT = 499;

/** Ends a request, or lets its stream end it: what it holds is given back, it gets its line in the log, and is counted. */
export function endRequest(request: ClientRequest, status: number): void {
  if (request.isStream && !request.isEnded) {
    request.onEnd = () => record(request, status);
    return;
  }
  request.end();
  record(request, status);
}

function record(request: ClientRequest, status: number): void {
  const { requestId, trace, method, route, account, cache, startedAt, upstreamCalls, upstreamMs, code, tools } =
    request;
  const ms = tools.clock.now() - startedAt;
  const auth = tools.config.sessions ? authOf(request) : undefined;
  if (auth) tools.metrics.authenticated(auth);
  tools.logger.request({
    request_id: requestId,
    trace_id: trace.traceId,
    method,
    route: route.name,
    status,
    duration_ms: rounded(ms),
    operation: route.operation,
    account,
    auth,
    cache,
    upstream_calls: upstreamCalls,
    upstream_ms: rounded(upstreamMs),
    code,
  });
  const { operation = NONE } = route;
  tools.metrics.requestDone({ operation, status: classOf(status), cache: cache ?? NONE }, ms);
}

const NONE = '(none)';

/** How the request was authenticated; undefined if it was not. */
function authOf({ account, session, route }: ClientRequest): 'header' | 'cookie' | undefined {
  if (session) return 'cookie';
  return account === undefined || route.isSession ? undefined : 'header';
}

const classOf = (status: number) => `${Math.trunc(status / 100)}xx` as StatusClass;

const rounded = (ms: number) => Math.round(ms * 10) / 10;
