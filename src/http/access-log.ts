import type { StatusClass } from '../core/metrics.ts';
import { whenDone } from '../core/runtime.ts';
import { legsOf, ownMsOf, waitsIn } from '../core/timeline.ts';
import type { HonoRequest } from './request.ts';

/** Not in any RFC, but the usual status for a client that has left. It is only logged. */
export const CLIENT_LEFT = 499;

/** The code of a request whose connection is gone: the client has left, or the ending process has cut it off. */
export const leftCode = ({ tools }: HonoRequest): string => (tools.isCuttingOff?.() ? 'cut_off' : 'client_left');

/** Ends a request, logs it and counts it. A stream that is still written does so when it ends. */
export function endRequest(request: HonoRequest, status: number): void {
  if (request.isStream && !request.isEnded) {
    request.onEnd = () => record(request, status);
    return;
  }
  request.end();
  record(request, status);
}

function record(request: HonoRequest, status: number): void {
  const { route, cache = NONE, begunAt, phases, tools } = request;
  const { clock, digest, metrics, recorder, config, random } = tools;
  if (route.isProbe && (status < 400 || status >= 500)) return; // a probe; a 4xx is logged, since the path only looks like a probe's
  const endedAt = clock.now();
  request.span?.end(status, endedAt);
  if (request.isEnvelope) return;
  const { from, share } = config.logRequests;
  if (status >= from || (share > 0 && random() < share)) {
    const logged = whenDone(digest.address(request.address), (client) => log(request, { status, endedAt, client }));
    if (logged instanceof Promise) request.waitUntil(logged);
  }
  const statusClass = `${Math.trunc(status / 100)}xx` as StatusClass;
  metrics.requestDone({ operation: route.operation ?? NONE, status: statusClass, cache }, endedAt - begunAt);
  recorder?.answered(request, status, endedAt);
  if (!phases) return;
  const waits = waitsIn(phases);
  for (const { phase, start, end = endedAt } of waits) metrics.phaseDone(phase, end - start);
  if (waits.length > 0) metrics.phaseDone('own', ownMsOf(waits, begunAt, endedAt));
}

interface Ended {
  readonly status: number;
  readonly endedAt: number;
  readonly client: string;
}

function log(request: HonoRequest, { status, endedAt, client }: Ended): void {
  const { route, startedAt, begunAt, tools } = request;
  tools.logger.request({
    request_id: request.requestId,
    trace_id: request.trace.traceId,
    method: request.method,
    route: route.name,
    status,
    duration_ms: rounded(endedAt - startedAt),
    operation: route.operation,
    via: route.via,
    account: request.account,
    cache: request.cache,
    upstream_calls: request.upstreamCalls,
    upstream_ms: rounded(request.upstreamMs),
    client,
    code: request.code,
    reason: request.reason,
    outcome: request.outcome,
    failed: request.failed,
    stale: request.stale,
    legs: endedAt - begunAt >= tools.config.slowMs ? legFields(request, endedAt) : undefined,
  });
}

function legFields({ route, phases = [], begunAt: startedAt }: HonoRequest, endedAt: number) {
  const legs = legsOf(phases, { name: route.operation ?? route.name, startedAt, endedAt });
  return legs.map(({ name, ms, phases: sums, reason }) => {
    const shown = Array.from(sums, ([phase, sum]) => [phase, rounded(sum)] as const).filter(([, sum]) => sum > 0);
    const fields = { leg: name, ms: rounded(ms), phases: Object.fromEntries<number>(shown) };
    return reason ? { ...fields, reason } : fields;
  });
}

const NONE = '(none)';

const rounded = (ms: number) => Math.round(ms * 10) / 10;
