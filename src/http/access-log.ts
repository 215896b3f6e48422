import type { StatusClass } from '../core/metrics.ts';
import { whenDone } from '../core/runtime.ts';
import { legsOf, ownMsOf, waitsIn } from '../core/timeline.ts';
import type { HonoRequest, HttpDeps } from './request.ts';

/** Not in any RFC, but the usual status for a client that has left. It is only logged. */
export const CLIENT_LEFT = 499;

/** The code of a request whose connection is gone: its client has left, or the process ends and did not wait longer. */
export const leftCode = ({ tools }: HonoRequest): string => (tools.isCuttingOff?.() ? 'cut_off' : 'client_left');

/** Ends a request, or lets its stream end it: what it holds is given back, it gets its line in the log, and is counted. */
export function endRequest(request: HonoRequest, status: number): void {
  if (request.isStream && !request.isEnded) {
    request.onEnd = () => record(request, status);
    return;
  }
  request.end();
  record(request, status);
}

function record(request: HonoRequest, status: number): void {
  const { route, cache, begunAt, phases, tools } = request;
  if (route.isProbe && !isClientsFault(status)) return;
  const { clock, digest, metrics, recorder } = tools;
  const endedAt = clock.now();
  request.span?.end(status, endedAt);
  if (isLogged(tools, status)) {
    const client = digest.address(request.address);
    const logged = whenDone(client, (known) => log(request, { status, endedAt, client: known }));
    if (logged instanceof Promise) request.waitUntil(logged);
  }
  const { operation = NONE } = route;
  const ms = endedAt - begunAt;
  metrics.requestDone({ operation, status: classOf(status), cache: cache ?? NONE }, ms);
  recorder?.answered(request, status, endedAt);
  if (!phases) return;
  const waits = waitsIn(phases);
  for (const { phase, start, end = endedAt } of waits) metrics.phaseDone(phase, end - start);
  if (waits.length > 0) metrics.phaseDone('own', ownMsOf(waits, begunAt, endedAt));
}

/** A path that only looks like a probe's, or a page that may not see the console. */
const isClientsFault = (status: number) => status >= 400 && status < 500;

interface Ended {
  readonly status: number;
  readonly endedAt: number;
  readonly client: string;
}

function log(request: HonoRequest, { status, endedAt, client }: Ended): void {
  const { requestId, trace, method, route, account, cache, upstreamCalls, upstreamMs, code, tools } = request;
  const { reason, outcome, failed, stale, startedAt, begunAt } = request;
  tools.logger.request({
    request_id: requestId,
    trace_id: trace.traceId,
    method,
    route: route.name,
    status,
    duration_ms: rounded(endedAt - startedAt),
    operation: route.operation,
    account,
    cache,
    upstream_calls: upstreamCalls,
    upstream_ms: rounded(upstreamMs),
    client,
    code,
    reason,
    outcome,
    failed,
    stale,
    legs: endedAt - begunAt >= tools.config.slowMs ? legFields(request, endedAt) : undefined,
  });
}

/** Whether a request with this status has a line. */
const isLogged = ({ config: { logRequests }, random }: HttpDeps, status: number): boolean =>
  status >= logRequests.from || (logRequests.share > 0 && random() < logRequests.share);

function legFields({ route, phases = [], begunAt: startedAt }: HonoRequest, endedAt: number) {
  const legs = legsOf(phases, { name: route.operation ?? route.name, startedAt, endedAt });
  return legs.map(({ name, ms, phases: sums, reason }) => {
    const told = Array.from(sums, ([phase, sum]) => [phase, rounded(sum)] as const).filter(([, sum]) => sum > 0);
    const fields = { leg: name, ms: rounded(ms), phases: Object.fromEntries<number>(told) };
    return reason ? { ...fields, reason } : fields;
  });
}

const NONE = '(none)';

const classOf = (status: number) => `${Math.trunc(status / 100)}xx` as StatusClass;

const rounded = (ms: number) => Math.round(ms * 10) / 10;
