import type { Context, Next } from 'hono';
import { basePath } from 'hono/route';
import type { Config } from '../config.ts';
import { Abortable } from '../core/abortable.ts';
import { ClientLeft, GatewayError, type Reason } from '../core/errors.ts';
import { encoded, originOf } from '../core/http-url.ts';
import type { Logger } from '../core/logger.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Recorder } from '../core/recorder.ts';
import type { Clock, Digest, WaitUntil } from '../core/runtime.ts';
import type { Phase, RequestSpan } from '../core/timeline.ts';
import type { Trace, TracedRequest, Tracing } from '../core/tracing.ts';
import type { AccountId, Owner, SessionId } from '../store/port.ts';
import type { RequestContext } from '../upstream/call.ts';
import type { Hooks } from '../upstream/hooks.ts';
import { invalid } from '../upstream/input.ts';
import { credentialOf, requestIdOf, traceOf, cacheModeOf } from './headers.ts';

/** The Hono environment of the app and of all that is mounted in it. Only a runtime's own code reads what that puts into `c.env`. */
export interface Env {
  Bindings: object;
  Variables: { porticoRequest: ClientRequest };
}

/** What is sent, and what decides whether it is compressed. */
export interface Sent {
  readonly status: number;
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
  /** What the body is made of, and may be kept with once it is compressed. */
  readonly copy?: object;
  /** A secret is in it: see `mayBeCompressed`. */
  readonly isSecret?: boolean;
}

/**
 * Gives the body compressed, and says so in `headers`; undefined where it is to be sent as it is.
 * @param isFirst whether no middleware of a host, which may read the body, came before
 */
export type Compress = (
  request: ClientRequest,
  answer: Sent,
  headers: Record<string, string>,
  isFirst: boolean,
) => Uint8Array<ArrayBuffer> | undefined;

/** What requests need of the app and of its runtime. */
export interface RequestTools {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: () => number;
  readonly digest: Digest;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Absent where the platform traces, or what is served is not of interest. */
  readonly tracing?: Tracing | undefined;
  readonly recorder?: Recorder | undefined;
  /** Tells clients apart, for limits on requests without a credential. `header` reads one of the request. */
  readonly addressOf: (env: object, header: Head['header']) => string;
  /** The scheme by which the client came, where it is known to be another than that of the URL. Absent where the URL always has it. */
  readonly schemeOf?: ((env: object, header: Head['header']) => string | undefined) | undefined;
  /** Whether the connections that are left are being cut off, since the process ends. */
  readonly isCuttingOff?: (() => boolean) | undefined;
  /** For work that outlives its request, where the runtime passes no execution context. */
  readonly waitUntil: WaitUntil;
  readonly hooks?: Hooks | undefined;
  /** Absent where the platform compresses. */
  readonly compress?: Compress | undefined;
  /** hono/body-limit. Absent where no body is read. */
  readonly limitBody?: ((c: Context<Env>, next: Next) => Promise<unknown>) | undefined;
  /** Gives back the room that a request takes, since it only waits. Absent where the platform counts them. */
  readonly leaveRoom?: ((env: object) => void) | undefined;
  readonly cors?: { add(headers: Record<string, string>, request: ClientRequest): void } | undefined;
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

/** The head of a request: Hono's, or that of one which a guard refuses. */
export interface Head {
  readonly method: string;
  /** Absolute. Its path and query are as the client wrote them. */
  readonly url: string;
  /** `name` in lower case. Repeated headers are joined with a comma and a space, cookies with a semicolon. */
  header(name: string): string | undefined;
}

/** What a session's cookie holds. Instants in seconds since 1970. */
export interface Session extends SessionId {
  readonly token: string;
  readonly begunAt: number;
  readonly expiresAt: number;
}

const PRINTABLE = /^[\x20-\x7e]{1,256}$/;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/** A client request. What not every request needs is read from its head on first use. */
export class ClientRequest implements RequestContext, TracedRequest {
  readonly head: Head;
  readonly route: RouteFacts;
  readonly tools: RequestTools;
  /** As the client wrote them, without the question mark. */
  readonly path: string;
  readonly query: string;
  readonly requestId: string;
  cacheMode: RequestContext['cacheMode'];
  readonly startedAt: number;
  /** When the reading began that answers it. It is not the first where it has waited for a change. */
  begunAt: number;
  readonly span: RequestSpan | undefined;
  account: AccountId | undefined;
  owner: Owner | undefined;
  limitUse: RequestContext['limitUse'];
  /** Set if it came by cookie, and that could be opened. */
  session: Session | undefined;
  upstreamCalls = 0;
  upstreamMs = 0;
  /** For the log: how the cache handled the request, and the code of the problem that it got. */
  cache: string | undefined;
  code: string | undefined;
  reason: Reason | undefined;
  outcome: 'unknown' | undefined;
  /** Sections that failed, those that were stale, and those that a fresh copy answered where others were waited for. */
  failed: string[] | undefined;
  stale: string[] | undefined;
  fresh: string[] | undefined;
  phases: Phase[] | undefined;
  /** The body is written after the handler has returned; its writer then calls `end`. */
  isStream = false;
  isEnded = false;
  /** Runs when the request is over. */
  onEnd: (() => void) | undefined;
  readonly #hono: Context<Env> | undefined;
  readonly #hasOwnId: boolean;
  #hasLeftRoom = false;
  #trace: Trace | undefined;
  #credential: string | undefined;
  #address: string | undefined;
  #mounted: string | undefined;
  #abortable: Abortable | undefined;
  /** Stops the timer, and listening for the client to leave. */
  #stop: (() => void) | undefined;

  /** `hono`: absent for a request that a guard refuses. */
  constructor(head: Head, route: RouteFacts, tools: RequestTools, hono?: Context<Env>) {
    const { url } = head;
    const start = originOf(url).length;
    const mark = url.indexOf('?', start);
    const hash = url.indexOf('#', start);
    const end = hash < 0 ? url.length : hash;
    const hasQuery = mark >= 0 && mark < end;
    this.head = head;
    this.route = route;
    this.tools = tools;
    this.path = url.slice(start, hasQuery ? mark : end);
    this.query = hasQuery ? url.slice(mark + 1, end) : '';
    this.#hono = hono;
    this.startedAt = this.begunAt = tools.clock.now();
    this.cacheMode = cacheModeOf(head.header('cache-control'));
    const given = requestIdOf(head.header('x-request-id'));
    this.requestId = given ?? crypto.randomUUID();
    this.#hasOwnId = given === undefined;
    const traced = route.isProbe ? undefined : tools.tracing?.begin(this);
    this.span = traced?.span;
    if (traced) this.#trace = traced.trace;
  }

  get method(): string {
    return this.head.method;
  }

  /** Scheme and host that the client used. */
  get hostOrigin(): string {
    const origin = originOf(this.head.url);
    const scheme = this.tools.schemeOf?.(this.#hono?.env ?? {}, (name) => this.header(name));
    return scheme === undefined ? origin : scheme + origin.slice(origin.indexOf(':'));
  }

  header(name: string): string | undefined {
    return this.head.header(name);
  }

  /** The value of the only parameter that a path of ours may have. */
  get id(): string | undefined {
    return this.#hono?.req.param('portico_id');
  }

  get trace(): Trace {
    if (this.#trace) return this.#trace;
    const uuid = this.#hasOwnId ? this.requestId : crypto.randomUUID();
    this.#trace = traceOf(this.header('traceparent'), this.header('tracestate'), uuid);
    return this.#trace;
  }

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

  get via(): string | undefined {
    return this.header('via');
  }

  /** Only for a POST. */
  get idempotencyKey(): string | undefined {
    return this.method === 'POST' ? this.header('idempotency-key') : undefined;
  }

  /** @throws GatewayError `validation_failed` */
  checkIdempotencyKey(key = this.idempotencyKey): void {
    if (key === undefined || IDEMPOTENCY_KEY.test(key)) return;
    const message = 'expected 1 to 255 visible ASCII characters';
    throw invalid([{ code: 'invalid_format', message, field: 'Idempotency-Key' }]);
  }

  get address(): string {
    return (this.#address ??= this.tools.addressOf(this.#hono?.env ?? {}, (name) => this.header(name)));
  }

  /** The path that the app is mounted under, as the client wrote it: Hono's is decoded. */
  get mounted(): string {
    if (this.#mounted === undefined) {
      const depth = this.#hono ? basePath(this.#hono).replace(/\/$/, '').split('/').length : 1;
      this.#mounted = this.path.split('/').slice(0, depth).join('/');
    }
    return this.#mounted;
  }

  get mount(): string {
    const { publicUrl } = this.tools.config;
    return publicUrl === undefined ? encoded(this.mounted) : publicUrl.slice(originOf(publicUrl).length);
  }

  get origin(): string {
    return this.tools.config.publicUrl ?? encoded(this.hostOrigin + this.mounted);
  }

  get endsAt(): number {
    return this.begunAt + this.tools.config.requestTimeoutMs;
  }

  /** Made on first use: an answer from the cache never needs it. */
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

  /** Runs it when the client leaves. Returns what prevents that. */
  onLeft(run: () => void): () => void {
    const left = this.#hono?.req.raw.signal;
    if (left?.aborted) run();
    else left?.addEventListener('abort', run, { once: true });
    return () => left?.removeEventListener('abort', run);
  }

  /** Waits: what it holds is given back meanwhile, and the reading that follows has its own time. */
  async whileWaiting(wait: () => Promise<void>): Promise<void> {
    const { clock, leaveRoom } = this.tools;
    if (!this.#hasLeftRoom) leaveRoom?.(this.#hono?.env ?? {});
    this.#hasLeftRoom = true;
    this.#stop?.();
    this.#stop = undefined;
    this.#abortable = this.phases = this.failed = this.stale = this.fresh = undefined;
    await wait();
    this.begunAt = clock.now();
  }

  /** Bytes of the body. One that a host has read already is bounded by the host. @throws GatewayError `payload_too_large` */
  async body(): Promise<ArrayBuffer> {
    const c = this.#hono;
    if (!c) return new ArrayBuffer(0);
    if (!c.req.raw.bodyUsed) await this.tools.limitBody?.(c, async () => undefined);
    return c.req.arrayBuffer();
  }

  /** Whether the client has gone away. */
  get hasLeft(): boolean {
    return this.#hono?.req.raw.signal.aborted === true;
  }

  /** Made when asked for: a closure in a field of each request costs a third of a hit. */
  get waitUntil(): WaitUntil {
    return (work) => {
      let execution: { waitUntil: WaitUntil } = this.tools;
      try {
        if (this.#hono) execution = this.#hono.executionCtx;
      } catch {
        // this runtime passes none
      }
      execution.waitUntil(work);
    };
  }

  end(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.#stop?.();
    this.#stop = undefined;
    this.onEnd?.();
    this.onEnd = undefined;
  }
}
