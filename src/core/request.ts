import { Abortable } from './abortable.ts';
import { ClientLeft, GatewayError, type Reason } from './errors.ts';
import { cacheModeOf, credentialOf, requestIdOf, traceOf } from './headers.ts';
import { encoded, originOf } from './http-url.ts';
import type { Clock, WaitUntil } from './runtime.ts';
import { Phase, type RequestSpan, type Trace } from './timeline.ts';

/** The head of a request. */
export interface Head {
  readonly method: string;
  /** Absolute. Its path and query are as the client wrote them. */
  readonly url: string;
  /** `name` in lower case. Repeated headers are joined with a comma and a space, cookies with a semicolon. */
  header(name: string): string | undefined;
}

/** What is known of a request by the route that it came to. */
export interface RouteFacts {
  /** Name in logs. */
  readonly name: string;
  /** Name in logs and metrics. */
  readonly operation?: string | undefined;
  /** False where a secret may stand beside words of the client: their length together would tell of the secret (BREACH). */
  readonly mayBeCompressed?: boolean;
  /** It tells of sessions, or begins or ends one; its handler reads the cookie. */
  readonly isSession?: true;
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

/** How many requests are allowed in a window. `by`: the name that clients see. */
export interface Quota {
  readonly by: 'account' | 'address';
  readonly name: string;
  readonly lengthMs: number;
  readonly limit: number;
}

/** Where spans come from: OpenTelemetry on Node. Workers have the platform's. */
export interface Tracing {
  /**
   * Asks the sampler, which is done once, when a request begins. Gives the trace that it is in from then on, and its span if
   * it is sampled; undefined where nobody wants traces.
   */
  begin(request: ClientRequest): { readonly trace: Trace; readonly span: RequestSpan | undefined } | undefined;
}

/** What requests need of the gateway that they came to, and of its runtime. Made once. */
export interface RequestTools {
  readonly config: { readonly publicUrl?: string | undefined; readonly requestTimeoutMs: number };
  readonly clock: Clock;
  /** Absent where the platform traces, or what is served is not of interest. */
  readonly tracing?: Tracing | undefined;
  /** Tells clients apart, for limits on requests without a credential. `header` reads one of the request. */
  readonly addressOf: (env: object, header: Head['header']) => string;
  /** The scheme by which the client came, where it is known to be another than that of the URL. Absent where the URL always has it. */
  readonly schemeOf?: ((env: object, header: Head['header']) => string | undefined) | undefined;
  /** Gives back the room that a request takes, since it only waits. Absent where the platform counts them. */
  readonly leaveRoom?: ((env: object) => void) | undefined;
}

const PRINTABLE = /^[\x20-\x7e]{1,256}$/;

/**
 * What a client asks, for all code that works on it, and what its line in the log will say. What not every request needs is
 * read from its head on first use. Instants are in milliseconds of the process's clock.
 */
export abstract class ClientRequest {
  readonly head: Head;
  readonly route: RouteFacts;
  readonly tools: RequestTools;
  /** As the client wrote them, without the question mark. */
  readonly path: string;
  readonly query: string;
  readonly requestId: string;
  /** `no-cache`: a fresh copy, which is stored. `no-store`: neither answered from the cache nor put in it. */
  cacheMode: 'any' | 'no-cache' | 'no-store';
  readonly startedAt: number;
  /** When the reading began that answers it. It is not the first where it has waited for a change. */
  begunAt: number;
  /** The span of the request, where it is sampled. */
  readonly span: RequestSpan | undefined;
  /** Keyed hash of the credential, once it is known. */
  account: string | undefined;
  /** Owner whose share of the bounded resources the request takes; set once it is known. */
  owner: string | undefined;
  /** The limit that it was counted in; absent if none applies. */
  limitUse: { readonly quota: Quota; readonly use: { readonly used: number; readonly endsAt: number } } | undefined;
  /** Set if it came by cookie, and that could be opened. */
  session: Session | undefined;
  /** Upstream calls made for it so far, and their time in milliseconds. */
  upstreamCalls = 0;
  upstreamMs = 0;
  /** For the log: how the cache handled the request, and the code of the problem that it got. */
  cache: string | undefined;
  code: string | undefined;
  /** Why the upstream failed it last. */
  reason: Reason | undefined;
  outcome: 'unknown' | undefined;
  /** Sections that failed, those that were stale, and those that a fresh copy answered where others were waited for. */
  failed: string[] | undefined;
  stale: string[] | undefined;
  fresh: string[] | undefined;
  /** What it has waited for, in the order in which that began. Undefined until the first one: an answer from the cache has none. */
  phases: Phase[] | undefined;
  isEnded = false;
  readonly #env: object;
  readonly #hasOwnId: boolean;
  #hasLeftRoom = false;
  #trace: Trace | undefined;
  #credential: string | undefined;
  #address: string | undefined;
  #abortable: Abortable | undefined;
  /** Stops the timer, and listening for the client to leave. */
  #stop: (() => void) | undefined;

  /** `env`: what the runtime knows of the connection. */
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

  /** The path that the app is mounted under, as the client wrote it. */
  abstract readonly mounted: string;
  /** Whether the client has gone away. */
  abstract readonly hasLeft: boolean;
  /** Keeps work alive that outlives the request. */
  abstract readonly waitUntil: WaitUntil;
  /** Runs it when the client leaves. Returns what prevents that. */
  abstract onLeft(run: () => void): () => void;

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

  /** What paths of the gateway begin with: empty where it stands alone. */
  get mount(): string {
    const { publicUrl } = this.tools.config;
    return publicUrl === undefined ? encoded(this.mounted) : publicUrl.slice(originOf(publicUrl).length);
  }

  /** What links begin with: scheme, host and mount path. */
  get origin(): string {
    return this.tools.config.publicUrl ?? encoded(this.hostOrigin + this.mounted);
  }

  /** When `REQUEST_TIMEOUT_MS` is over. */
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
    const stopTimer = clock.after(Math.max(0, this.endsAt - clock.now()), expire);
    const stay = this.onLeft(() => abortable.abort(new ClientLeft()));
    this.#stop = () => {
      stopTimer();
      stay();
    };
    return abortable;
  }

  /** Writes down that it begins to wait for something, or that a part of it does, its leg. Whoever calls sets the end. */
  beginPhase(phase: Phase['phase'], leg?: string, start = this.tools.clock.now()): Phase {
    const begun = new Phase(phase, start, leg);
    (this.phases ??= []).push(begun);
    return begun;
  }

  /** Waits for something, with a phase that is as long. */
  async during<T>(phase: Phase['phase'], work: Promise<T>, leg?: string): Promise<T> {
    const begun = this.beginPhase(phase, leg);
    try {
      return await work;
    } finally {
      begun.end = this.tools.clock.now();
    }
  }

  /** Waits: what it holds is given back meanwhile, and the reading that follows has its own time. */
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

  end(): void {
    this.isEnded = true;
    this.#stop?.();
    this.#stop = undefined;
  }
}
