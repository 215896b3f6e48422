import { GatewayError } from '../core/errors.ts';
import type { Inbound, Outbound } from '../core/inbound.ts';
import type { Logger } from '../core/logger.ts';
import type { Metrics, StatusClass } from '../core/metrics.ts';
import { secondsLeft } from '../store/store.ts';
import { ClientLeft, type RequestContext } from '../upstream/request-context.ts';
import { type Answer, NO_STORE, problemAnswer, SECURITY_HEADERS, tenths } from './answer.ts';
import { bytesOf } from './body.ts';
import { Context, type ContextTools } from './context.ts';
import type { Cors } from './cors.ts';
import type { Sessions } from './sessions.ts';

/** A path and method that a listener answers. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'OPTIONS';
  /** Hono's pattern. */
  readonly path: string;
  /** Its name in logs. */
  readonly name: string;
  /** Its operation in logs and metrics. */
  readonly operation?: string;
  /** Request headers that it reads, besides those that every route reads. */
  readonly takes?: readonly string[];
  /** It changes nothing, although it is no GET. */
  readonly isRead?: true;
  /** It tells of sessions, or begins or ends one; its handler reads the cookie. */
  readonly isSession?: true;
  /** Answers without waiting if it can. Called before `handle`. */
  readonly hit?: ((context: Context) => Answer | undefined) | undefined;
  readonly handle: (context: Context) => Promise<Answer>;
}

/** A GET whose path has no parameters. */
export const pageAt = (path: string, handle: Route['handle']): Route => ({ method: 'GET', path, name: path, handle });

export interface LifecycleOptions extends ContextTools {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly cors?: Cors | undefined;
  readonly sessions?: Sessions | undefined;
}

const UNREAD = 'Too many answers have not been read by their clients.';

/** Not in any RFC, but the usual status for a client that has left. It is only logged. */
const CLIENT_LEFT = 499;

/** Segments of unreserved characters, none of them `.` or `..`: no proxy can read such a path in another way. */
const PLAIN_PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]*)+$/;

/**
 * Turns requests into answers. Only here errors become problems, answers get their common headers, and each request its
 * log line.
 */
export class Lifecycle {
  readonly #options: LifecycleOptions;
  readonly #commonHeaders = Object.entries(SECURITY_HEADERS).flat();

  constructor(options: LifecycleOptions) {
    this.#options = options;
  }

  begin(inbound: Inbound, route: Route, param?: string): Context {
    return new Context(inbound, route, param, this.#options);
  }

  /** An answer that needs no waiting; undefined if there is none, and then nothing has been counted. */
  hit(context: Context): Outbound | undefined {
    const { inbound, route } = context;
    if (!route.hit || inbound.refused !== undefined || inbound.body !== null) return undefined;
    if (this.#options.sessions && mayComeByCookie(inbound)) return undefined; // opening it takes time
    try {
      checkHead(inbound);
      const answer = route.hit(context);
      return answer && this.#answered(context, answer);
    } catch (error) {
      return this.fail(context, error);
    }
  }

  /** Calls `send` in the same turn in which the answer is decided: what is unsent of it counts for the next one. */
  async answer<T>(context: Context, send: (answer: Outbound) => T): Promise<T> {
    const { inbound, route } = context;
    let outbound: Outbound;
    try {
      checkHead(inbound);
      const { sessions } = this.#options;
      if (sessions && !route.isSession && route.takes?.includes('Authorization')) await sessions.enter(context);
      if (isRead(inbound) && inbound.body !== null) await bytesOf(context); // not used, but it has to be valid
      const answer = await route.handle(context);
      this.#options.cors?.watch(context);
      const own = context.session && sessions ? await renewing(context, answer, sessions) : answer;
      outbound = this.#answered(context, own);
    } catch (error) {
      outbound = this.fail(context, error);
    }
    return send(outbound);
  }

  /** Of a handler. That of a write is always sent: it says what has happened. */
  #answered(context: Context, answer: Answer): Outbound {
    const { inbound, route, owner } = context;
    if ((route.method === 'GET' || route.isRead) && inbound.isBacklogged?.(owner)) {
      if (answer.body instanceof ReadableStream) void answer.body.cancel();
      this.#options.metrics.refused('unsent');
      throw GatewayError.of('overloaded', { retryAfter: 1, detail: UNREAD });
    }
    return this.#finish(context, answer);
  }

  /** The answer to a request that ends with an error. */
  fail(context: Context, error: unknown): Outbound {
    if (error instanceof ClientLeft) {
      return this.#finish(context, { status: CLIENT_LEFT, headers: NO_STORE, body: null }, 'client_left');
    }
    this.#options.cors?.watch(context);
    const known = error instanceof GatewayError ? error : GatewayError.of('internal_error', { cause: error });
    if (known.status === FAULT) this.#logFault(context, known.cause);
    const answer = problemAnswer(known, { instance: context.inbound.path, requestId: context.requestId });
    return this.#finish(context, answer, known.code);
  }

  /** A bug of ours. The client gets no details; the log gets the stack. */
  #logFault({ requestId, trace }: Context, thrown: unknown): void {
    const fault = thrown instanceof Error ? `${thrown.name} ${framesOf(thrown)}` : typeof thrown;
    this.#options.logger.error({ request_id: requestId, trace_id: trace.traceId, fault }, 'internal error');
  }

  #finish(context: Context, answer: Answer, code?: string): Outbound {
    const now = this.#options.clock.now();
    const { status, body, isAscii } = answer;
    if (context.isStream && !context.isEnded) {
      context.onEnd = () => this.#record(context, status, this.#options.clock.now(), code);
    } else {
      context.end();
      this.#record(context, status, now, code);
    }
    return { status, headers: this.#headersOf(context, answer, now), body, isAscii, owner: context.owner };
  }

  #headersOf({ requestId, counted, startedAt, inbound }: Context, { headers, timing }: Answer, now: number): string[] {
    const total = `total;dur=${tenths(now - startedAt)}`;
    const all = [...this.#commonHeaders, 'X-Request-Id', requestId];
    all.push('Server-Timing', timing ? `${timing}, ${total}` : total);
    if (counted) pushLimit(all, counted, now);
    const cors = this.#options.cors;
    const keyed = this.#options.sessions ? alsoByCookie(headers) : headers;
    const own = cors ? cors.added(keyed, inbound) : keyed;
    for (const name in own) {
      if (name === 'Content-Security-Policy') all[all.indexOf(name) + 1] = own[name] ?? '';
      else all.push(name, own[name] ?? '');
    }
    return all;
  }

  #record(context: Context, status: number, now: number, code: string | undefined): void {
    const { requestId, trace, inbound, route, account, cache, startedAt, upstreamCalls, upstreamMs } = context;
    const ms = now - startedAt;
    const auth = this.#options.sessions && authOf(context);
    if (auth) this.#options.metrics.authenticated(auth);
    this.#options.logger.request({
      request_id: requestId,
      trace_id: trace.traceId,
      method: inbound.method || undefined,
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
    this.#options.metrics.requestDone({ operation, status: classOf(status), cache: cache ?? NONE }, ms);
  }
}

const NONE = '(none)';
/** Every other 5xx has another status. */
const FAULT = 500;

/** How the request was authenticated; undefined if it was not. */
function authOf({ account, session, route }: Context): 'header' | 'cookie' | undefined {
  if (session) return 'cookie';
  return account === undefined || route.isSession ? undefined : 'header';
}

/** What depends on the credential depends on the cookie too. */
function alsoByCookie(headers: Answer['headers']): Answer['headers'] {
  const vary = headers['Vary'];
  return vary?.includes('Authorization') ? { ...headers, Vary: `${vary}, Cookie` } : headers;
}

const mayComeByCookie = (inbound: Inbound) =>
  inbound.header('authorization') === undefined && inbound.header('cookie') !== undefined;

/** A good answer that is no stream prolongs the session, at most once a day. */
async function renewing(context: Context, answer: Answer, sessions: Sessions): Promise<Answer> {
  const isGood = answer.status >= 200 && answer.status < 300 && !context.isStream && !context.route.isSession;
  const cookie = isGood && context.session ? await sessions.renewal(context, context.session) : undefined;
  return cookie === undefined ? answer : { ...answer, headers: { ...answer.headers, 'Set-Cookie': cookie } };
}

function checkHead({ refused, path }: Inbound): void {
  if (refused !== undefined) throw GatewayError.of(refused);
  if (!PLAIN_PATH.test(path)) throw GatewayError.of('unknown_endpoint');
}

const isRead = ({ method }: Inbound) => method === 'GET' || method === 'HEAD';

/** `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10). */
function pushLimit(headers: string[], { quota, use }: NonNullable<RequestContext['counted']>, now: number): void {
  const { name, window } = quota;
  const left = Math.max(0, window.limit - use.used);
  headers.push('RateLimit', `"${name}";r=${left};t=${secondsLeft(use, now)}`);
  headers.push('RateLimit-Policy', `"${name}";q=${window.limit};w=${window.lengthMs / 1000}`);
}

/** The stack without the message, which may quote input. */
const framesOf = ({ stack = '' }: Error) =>
  stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .slice(0, 5)
    .join('\n');

function classOf(status: number): StatusClass {
  if (status < 300) return '2xx';
  if (status < 400) return '3xx';
  return status < 500 ? '4xx' : '5xx';
}

const rounded = (ms: number) => Math.round(ms * 10) / 10;
