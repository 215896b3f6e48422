import type { Context } from 'hono';
import { GatewayError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Metrics, StatusClass } from '../core/metrics.ts';
import { PROBLEM_TYPE, problemOf } from '../core/problem.ts';
import type { MaybePromise } from '../core/runtime.ts';
import { ClientLeft } from '../upstream/caller.ts';
import { type Answer, NO_STORE, SECURITY_HEADERS } from './answer.ts';
import type { Env } from './bindings.ts';
import { bytesOf } from './body.ts';
import type { Cors } from './cors.ts';
import { Exchange, type ExchangeTools } from './exchange.ts';

export type Handler = (exchange: Exchange) => MaybePromise<Answer>;

export interface ConductorTools extends ExchangeTools {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly cors?: Cors | undefined;
}

/** What Hono mounts: a handler with everything that every request has in common round it. */
export type Conductor = (route: string, handler: Handler) => (context: Context<Env>) => MaybePromise<Response>;

/** Not in any RFC; the usual name of a request whose client has left. Only logs ever see it. */
const CLIENT_LEFT = 499;

/** Segments of unreserved characters, none of them `.` or `..`; nothing that any hop could read in two ways. */
const PLAIN_PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]*)+$/;

/**
 * The one way through which requests become answers: errors become problems here and nowhere else, every answer gets
 * its common headers here, and every request its one log line. Stays synchronous for a handler that is.
 */
export function conductor(tools: ConductorTools): Conductor {
  return (route, handler) => (context) => {
    const exchange = new Exchange(context, tools);
    const succeed = (answer: Answer) => respond(tools, exchange, { route, answer });
    const fail = (error: unknown) =>
      respond(tools, exchange, { route, answer: answerOfError(tools, exchange, error), error });
    try {
      checkHead(exchange);
      const answer = hasOddBody(exchange) ? bytesOf(exchange).then(() => handler(exchange)) : handler(exchange);
      return answer instanceof Promise ? answer.then(succeed).catch(fail) : succeed(answer);
    } catch (error) {
      return fail(error);
    }
  };
}

function checkHead({ context, path }: Exchange): void {
  const refused = context.env?.refused;
  if (refused !== undefined) throw GatewayError.of(refused);
  if (!PLAIN_PATH.test(path)) throw GatewayError.of('unknown_endpoint');
}

/** A read has no use for one, but is answered only once it is there: what is wrong with it comes too late otherwise. */
const hasOddBody = (exchange: Exchange) =>
  (exchange.request.method === 'GET' || exchange.request.method === 'HEAD') && exchange.body !== null;

interface Outcome {
  readonly route: string;
  readonly answer: Answer;
  readonly error?: unknown;
}

function respond(tools: ConductorTools, exchange: Exchange, { route, answer, error }: Outcome): Response {
  exchange.whenOver(() => {
    tools.logger.info(accessLine(exchange, { route, answer, error }), 'request');
    const { operation = '(none)', cache = '(none)' } = exchange.notes;
    tools.metrics.requestDone({ operation, status: classOf(answer.status), cache }, exchange.elapsedMs);
  });
  const total = `total;dur=${exchange.elapsedMs.toFixed(1)}`;
  const headers: Record<string, string> = {
    ...SECURITY_HEADERS,
    'X-Request-Id': exchange.requestId,
    'Server-Timing': answer.timing ? `${answer.timing}, ${total}` : total,
    ...exchange.limitHeaders,
    ...answer.headers,
  };
  tools.cors?.addTo(headers, exchange.header('origin'));
  return new Response(answer.body, { status: answer.status, headers });
}

function answerOfError(tools: ConductorTools, exchange: Exchange, thrown: unknown): Answer {
  if (thrown instanceof ClientLeft) return { status: CLIENT_LEFT, headers: NO_STORE, body: null };
  const error = thrown instanceof GatewayError ? thrown : faultOf(tools, exchange, thrown);
  return problemAnswer(error, { instance: exchange.path, requestId: exchange.requestId });
}

/** A bug of ours: the client learns only that, the log where. */
function faultOf({ logger }: ConductorTools, exchange: Exchange, thrown: unknown): GatewayError {
  const stack = thrown instanceof Error ? `${thrown.name} ${framesOf(thrown)}` : typeof thrown;
  logger.error({ request_id: exchange.requestId, trace_id: exchange.trace.traceId, fault: stack }, 'internal error');
  return GatewayError.of('internal_error');
}

/** Where it was thrown. The message stays out of the log: it may quote input. */
const framesOf = ({ stack = '' }: Error) =>
  stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .slice(0, 5)
    .join('\n');

export function problemAnswer(error: GatewayError, where: Parameters<typeof problemOf>[1]): Answer {
  const { retryAfter } = error;
  const { headers } = error.particulars;
  return {
    status: error.status,
    headers: {
      ...NO_STORE,
      'Content-Type': PROBLEM_TYPE,
      ...(retryAfter !== undefined && { 'Retry-After': String(retryAfter) }),
      ...headers,
    },
    body: JSON.stringify(problemOf(error, where)),
  };
}

function accessLine(
  { requestId, trace, tally, notes, elapsedMs, request }: Exchange,
  { route, answer, error }: Outcome,
) {
  return {
    request_id: requestId,
    trace_id: trace.traceId,
    method: request.method,
    route,
    status: answer.status,
    duration_ms: rounded(elapsedMs),
    ...notes,
    upstream_calls: tally.upstreamCalls,
    upstream_ms: rounded(tally.upstreamMs),
    ...(error !== undefined && { code: error instanceof GatewayError ? error.code : codeOfFault(error) }),
  };
}

function classOf(status: number): StatusClass {
  if (status < 300) return '2xx';
  if (status < 400) return '3xx';
  return status < 500 ? '4xx' : '5xx';
}

const codeOfFault = (error: unknown) => (error instanceof ClientLeft ? 'client_left' : 'internal_error');

const rounded = (ms: number) => Math.round(ms * 10) / 10;
