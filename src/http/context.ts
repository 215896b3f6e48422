import type { Config } from '../config.ts';
import { GatewayError } from '../core/errors.ts';
import type { Inbound } from '../core/inbound.ts';
import type { WaitUntil, Clock } from '../core/runtime.ts';
import type { Owner } from '../store/owner.ts';
import type { AccountId, Snapshot } from '../store/store.ts';
import { ClientLeft, type RequestContext, type Trace } from '../upstream/request-context.ts';
import type { Route } from './lifecycle.ts';
import type { Session } from './sessions.ts';
import { credentialOf, requestIdOf, traceOf, wantsOf } from './request-headers.ts';

export interface ContextTools extends Pick<Config, 'requestTimeoutMs' | 'maxBodyBytes' | 'publicUrl'> {
  readonly clock: Clock;
}

const PRINTABLE = /^[\x20-\x7e]{1,256}$/;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/** A client request. What not every request needs is read from its head on first use. */
export class Context implements RequestContext {
  readonly inbound: Inbound;
  readonly route: Route;
  /** The value of the only parameter that a path may have. */
  readonly param: string | undefined;
  readonly requestId: string;
  readonly startedAt: number;
  account: AccountId | undefined;
  owner: Owner | undefined;
  snapshot: Snapshot | undefined;
  counted: RequestContext['counted'];
  /** Set if it came by cookie, and that could be opened. */
  session: Session | undefined;
  upstreamCalls = 0;
  upstreamMs = 0;
  /** For the log: how the cache handled the request. */
  cache: string | undefined;
  /** The body is written after the handler has returned; its writer then calls `end`. */
  isStream = false;
  isEnded = false;
  /** Runs when the request is over. */
  onEnd: (() => void) | undefined;
  readonly #tools: ContextTools;
  readonly #hasOwnId: boolean;
  #trace: Trace | undefined;
  #credential: string | undefined;
  #controller: AbortController | undefined;
  #stopTimer: (() => void) | undefined;

  constructor(inbound: Inbound, route: Route, param: string | undefined, tools: ContextTools) {
    this.inbound = inbound;
    this.route = route;
    this.param = param;
    this.#tools = tools;
    this.startedAt = tools.clock.now();
    const given = requestIdOf(inbound.header('x-request-id'));
    this.requestId = given ?? crypto.randomUUID();
    this.#hasOwnId = given === undefined;
  }

  get trace(): Trace {
    if (this.#trace) return this.#trace;
    const uuid = this.#hasOwnId ? this.requestId : crypto.randomUUID();
    this.#trace = traceOf(this.inbound.header('traceparent'), this.inbound.header('tracestate'), uuid);
    return this.#trace;
  }

  get credential(): string {
    return (this.#credential ??= this.session?.token ?? credentialOf(this.inbound.header('authorization')));
  }

  get userAgent(): string | undefined {
    const text = this.inbound.header('user-agent');
    return text !== undefined && PRINTABLE.test(text) ? text : undefined;
  }

  /** Only for a POST. */
  get idempotencyKey(): string | undefined {
    return this.inbound.method === 'POST' ? this.inbound.header('idempotency-key') : undefined;
  }

  /** @throws GatewayError `validation_failed` */
  checkIdempotencyKey(): void {
    const key = this.idempotencyKey;
    if (key === undefined || IDEMPOTENCY_KEY.test(key)) return;
    const message = 'expected 1 to 255 visible ASCII characters';
    throw GatewayError.of('validation_failed', {
      errors: [{ code: 'invalid_format', message, field: 'Idempotency-Key' }],
    });
  }

  get wants(): RequestContext['wants'] {
    return wantsOf(this.inbound.header('cache-control'));
  }

  get address(): string {
    return this.inbound.address;
  }

  get origin(): string {
    return this.#tools.publicUrl ?? this.inbound.origin;
  }

  get waitUntil(): WaitUntil {
    return this.inbound.waitUntil;
  }

  get maxBodyBytes(): number {
    return this.#tools.maxBodyBytes;
  }

  get endsAt(): number {
    return this.startedAt + this.#tools.requestTimeoutMs;
  }

  /** Made on first use: an answer from the cache never needs it. */
  get signal(): AbortSignal {
    if (this.#controller) return this.#controller.signal;
    const controller = (this.#controller = new AbortController());
    const { clock } = this.#tools;
    const expire = () => controller.abort(GatewayError.of('upstream_timeout', { fault: 'timeout' }));
    this.#stopTimer = clock.after(Math.max(0, this.endsAt - clock.now()), expire);
    this.inbound.onLeave(() => controller.abort(new ClientLeft()));
    return controller.signal;
  }

  end(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.#stopTimer?.();
    this.snapshot?.end?.();
    this.onEnd?.();
    this.onEnd = undefined;
  }
}
