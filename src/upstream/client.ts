import { type Fault, GatewayError, type Reason } from '../core/errors.ts';
import { isPlainObject, isTooDeep, parsedJson } from '../core/json.ts';
import type { Logger } from '../core/logger.ts';
import type { Clock } from '../core/runtime.ts';
import { type Invocation, targetOf, type UpstreamAnswer, type UpstreamCall } from './call.ts';
import { type Hooks, headersBy } from './hooks.ts';
import { type Linked, localLinkHeader, localLinks } from './links.ts';
import { pathWith } from './path.ts';
import { keepingOf, retryAfterOf, validatorsOf } from './answer-headers.ts';
import { concealableIn, refusalOf } from './refusal.ts';
import type { Table } from './table.ts';
import type { Via } from './via.ts';
import { type BodyFlaw, headerOf, type RawAnswer, type Transport } from './transport.ts';

interface ClientOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  /** The upstream's `{base_url}`. Clients never see its host. */
  readonly upstream: URL;
  readonly table: Table;
  readonly hooks?: Hooks | undefined;
  readonly logger: Logger;
  /** `upstreamTimeoutMs`: from the first byte that is sent to the last of the answer, connecting included. */
  readonly config: { readonly upstreamMaxBodyBytes: number; readonly upstreamTimeoutMs: number };
}

/** Sends one request to the upstream and reads its answer. Knows nothing of retries, slots or the cache. */
export class UpstreamClient {
  readonly #options: ClientOptions;
  readonly #via: Via;

  constructor(options: ClientOptions, via: Via) {
    this.#options = options;
    this.#via = via;
  }

  /** @throws GatewayError see `noAnswer` and `answerOf`; the reason of the call's abort */
  async send(call: UpstreamCall): Promise<UpstreamAnswer> {
    const { hooks } = this.#options;
    const own = hooks?.headers
      ? await call.request.during('gates', headersBy(hooks.headers, call, this.#options), call.leg)
      : credentialOf(call);
    call.beforeSend?.();
    const raw = await this.#exchange(call, own);
    return answerOf(call, raw, own, this.#options);
  }

  /**
   * Sends an attempt. One timer spans connecting, waiting and reading: a body that drips would restart an idle timer for
   * ever. `own`: the credential's headers, or what the hook gives in their place; names and values in turn.
   * @throws GatewayError see `noAnswer`; the reason of the call's abort
   */
  async #exchange(call: UpstreamCall, own: readonly string[]): Promise<RawAnswer> {
    const { transport, clock, config } = this.#options;
    const { request, invocation, abortable, operation } = call;
    abortable.throwIfAborted();
    const now = clock.now();
    const phase = (call.phase = request.beginPhase('attempt', call.leg, now));
    phase.span = request.span?.attempt(phase, { operation, resends: call.resends });
    call.resends++;
    const stopTimer = clock.after(Math.min(config.upstreamTimeoutMs, call.endsAt - now), () =>
      abortable.abort(GatewayError.of('upstream_timeout', { fault: 'timeout', reason: 'timeout' })),
    );
    let stopListening: (() => void) | undefined;
    try {
      const exchange = transport({
        method: operation.method,
        path: targetOf(invocation),
        headers: this.#headersOf(call, own),
        body: invocation.body,
        maxBodyBytes: config.upstreamMaxBodyBytes,
        beforeFirstByte: call.beforeFirstByte,
      });
      stopListening = abortable.onAbort((reason) => exchange.abort(reason));
      const raw = await exchange.answer;
      phase.status = raw.status;
      return raw;
    } finally {
      stopListening?.();
      stopTimer();
      phase.end = clock.now();
    }
  }

  /** The allow-list of `contract.md` section 2, and `own`. Nothing else that the client sent is passed on. */
  #headersOf(
    { operation, invocation, request, validators, key, phase }: UpstreamCall,
    own: readonly string[],
  ): string[] {
    const { traceId, flags, tracestate } = request.trace;
    const headers = ['accept', 'application/json', 'user-agent', request.userAgent ?? 'portico'];
    headers.push('x-request-id', request.requestId);
    headers.push('traceparent', phase?.span?.traceparent ?? `00-${traceId}-${newSpanId()}-${flags}`);
    headers.push('via', this.#via.headerFor(request.header('via')), ...own);
    if (invocation.body !== undefined) headers.push('content-type', 'application/json');
    if (tracestate) headers.push('tracestate', tracestate);
    if (operation.method === 'POST' && key) headers.push('idempotency-key', key);
    if (validators?.etag) headers.push('if-none-match', validators.etag);
    if (validators?.lastModified) headers.push('if-modified-since', validators.lastModified);
    return headers;
  }
}

const credentialOf = ({ operation, request }: UpstreamCall) =>
  operation.credential === 'none' ? [] : ['authorization', `Token ${request.credential}`];

/** Each attempt has an id of its own, also one without a span. */
function newSpanId(): string {
  const random = crypto.randomUUID();
  return random.slice(0, 8) + random.slice(24, 32);
}

/**
 * Tells good answers, refusals and failures apart. Nothing else looks at the upstream's status.
 * @throws GatewayError the upstream's 4xx as a refusal, else `upstream_bad_response`, `upstream_unavailable` or
 *   `upstream_timeout`
 */
function answerOf(
  { operation, invocation, request, validators }: UpstreamCall,
  raw: RawAnswer,
  own: readonly string[],
  { clock, upstream, table }: ClientOptions,
): UpstreamAnswer {
  const { status } = raw;
  const isGood = status >= 200 && status < 300;
  const isBodiless = status === 204 || status === 205 || (isGood && isEmpty(raw) && operation.answer === null);
  if (isBodiless) return { ...EMPTY, isStorable: false, status };
  const wall = clock.wall();
  if (isGood) return jsonAnswer(invocation, raw, upstream, wall);
  if (status === 304 && validators) {
    const link = linkOf(invocation, raw, upstream);
    return { ...EMPTY, ...keepingOf(raw, wall), link, status, notModified: true };
  }
  if (status < 400 || status >= 500) throw failure(raw, wall);
  const key = operation.credential === 'none' ? [] : [request.credential];
  const secrets = [...key, ...concealableIn(own)];
  throw refusalOf(raw, { wall, secrets, upstream, refusals: table.refusals });
}

const isEmpty = ({ body }: RawAnswer) => 'text' in body && body.text === '';

const UNAVAILABLE_SECONDS = 5;

const FLAWS: Readonly<Record<BodyFlaw, string>> = {
  cut_short: 'The upstream broke off in the middle of its answer.',
  too_large: 'The upstream answered with more than this server takes.',
  coding: 'The upstream answered in a coding that cannot be read.',
  charset: 'The upstream answered with text that is not UTF-8.',
};

const REASON_OF: Readonly<Record<BodyFlaw, Reason>> = {
  cut_short: 'reset',
  too_large: 'too_large',
  coding: 'bad_body',
  charset: 'bad_body',
};

const EMPTY = { text: null, links: [], value: undefined, validators: {}, notModified: false } as const;

function jsonAnswer(invocation: Invocation, raw: RawAnswer, upstream: URL, wall: number): UpstreamAnswer {
  const { operation } = invocation;
  if ('flaw' in raw.body) {
    const { flaw } = raw.body;
    const fault = flaw === 'cut_short' ? 'failed' : 'unusable';
    throw GatewayError.of('upstream_bad_response', { fault, reason: REASON_OF[flaw], detail: FLAWS[flaw] });
  }
  const { text } = raw.body;
  if (isTooDeep(text)) throw unusable('The upstream answered with JSON nested too deeply.');
  const value = parsedJson(text);
  if (value === undefined) throw unusable('The upstream answered with something that is not JSON.');
  return {
    ...(operation.page ? localLinks(text, operation.page, sourceOf(invocation, upstream)) : { text, links: [] }),
    link: linkOf(invocation, raw, upstream),
    ...keepingOf(raw, wall),
    validators: validatorsOf(raw),
    status: raw.status,
    value,
    notModified: false,
  };
}

const sourceOf = ({ operation, id }: Invocation, upstream: URL) => ({ upstream, path: pathWith(operation, id) });

/** The `Link` header of a page that names no next page itself. */
function linkOf(invocation: Invocation, raw: RawAnswer, upstream: URL): Linked | undefined {
  const { page } = invocation.operation;
  const header = page && page.next === undefined ? headerOf(raw, 'link') : undefined;
  return header === undefined ? undefined : localLinkHeader(header, sourceOf(invocation, upstream));
}

const unusable = (detail: string) =>
  GatewayError.of('upstream_bad_response', { fault: 'unusable', reason: 'bad_body', detail });

function failure(raw: RawAnswer, wall: number): GatewayError {
  const { status } = raw;
  if (isLoop(raw)) return GatewayError.of('loop_detected', { reason: 'status' });
  const retryAfter = retryAfterOf(raw, wall);
  const known = { fault: faultOf(status, retryAfter), reason: 'status' } as const;
  if (status === 504) return GatewayError.of('upstream_timeout', known);
  if (status !== 503) return GatewayError.of('upstream_bad_response', known);
  return GatewayError.of('upstream_unavailable', { ...known, retryAfter: retryAfter ?? UNAVAILABLE_SECONDS });
}

/** Whether the answer is a gateway's whole `loop_detected` problem: this gateway's, or that of one further on. */
function isLoop({ status, body }: RawAnswer): boolean {
  const problem = status === 508 && 'text' in body ? parsedJson(body.text) : undefined;
  if (!isPlainObject(problem) || problem['code'] !== 'loop_detected' || problem['retryable'] !== false) return false;
  return typeof problem['request_id'] === 'string' && String(problem['type']).endsWith('/problems/loop_detected');
}

function faultOf(status: number, retryAfter: number | undefined): Fault {
  if (status < 500) return 'unusable';
  const saysWhen = status === 503 && retryAfter !== undefined; // until then it is not asked again
  return status >= 502 && status <= 504 && !saysWhen ? 'unavailable' : 'failed';
}
