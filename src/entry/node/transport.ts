import type { SecureContext } from 'node:tls';
import { context, createContextKey, ROOT_CONTEXT } from '@opentelemetry/api';
import { buildConnector, type Dispatcher, interceptors, Pool, ProxyAgent } from 'undici';
import type { Config } from '../../config.ts';
import { GatewayError, type Reason } from '../../core/errors.ts';
import {
  type Body,
  type Exchange,
  headerOf,
  noAnswer,
  type RawAnswer,
  type Transport,
  type UpstreamRequest,
} from '../../upstream/transport.ts';
import type { Tls } from './certificates.ts';

/** How the upstream is reached. */
export interface Way {
  readonly tls?: Tls;
  /** The proxy through which it is reached, if there is one. */
  readonly proxy?: URL | undefined;
}

/**
 * A host's instrumentations are not to see calls of the upstream: they would tell of an attempt once more, and send a second
 * `traceparent`. OpenTelemetry's SDK and propagators know this key by its name.
 */
const UNSEEN = ROOT_CONTEXT.setValue(createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING'), true);

/** Undici's dispatcher with a handler that collects the answer; the global `fetch` costs five times as much. */
export function undiciTransport(upstream: URL, config: Config, way: Way = {}) {
  const { origin } = upstream;
  const prefix = upstream.pathname.replace(/\/$/, '');
  const make = dispatchersTo(origin, config, way);
  const renewedAfter = (mostMs: number) => new Renewed(() => make(mostMs), way.proxy ? Infinity : mostMs);
  const [reads, writes] = [renewedAfter(READ_MS), renewedAfter(WRITE_MS)];
  const transport: Transport = (request) => {
    const collector = new Collector(request);
    const { method, path, headers, body = null } = request;
    const sent = { origin, method, path: prefix + path, headers, body };
    const { current } = method === 'GET' ? reads : writes;
    context.with(UNSEEN, () => current.dispatch(sent, collector));
    return collector;
  };
  return { transport, close: () => Promise.all([reads.destroy(), writes.destroy()]) };
}

/** How long a connection is used. A busy one would else never end, and the upstream's name would never be looked up again. */
const READ_MS = 60_000;
/** A write that meets the end of its connection is of unknown outcome. Servers keep idle connections for two seconds or more. */
const WRITE_MS = 1000;
/** How long a connection that is not used is kept at most, unless the upstream says in `Keep-Alive` how long it keeps it. */
const IDLE_MS = 4000;

/**
 * The dispatcher in use. After `mostMs` a new one takes the calls, and the old one closes when it has its last answer. The wall
 * clock counts, since timers stand still while a machine is suspended.
 */
class Renewed {
  readonly #make: () => Dispatcher;
  #mostMs: number;
  #current: Dispatcher;
  #madeAt = Date.now();

  constructor(make: () => Dispatcher, mostMs: number) {
    this.#make = make;
    this.#mostMs = mostMs;
    this.#current = make();
  }

  get current(): Dispatcher {
    const now = Date.now();
    if (Math.abs(now - this.#madeAt) > this.#mostMs) {
      void this.#current.close();
      this.#current = this.#make();
      this.#madeAt = now;
    }
    return this.#current;
  }

  /** Later calls fail. Called when nothing is under way, or when the process ends. */
  destroy(): Promise<void> {
    this.#mostMs = Infinity;
    return this.#current.destroy();
  }
}

/**
 * Makes undici's pools, or its agents where there is a proxy. Pools share a connector, and so TLS sessions. Agents cannot share
 * one, so they are not replaced: `clientTtl` ends their connections, and reads the clock for each one that is busy.
 */
function dispatchersTo(origin: string, config: Config, { tls = {}, proxy }: Way): (mostMs: number) => Dispatcher {
  const { upstreamMaxConnections: connections, upstreamTimeoutMs: timeoutMs } = config;
  const { hostname } = new URL(origin);
  const named = hostname.endsWith('.') && { servername: hostname.slice(0, -1) }; // a name in TLS has no dot at its end
  const connect = (secureContext: SecureContext | undefined) =>
    ({
      timeout: timeoutMs,
      // Node gives up each of several addresses but the last after 250 ms, which a far one takes, or a packet that is lost.
      autoSelectFamilyAttemptTimeout: Math.ceil(timeoutMs / 4),
      allowH2: false,
      ...(secureContext && { secureContext }),
    }) as buildConnector.BuildOptions;
  const target = { ...connect(tls.secureContext), ...named };
  const connector = buildConnector(target);
  return (mostMs) => {
    const options = {
      connections,
      pipelining: 1,
      allowH2: false,
      // The attempt's signal spans the whole exchange; undici's own timers restart with each byte.
      headersTimeout: 0,
      bodyTimeout: 0,
      connectTimeout: timeoutMs,
      keepAliveTimeout: Math.min(mostMs, IDLE_MS),
      keepAliveMaxTimeout: mostMs,
    };
    if (!proxy) return new Pool(origin, { ...options, connect: connector });
    return new ProxyAgent({
      ...options,
      uri: proxy.href,
      requestTls: target,
      proxyTls: connect(tls.trusting),
      // What it does not answer to a CONNECT in that time is not waited for: its place is needed.
      clientFactory: (url, own) => new Pool(url, { ...own, headersTimeout: timeoutMs }),
      factory: (to, own: Pool.Options) => new Pool(to, { ...own, ...options, clientTtl: mostMs }),
    });
  };
}

// Undici would say on standard error that this is experimental, which nobody who runs the gateway can do anything about.
const warn = process.emitWarning.bind(process);
process.emitWarning = () => undefined;
/** We ask for no content coding, but an upstream may still use one. What it leaves coded is a bad body. */
const decompress = interceptors.decompress({ skipErrorResponses: false });
process.emitWarning = warn;

/** What decodes an answer before the handler gets it. Undici makes one only for a dispatch. */
function decoderFor(handler: Dispatcher.DispatchHandler): Dispatcher.DispatchHandler | undefined {
  let decoder: Dispatcher.DispatchHandler | undefined;
  const dispatch = decompress((_, one) => {
    decoder = one;
    return true;
  });
  dispatch({ method: 'GET', path: '/' }, handler);
  return decoder;
}

/** Collects one answer. Settles once, with what comes first: the answer, the reason of `abort`, or `noAnswer`. */
class Collector implements Dispatcher.DispatchHandler, Exchange {
  readonly #request: UpstreamRequest;
  readonly #settled = Promise.withResolvers<RawAnswer>();
  readonly answer = this.#settled.promise;
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  /** Only of a coded body that is not empty: every other answer would pay for it too. What comes from it comes with its own controller. */
  #decoder: Dispatcher.DispatchHandler | undefined;
  #interim = 0;
  #status = 0;
  #headers: RawAnswer['headers'] = {};
  #size = 0;
  #isSettled = false;

  constructor(request: UpstreamRequest) {
    this.#request = request;
  }

  /** Called when the request is about to be written; before that nothing was sent. And by a decoder, with its own. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    try {
      if (!this.#decoder) this.#request.beforeFirstByte?.();
    } catch (error) {
      this.#fail(error);
    }
    this.#controller = controller;
    if (this.#isSettled) controller.abort(new Error('ended before it was sent'));
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: RawAnswer['headers']): void {
    if (status === 101 || this.#interim > MOST_INTERIM) throw new Error('bad response');
    if (status < 200) return void this.#interim++; // nobody asked for it
    this.#status = status;
    this.#headers = headers; // undici gives their names in lower case
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#decoder && this.#headers['content-encoding'] !== undefined) {
      this.#decoder = decoderFor(this);
      this.#decoder?.onRequestStart?.(controller, {});
      this.#decoder?.onResponseStart?.(controller, this.#status, this.#headers);
    }
    if (controller !== this.#controller) return this.#decoder?.onResponseData?.(controller, chunk);
    this.#size += chunk.length;
    this.#chunks.push(chunk);
    if (this.#size <= this.#request.maxBodyBytes) return;
    this.#answer({ flaw: 'too_large' });
    this.#controller?.abort(new Error('too large'));
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (controller !== this.#controller) return this.#decoder?.onResponseEnd?.(controller, {});
    const coding = headerOf({ headers: this.#headers }, 'content-encoding')?.trim().toLowerCase() ?? '';
    const isPlain = coding === '' || coding === 'identity' || this.#size === 0;
    const [only, ...more] = this.#chunks;
    this.#answer(isPlain ? textOf(only && more.length === 0 ? only : Buffer.concat(this.#chunks, this.#size)) : CODED);
    if (this.#decoder) this.#controller?.abort(OVER);
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error & { code?: string }): void {
    if (this.#decoder && controller !== this.#controller) return this.#decoder.onResponseError?.(controller, error);
    if (this.#isSettled) return;
    if (this.#status === 0) this.#fail(this.#failureOf(error));
    else this.#answer(OF_DECODER.test(error.code ?? error.message) ? CODED : { flaw: 'cut_short' });
    this.#controller?.abort(OVER); // undici would read the body of a proxy's 407 to its end
  }

  #answer(body: Body): void {
    this.#isSettled = true;
    this.#settled.resolve({ status: this.#status, headers: this.#headers, body });
  }

  /** With a 4xx or 5xx the status is known: a body that hangs does not change it. */
  abort(reason: unknown): void {
    if (this.#isSettled) return;
    if (this.#status >= 400) this.#answer({ flaw: 'cut_short' });
    else this.#fail(this.#controller ? reason : unsent(reason));
    this.#controller?.abort(new Error('ended'));
  }

  #fail(reason: unknown): void {
    this.#isSettled = true;
    this.#settled.reject(reason);
  }

  #failureOf(error: Error & { code?: string }): GatewayError {
    const [, ofProxy] = OF_PROXY.exec(error.message) ?? [];
    if (ofProxy) error.code = `PROXY_${ofProxy}`;
    const { code = '' } = error;
    if (!this.#controller || ofProxy)
      return noAnswer(TIMED_OUT.test(code) ? 'connect_timeout' : 'no_connection', reasonOf(code), error);
    const isHttp = ![code, error.name, error.message].some((text) => NOT_HTTP.test(text));
    if (isHttp) return noAnswer('broken', reasonOf(code), error);
    // In the place of HTTP an alert of TLS (RFC 8446, section 6) came: the upstream wants TLS at a port where we do not.
    const isAlert = 'data' in error && String(error.data).startsWith('\x15\x03');
    return noAnswer('malformed', isAlert ? 'tls' : 'bad_body', error);
  }
}

/** A timeout while waiting for a connection proves that nothing was sent. */
const unsent = (reason: unknown) =>
  reason instanceof GatewayError && reason.particulars.fault === 'timeout'
    ? noAnswer('connect_timeout', 'timeout', reason)
    : reason;

/** What undici says where a proxy refuses a tunnel, or wants a login. The upstream has not seen the request. */
const OF_PROXY = /^Proxy .*\((\d{3})\)/;

const TIMED_OUT = /^UND_ERR_(CONNECT|HEADERS)_TIMEOUT$/;

/**
 * Error codes of Node, libuv, OpenSSL and undici, and `PROXY_407` where a proxy has refused, by what they say. Any other is of a
 * connection that went away.
 */
const CODES_OF: readonly (readonly [RegExp, Reason])[] = [
  [/^(ENOTFOUND|EAI_)/, 'dns'],
  [/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EACCES|EPERM|PROXY_\d+)$/, 'refused'],
  [/^(UND_ERR_(CONNECT|HEADERS)_TIMEOUT|ETIMEDOUT)$/, 'timeout'],
  [
    /^(EPROTO|UND_ERR_PRX_TLS|ERR_(SSL|TLS)_|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_)/,
    'tls',
  ],
];

const reasonOf = (code: string): Reason => CODES_OF.find(([form]) => form.test(code))?.[1] ?? 'reset';

/** How a code, name or message of undici's begins where what came is not HTTP. */
const NOT_HTTP =
  /^(HTTPParserError|ERR_ASSERTION|HPE_|UND_ERR_(HEADERS_OVERFLOW|RES_|INVALID_)|bad (upgrade|response)$)/;

/** Of answers such as 103. Undici itself takes a 100, and any that ends its connection, for a broken answer. */
const MOST_INTERIM = 16;

/** How the codes of zlib's errors begin, and what undici says of more codings than it takes. */
const OF_DECODER = /^(Z_|ZSTD_|ERR__|too many content-)/;

const CODED: Body = { flaw: 'coding' };

/** Of an exchange whose answer, which nobody waits for any more, may still go on. */
const OVER = new Error('over');

const utf8 = new TextDecoder('utf-8', { fatal: true });

function textOf(bytes: Buffer): Body {
  try {
    return { text: utf8.decode(bytes) };
  } catch {
    return { flaw: 'charset' };
  }
}
