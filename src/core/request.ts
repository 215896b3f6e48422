import { Abortable } from './abortable.ts';
import { ClientLeft, GatewayError, type Reason } from './errors.ts';
import { cacheModeOf, credentialOf, requestIdOf, traceOf } from './headers.ts';
import { encoded, originOf } from './http-url.ts';
import type { Clock, MaybePromise, WaitUntil } from './runtime.ts';
import { Phase, type RequestSpan, type Trace } from './timeline.ts';

/** The head of a request. */
export interface Head {
  readonly method: string;
  /** Absolute. Its path and query are as the client wrote them. */
  readonly url: string;
  /** `name` in lower case. Repeated headers are joined with a comma and a space, cookies with a semicolon. */
  header(name: string): string | undefined;
}

/** What a route tells of the requests that come to it. */
export interface RouteFacts {
  /** Name in logs. */
  readonly name: string;
  /** Name in logs and metrics. */
  readonly operation?: string | undefined;
  /** False where a secret may stand beside words of the client: their length together would tell of the secret (BREACH). */
  readonly mayBeCompressed?: boolean;
  /** A session call: its handler reads the cookie itself. */
  readonly isSession?: true;
  /** The scheme of `WWW-Authenticate`; by default `Token`. */
  readonly challenge?: 'Bearer';
  /** For the log: the protocol that the request came by, where that is not HTTP alone. */
  readonly via?: 'mcp';
  /** Neither logged nor counted, unless it is refused with a 4xx. */
  readonly isProbe?: true;
}

/** What a session's cookie holds. Instants in seconds since 1970. */
export interface Session {
  readonly id: string;
  /** When it began, or later: the account's epoch. */
  readonly epoch: number;
  readonly token: string;
  readonly begunAt: number;
  readonly expiresAt: number;
}

/** A rate limit: `limit` requests in a window of `lengthMs`. Clients see `by`; the store counts under `name`. */
export interface Quota {
  readonly by: 'account' | 'address';
  readonly name: string;
  readonly lengthMs: number;
  readonly limit: number;
}

/** Where spans come from: OpenTelemetry on Node. Workers have the platform's. */
export interface Tracing {
  /**
   * Asks the sampler. Called once, when a request begins. Returns the request's trace, and its span if it is sampled;
   * undefined where tracing is off.
   */
  begin(request: ClientRequest): { readonly trace: Trace; readonly span: RequestSpan | undefined } | undefined;
}

/** What a request needs of its gateway and runtime. Made once for all requests. */
export interface RequestTools {
  readonly config: { readonly publicUrl?: string | undefined; readonly requestTimeoutMs: number };
  readonly clock: Clock;
  /** Absent where the platform traces, and for the admin listener. */
  readonly tracing?: Tracing | undefined;
  /** The client's address, for limits on requests without a credential. `header` reads a header of the request. */
  readonly addressOf: (env: object, header: Head['header']) => string;
  /** The scheme that the client used, where a trusted proxy says that it is not the URL's. Absent without such proxies. */
  readonly schemeOf?: ((env: object, header: Head['header']) => string | undefined) | undefined;
  /** Stops counting a request as under way, since it only waits. Absent where the platform counts requests. */
  readonly leaveRoom?: ((env: object) => void) | undefined;
}

const PRINTABLE = /^[\x20-\x7e]{1,256}$/;

/**
 * One request of a client: what it asks, and what its log line will say. Getters read from the head on first use what not
 * every request needs. Instants are in milliseconds of the process's clock.
 */
export abstract class ClientRequest {
  readonly head: Head;
  readonly route: RouteFacts;
  readonly tools: RequestTools;
  /** Path, and query without the question mark, both as the client wrote them. */
  readonly path: string;
  readonly query: string;
  readonly requestId: string;
  /** `no-cache`: the upstream is asked, and its answer stored. `no-store`: the cache is neither read nor written. */
  cacheMode: 'any' | 'no-cache' | 'no-store';
  readonly startedAt: number;
  /** When its last reading began: later than `startedAt` for a request that has waited for a change. */
  begunAt: number;
  /** Undefined where the request is not sampled. */
  readonly span: RequestSpan | undefined;
  /** Keyed hash of the credential; set by `accountOf`. */
  account: string | undefined;
  /** Whose share of the bounded resources the request takes; set when it is admitted. */
  owner: string | undefined;
  /** The rate limit that counted it, and how far that is used. Undefined without one. */
  limitUse: { readonly quota: Quota; readonly use: { readonly used: number; readonly endsAt: number } } | undefined;
  /** The session of its cookie, once opened. */
  session: Session | undefined;
  /** Attempts at the upstream so far, and their time in milliseconds. */
  upstreamCalls = 0;
  upstreamMs = 0;
  /** For the log: how the cache handled the request, and the code of its problem. */
  cache: string | undefined;
  code: string | undefined;
  /** Why the last failed attempt at the upstream failed. */
  reason: Reason | undefined;
  outcome: 'unknown' | undefined;
  /** Names of sections: failed, stale, and answered from a fresh copy while others were waited for. */
  failed: string[] | undefined;
  stale: string[] | undefined;
  fresh: string[] | undefined;
  /** What it has waited for, in order of the beginnings. Undefined until the first: an answer from the cache has none. */
  phases: Phase[] | undefined;
  isEnded = false;
  readonly #env: object;
  readonly #hasOwnId: boolean;
  #hasLeftRoom = false;
  #trace: Trace | undefined;
  #credential: string | undefined;
  #address: string | undefined;
  #abortable: Abortable | undefined;
  /** Whether the client has left. Undefined until somebody listens for that. */
  #clientLeft: boolean | undefined;
  #stopListening: (() => void) | undefined;
  /** Stops the timer of `abortable`. */
  #stop: (() => void) | undefined;

  /** `env`: the runtime's object for the connection, which only its own functions in `tools` read. */
  constructor(head: Head, route: RouteFacts, tools: RequestTools, env: object) {
    const { url } = head;
    const start = originOf(url).length;
    const mark = url.indexOf('?', start);
    const hash = url.indexOf('#', start);
    const end = hash < 0 ? url.length : hash;
    const hasQuery = mark >= 0 && mark < end;
    this.head = head;
    this.route = route;
    this.tools = tools;
    this.#env = env;
    this.path = url.slice(start, hasQuery ? mark : end);
    this.query = hasQuery ? url.slice(mark + 1, end) : '';
    this.startedAt = this.begunAt = tools.clock.now();
    this.cacheMode = cacheModeOf(head.header('cache-control'));
    const given = requestIdOf(head.header('x-request-id'));
    this.requestId = given ?? crypto.randomUUID();
    this.#hasOwnId = given === undefined;
    const traced = route.isProbe ? undefined : tools.tracing?.begin(this);
    this.span = traced?.span;
    if (traced) this.#trace = traced.trace;
  }

  /** The path that the app is mounted under in a host's app, as the client wrote it; empty where it stands alone. */
  abstract readonly mounted: string;
  /** Whether the client has gone away. */
  abstract readonly hasLeft: boolean;
  abstract readonly waitUntil: WaitUntil;
  /** Calls `run` when the client leaves, or at once if it has left. Returns a function that removes `run`, where that is needed. */
  abstract onLeft(run: () => void): (() => void) | undefined;

  get method(): string {
    return this.head.method;
  }

  header(name: string): string | undefined {
    return this.head.header(name);
  }

  /** Scheme and host that the client used. */
  get hostOrigin(): string {
    const origin = originOf(this.head.url);
    const scheme = this.tools.schemeOf?.(this.#env, (name) => this.header(name));
    return scheme === undefined ? origin : scheme + origin.slice(origin.indexOf(':'));
  }

  get trace(): Trace {
    if (this.#trace) return this.#trace;
    const uuid = this.#hasOwnId ? this.requestId : crypto.randomUUID();
    this.#trace = traceOf(this.header('traceparent'), this.header('tracestate'), uuid);
    return this.#trace;
  }

  /** The credential that came with it. @throws GatewayError `unauthenticated` */
  get credential(): string {
    return (this.#credential ??= this.session?.token ?? credentialOf(this.header('authorization')));
  }

  set credential(token: string) {
    this.#credential = token;
  }

  get userAgent(): string | undefined {
    const text = this.header('user-agent');
    return text !== undefined && PRINTABLE.test(text) ? text : undefined;
  }

  /** Only for a POST. */
  get idempotencyKey(): string | undefined {
    return this.method === 'POST' ? this.header('idempotency-key') : undefined;
  }

  /** The client's IP address. */
  get address(): string {
    return (this.#address ??= this.tools.addressOf(this.#env, (name) => this.header(name)));
  }

  /** What links of the gateway have before their path: the path of `PUBLIC_URL`, else `mounted`. */
  get mount(): string {
    const { publicUrl } = this.tools.config;
    return publicUrl === undefined ? encoded(this.mounted) : publicUrl.slice(originOf(publicUrl).length);
  }

  /** What absolute links begin with: scheme, host and `mount`. */
  get origin(): string {
    return this.tools.config.publicUrl ?? encoded(this.hostOrigin + this.mounted);
  }

  /** When its time, `REQUEST_TIMEOUT_MS`, is over. */
  get endsAt(): number {
    return this.begunAt + this.tools.config.requestTimeoutMs;
  }

  /** Aborted when the client leaves or the request's time is up. Made on first use: an answer from the cache never needs it. */
  get abortable(): Abortable {
    return (this.#abortable ??= this.#begin());
  }

  #begin(): Abortable {
    const { clock } = this.tools;
    const abortable = new Abortable();
    const expire = () => abortable.abort(GatewayError.of('upstream_timeout', { fault: 'timeout', reason: 'timeout' }));
    this.#stop = clock.after(Math.max(0, this.endsAt - clock.now()), expire);
    if (this.#clientLeft === undefined) {
      this.#clientLeft = false;
      this.#stopListening = this.onLeft(() => {
        this.#clientLeft = true;
        this.#abortable?.abort(new ClientLeft());
      });
    }
    if (this.#clientLeft) abortable.abort(new ClientLeft());
    return abortable;
  }

  /** Begins a phase of the request, or of one of its legs. The caller sets the phase's end. */
  beginPhase(phase: Phase['phase'], leg?: string, start = this.tools.clock.now()): Phase {
    const begun = new Phase(phase, start, leg);
    (this.phases ??= []).push(begun);
    return begun;
  }

  /** Returns `work`, with a phase that lasts until it is done. A value that is there already makes no phase. */
  during<T>(phase: Phase['phase'], work: MaybePromise<T>, leg?: string): MaybePromise<T> {
    if (!(work instanceof Promise)) return work;
    const begun = this.beginPhase(phase, leg);
    const end = () => void (begun.end = this.tools.clock.now());
    void work.then(end, end);
    return work;
  }

  /** Waits for a change. Meanwhile the request holds neither room nor timer; the reading that follows has its own time. */
  async whileWaiting(wait: () => Promise<void>): Promise<void> {
    const { clock, leaveRoom } = this.tools;
    if (!this.#hasLeftRoom) leaveRoom?.(this.#env);
    this.#hasLeftRoom = true;
    this.#stop?.();
    this.#stop = undefined;
    this.#abortable = this.phases = this.failed = this.stale = this.fresh = undefined;
    await wait();
    this.begunAt = clock.now();
  }

  /** Releases the timer, and the listener for the client. */
  end(): void {
    this.isEnded = true;
    this.#stop?.();
    this.#stop = undefined;
    this.#stopListening?.();
  }
}
