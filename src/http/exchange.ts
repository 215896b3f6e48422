import type { Context } from 'hono';
import { GatewayError } from '../core/errors.ts';
import type { LogFields } from '../core/logger.ts';
import { andThen, type Background, type Clock, type Digest, type MaybePromise } from '../core/runtime.ts';
import { placeOf } from '../cache/key.ts';
import { type AccountId, accountNameOf, type Known } from '../store/store.ts';
import { type Caller, ClientLeft, type Tally } from '../upstream/caller.ts';
import type { Operation } from '../upstream/operation.ts';
import type { Read, Trace } from '../upstream/request.ts';
import type { Env } from './bindings.ts';
import { wantsOf } from './conditional.ts';
import { credentialOf } from './credential.ts';
import { assertAdmitted, type Quota, type RateLimitHeaders, type Receive } from './reception.ts';
import { requestIdOf, traceOf } from './trace.ts';

export interface ExchangeTools {
  readonly clock: Clock;
  readonly digest: Digest;
  readonly requestTimeoutMs: number;
  /** Origin for links; the request's own when not set. */
  readonly publicUrl?: string | undefined;
  readonly receive: Receive;
}

/** What a request asks for. */
interface Errand {
  /** None for a composed answer. */
  readonly operation?: Operation;
  /** What will be read, so that the store is asked once for all of it. */
  readonly reads?: readonly Read[];
}

/** Who a request is counted for; with a credential, also whose it is. */
interface Principal {
  readonly principal: AccountId;
  readonly account?: AccountId;
  readonly credential?: string;
}

const PRINTABLE = /^[\x20-\x7e]{1,256}$/;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/** One client request, from its head to its answer: what is known of it, how long it may take, what it has cost. */
export class Exchange {
  readonly context: Context<Env>;
  readonly requestId: string;
  readonly trace: Trace;
  readonly startedAt: number;
  readonly tally: Tally = { upstreamCalls: 0, upstreamMs: 0 };
  /** What the access log says besides what every line has. */
  notes: Pick<LogFields, 'operation' | 'account' | 'cache'> = {};
  /** On the answer, where a limit applies. */
  limitHeaders: RateLimitHeaders = {};
  #streams = false;
  #onEnd: (() => void) | undefined;
  readonly #tools: ExchangeTools;
  #ends: AbortController | undefined;
  #cancelTimer: (() => void) | undefined;

  constructor(context: Context<Env>, tools: ExchangeTools) {
    this.context = context;
    this.#tools = tools;
    this.startedAt = tools.clock.now();
    this.requestId = requestIdOf(this.header('x-request-id'));
    this.trace = traceOf(this.header('traceparent'), this.header('tracestate'));
  }

  get request(): Request {
    return this.context.req.raw;
  }

  header(name: string): string | undefined {
    return this.context.req.raw.headers.get(name) ?? undefined;
  }

  /** The path as the client wrote it. */
  get path(): string {
    const target = this.context.env?.target ?? pathAndQueryOf(this.context.req.url);
    return /^[^?#]*/.exec(target)?.[0] ?? '';
  }

  /** The query as the client wrote it, without the question mark. */
  get query(): string {
    const url = this.context.env?.target ?? this.context.req.url;
    const start = url.indexOf('?');
    return start < 0 ? '' : (url.slice(start + 1).split('#', 1)[0] ?? '');
  }

  /** Where links to this gateway point. */
  get origin(): string {
    const { url } = this.context.req;
    return this.#tools.publicUrl ?? url.slice(0, url.indexOf('/', url.indexOf('://') + 3));
  }

  get background(): Background {
    return this.context.env?.background ?? (() => undefined);
  }

  get elapsedMs(): number {
    return this.#tools.clock.now() - this.startedAt;
  }

  get endsAt(): number {
    return this.startedAt + this.#tools.requestTimeoutMs;
  }

  /** Made when first asked for: an answer from the cache never needs it. */
  signal(): AbortSignal {
    if (this.#ends) return this.#ends.signal;
    const ends = new AbortController();
    this.#ends = ends;
    const client = this.request.signal;
    const leave = () => ends.abort(new ClientLeft());
    if (client.aborted) leave();
    else client.addEventListener('abort', leave, { once: true });
    const expire = () => ends.abort(GatewayError.of('upstream_timeout', { fault: 'timeout' }));
    this.#cancelTimer = this.#tools.clock.after(Math.max(0, this.endsAt - this.#tools.clock.now()), expire);
    return ends.signal;
  }

  /** The body goes on after the handler; who writes it calls `end`. */
  beginStream(): void {
    this.#streams = true;
  }

  /** Runs `finish` when the exchange is over: now, or with its stream. */
  whenOver(finish: () => void): void {
    this.#onEnd = finish;
    if (!this.#streams) this.end();
  }

  end(): void {
    this.#cancelTimer?.();
    this.#onEnd?.();
    this.#onEnd = undefined;
  }

  /**
   * Who asks, and what the store knows of it.
   * @throws GatewayError `unauthenticated`, `rate_limited`
   */
  caller({ operation, reads = [] }: Errand): MaybePromise<Caller> {
    const { digest } = this.#tools;
    if (operation?.credential === 'none') {
      // No credential holds a space, so that no address is ever taken for one.
      const visitor = digest.account(`address ${this.context.env?.address ?? ''}`);
      return andThen(visitor, (principal) => this.#received({ principal }, 'address', reads));
    }
    const credential = credentialOf(this.header('authorization'));
    return andThen(digest.account(credential), (account) => {
      this.notes = { ...this.notes, account: accountNameOf(account) };
      return this.#received({ principal: account, account, credential }, 'account', reads);
    });
  }

  #received(principal: Principal, kind: Quota['name'], reads: readonly Read[]): MaybePromise<Caller> {
    const places = () => reads.map(({ operation, input }) => placeOf(principal.principal, operation, input));
    return andThen(this.#tools.receive({ principal: principal.principal, kind, places }), (admission) => {
      this.limitHeaders = admission.headers;
      assertAdmitted(admission);
      return this.#callerFor(principal, admission.known);
    });
  }

  #callerFor({ principal, account, credential }: Principal, known: Known): Caller {
    const userAgent = this.header('user-agent');
    return {
      account,
      principal,
      known,
      from: {
        requestId: this.requestId,
        credential,
        userAgent: userAgent !== undefined && PRINTABLE.test(userAgent) ? userAgent : undefined,
        trace: this.trace,
        idempotencyKey: this.#idempotencyKey(),
      },
      wants: wantsOf(this.header('cache-control')),
      tally: this.tally,
      background: this.background,
      signal: () => this.signal(),
      endsAt: this.endsAt,
    };
  }

  #idempotencyKey(): string | undefined {
    const key = this.request.method === 'POST' ? this.header('idempotency-key') : undefined;
    if (key === undefined || IDEMPOTENCY_KEY.test(key)) return key;
    const message = 'expected 1 to 255 visible ASCII characters';
    throw GatewayError.of('validation_failed', {
      errors: [{ code: 'invalid_format', message, field: 'Idempotency-Key' }],
    });
  }
}

function pathAndQueryOf(url: string): string {
  return url.slice(url.indexOf('/', url.indexOf('://') + 3));
}
