import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { type Dispatcher, Pool } from 'undici';
import { GatewayError } from '../../core/errors.ts';
import {
  type Body,
  type BodyFlaw,
  type RawAnswer,
  type Transport,
  TransportError,
  type UpstreamRequest,
} from '../../upstream/transport.ts';
import { connectorWithoutInterim } from './interim.ts';

interface TransportOptions {
  readonly upstream: URL;
  readonly maxConnections: number;
  readonly connectTimeoutMs: number;
}

/** Undici's dispatcher with a handler that collects: the global `fetch` costs five times as much. */
export function undiciTransport({ upstream, maxConnections, connectTimeoutMs }: TransportOptions) {
  const prefix = upstream.pathname.replace(/\/$/, '');
  const pool = new Pool(upstream.origin, {
    connections: maxConnections,
    pipelining: 1,
    allowH2: false,
    // One signal spans the whole exchange; undici's own timers start anew with each byte.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: connectorWithoutInterim(connectTimeoutMs),
  });
  const transport: Transport = async (request) => {
    const { status, headers, bytes } = await collect(pool, { ...request, path: prefix + request.path });
    if (typeof bytes === 'string') return { status, headers, body: { flaw: bytes } };
    return { status, headers, body: await bodyOf(bytes, headers['content-encoding'], request.maxBodyBytes) };
  };
  return { transport, close: () => pool.destroy() };
}

interface Collected extends Omit<RawAnswer, 'body'> {
  readonly bytes: Buffer | BodyFlaw;
}

function collect(pool: Pool, request: UpstreamRequest): Promise<Collected> {
  const { method, path, headers, body = null, signal } = request;
  return new Promise((resolve, reject) => {
    const collector = new Collector(request, resolve, reject);
    if (signal.aborted) return collector.end(signal.reason);
    pool.dispatch({ method, path, headers: { ...headers }, body }, collector);
  });
}

/** Gathers one answer. Settles once: with the answer, the signal's reason, or what the transport makes of an error. */
class Collector implements Dispatcher.DispatchHandler {
  readonly #request: UpstreamRequest;
  readonly #resolve: (answer: Collected) => void;
  readonly #reject: (reason: unknown) => void;
  readonly #chunks: Buffer[] = [];
  readonly #onAbort: () => void;
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: Record<string, string> = {};
  #size = 0;
  #settled = false;

  constructor(request: UpstreamRequest, resolve: (answer: Collected) => void, reject: (reason: unknown) => void) {
    this.#request = request;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#onAbort = () => this.end(request.signal.reason);
    request.signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Comes when the request is about to be written: before it, nothing was sent. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#mayStart();
    this.#controller = controller;
    if (this.#settled) controller.abort(new Error('ended before it was sent'));
  }

  #mayStart(): void {
    try {
      this.#request.beforeFirstByte?.();
    } catch (error) {
      if (this.#settle()) this.#reject(error);
    }
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ) {
    if (status < 200) throw new Error('bad response');
    this.#status = status;
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined) this.#headers[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value;
    }
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.length;
    this.#chunks.push(chunk);
    if (this.#size <= this.#request.maxBodyBytes) return;
    this.#answer('too_large');
    this.#controller?.abort(new Error('too large'));
  }

  onResponseEnd(): void {
    this.#answer(this.#chunks.length === 1 && this.#chunks[0] ? this.#chunks[0] : Buffer.concat(this.#chunks));
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error & { code?: string }): void {
    if (this.#status > 0) this.#answer('cut_short');
    else if (this.#settle()) this.#reject(this.#faultOf(error));
  }

  #answer(bytes: Buffer | BodyFlaw): void {
    if (this.#settle()) this.#resolve({ status: this.#status, headers: this.#headers, bytes });
  }

  /** A refusal is known by its head: that its body hangs does not make it another answer. */
  end(reason: unknown): void {
    if (this.#status >= 400) this.#answer('cut_short');
    else if (this.#settle()) this.#reject(this.#controller ? reason : unsent(reason));
    this.#controller?.abort(new Error('ended'));
  }

  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    this.#request.signal.removeEventListener('abort', this.#onAbort);
    return true;
  }

  #faultOf(error: Error & { code?: string }): TransportError {
    const code = error.code ?? '';
    if (!this.#controller) return new TransportError(code === 'UND_ERR_CONNECT_TIMEOUT' ? 'timeout' : 'refused', error);
    const isGarbage =
      NOT_HTTP.test(code) || NOT_HTTP.test(error.name) || /^bad (upgrade|response)$/.test(error.message);
    return new TransportError(isGarbage ? 'malformed' : 'broken', error);
  }
}

/** Time that ran out in the queue is known to have left nothing behind. */
const unsent = (reason: unknown) =>
  reason instanceof GatewayError && reason.particulars.fault === 'timeout'
    ? new TransportError('timeout', reason)
    : reason;

const NOT_HTTP = /^(HTTPParserError|ERR_ASSERTION|HPE_|UND_ERR_(HEADERS_OVERFLOW|RES_|INVALID_))/;

const decoders: Readonly<Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>>> = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
};

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** We ask for no coding, but an upstream may use one all the same; what it unpacks to is bounded too. */
async function bodyOf(bytes: Buffer, coding: string | undefined, maxOutputLength: number): Promise<Body> {
  const name = coding?.trim().toLowerCase() ?? '';
  if (name === '' || name === 'identity' || bytes.length === 0) return textOf(bytes);
  const decode = Object.hasOwn(decoders, name) ? decoders[name] : undefined;
  if (!decode) return { flaw: 'coding' };
  try {
    return textOf(await decode(bytes, { maxOutputLength }));
  } catch (error) {
    const isTooLarge = error instanceof RangeError; // zlib's, beyond maxOutputLength
    return { flaw: isTooLarge ? 'too_large' : 'coding' };
  }
}

function textOf(bytes: Buffer): Body {
  try {
    return { text: utf8.decode(bytes) };
  } catch {
    return { flaw: 'charset' };
  }
}
