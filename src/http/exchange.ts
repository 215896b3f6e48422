import type { Context } from 'hono';
import { GatewayError } from '../core/errors.ts';
import type { LogFields } from '../core/logger.ts';
import { andThen, type Background, type Clock, type Digest, type MaybePromise } from '../core/runtime.ts';
import { cacheKeyOf } from '../cache/key.ts';
import type { Accepted } from '../resilience/accepted.ts';
import { addressOwner, isAddress } from '../store/owner.ts';
import type { AccountId, Arrival, Snapshot, Store } from '../store/store.ts';
import { type Caller, ClientLeft, type Reader, type Tally } from '../upstream/caller.ts';
import type { CachePolicy, Operation } from '../upstream/operation.ts';
import type { Held, Read, Trace } from '../upstream/request.ts';
import type { Env } from './bindings.ts';
import { wantsOf } from './conditional.ts';
import { credentialOf } from './credential.ts';
import type { Quota, RateLimit, RateLimitHeaders } from './rate-limit.ts';
import { requestIdOf, traceOf } from './trace.ts';

export interface ExchangeTools {
  readonly clock: Clock;
  readonly digest: Digest;
  readonly requestTimeoutMs: number;
  readonly maxBodyBytes: number;
  /** Origin for links; the request's own when not set. */
  readonly publicUrl?: string | undefined;
  readonly store: Store;
  readonly accepted: Pick<Accepted, 'ownerOf'>;
  readonly rateLimit: RateLimit;
  /** The policy in force; nothing for an operation that is never cached. */
  readonly policyOf: (operation: Operation) => CachePolicy | undefined;
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
  #snapshot: Snapshot | undefined;

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

  get body(): ReadableStream<Uint8Array> | null {
    const { body } = this.context.env ?? {};
    return body === undefined ? this.request.body : body;
  }

  get maxBodyBytes(): number {
    return this.#tools.maxBodyBytes;
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
    this.#snapshot?.end?.();
    this.#onEnd?.();
    this.#onEnd = undefined;
  }

  /**
   * Who reads, counted, and what the store knows of what will be read.
   * @throws GatewayError `unauthenticated`, `rate_limited`
   */
  reader(reads: (held: Held) => readonly Read[] = () => []): MaybePromise<Reader> {
    const { store, clock, policyOf } = this.#tools;
    return andThen(this.#account(), ({ account, caller }) => {
      const keyOf = ({ operation, input }: Read) =>
        cacheKeyOf(account, operation, { input, policy: policyOf(operation) });
      const keys: Arrival['keys'] = (held) => reads((read) => held(keyOf(read))?.text).map(keyOf);
      const { owner, window, background, wants } = caller;
      const now = clock.now();
      const arrival = { principal: account, owner, now, window, keys, fetches: wants === 'any', background };
      return andThen(store.snapshot(arrival), (snapshot) => {
        this.#snapshot = snapshot;
        caller.counted(snapshot.use);
        return { ...caller, account, snapshot, isAccepted: !isAddress(owner) };
      });
    });
  }

  /**
   * Who writes; it is counted with the write.
   * @throws GatewayError `unauthenticated`
   */
  writer({ credential }: Operation): MaybePromise<Caller> {
    if (credential !== 'none') return andThen(this.#account(), ({ caller }) => caller);
    // No credential holds a space, so that no address is ever taken for one.
    const visitor = this.#tools.digest.account(addressOwner(this.#address));
    return andThen(visitor, (principal) => this.#callerFor({ principal }, 'address'));
  }

  #account(): MaybePromise<{ readonly account: AccountId; readonly caller: Caller }> {
    const credential = credentialOf(this.header('authorization'));
    return andThen(this.#tools.digest.account(credential), (account) => {
      this.notes = { ...this.notes, account };
      return { account, caller: this.#callerFor({ principal: account, account, credential }, 'account') };
    });
  }

  #callerFor({ principal, account, credential }: Principal, quota: Quota): Caller {
    const userAgent = this.header('user-agent');
    const { rateLimit, accepted } = this.#tools;
    return {
      account,
      principal,
      owner: accepted.ownerOf(account, () => this.#address),
      window: rateLimit.windowOf(quota),
      counted: (use) => {
        if (use) this.limitHeaders = rateLimit.headersOf(quota, use);
        if (use) rateLimit.assertWithin(quota, use);
      },
      from: {
        requestId: this.requestId,
        credential,
        userAgent: userAgent !== undefined && PRINTABLE.test(userAgent) ? userAgent : undefined,
        trace: this.trace,
        idempotencyKey: this.#idempotencyKey,
      },
      wants: wantsOf(this.header('cache-control')),
      tally: this.tally,
      background: this.background,
      signal: () => this.signal(),
      endsAt: this.endsAt,
    };
  }

  get #address(): string {
    return this.context.env?.address ?? '';
  }

  get #idempotencyKey(): string | undefined {
    return this.request.method === 'POST' ? this.header('idempotency-key') : undefined;
  }

  /** @throws GatewayError `validation_failed` */
  checkIdempotencyKey(): void {
    const key = this.#idempotencyKey;
    if (key === undefined || IDEMPOTENCY_KEY.test(key)) return;
    const message = 'expected 1 to 255 visible ASCII characters';
    throw GatewayError.of('validation_failed', {
      errors: [{ code: 'invalid_format', message, field: 'Idempotency-Key' }],
    });
  }
}

function pathAndQueryOf(url: string): string {
  return url.slice(url.indexOf('/', url.indexOf('://') + 3));
}
