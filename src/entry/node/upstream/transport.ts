import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { type Dispatcher, Pool } from 'undici';
import { onAbort } from '../../../core/abort.ts';
import { GatewayError } from '../../../core/errors.ts';
import {
  type Body,
  type BodyFlaw,
  headerOf,
  type RawAnswer,
  type Transport,
  TransportError,
  type UpstreamRequest,
} from '../../../upstream/transport.ts';
import { connectorWithoutInterim } from './interim.ts';

interface TransportOptions {
  readonly upstream: URL;
  readonly maxConnections: number;
  readonly connectTimeoutMs: number;
}

/** Undici's dispatcher with a handler that collects the answer; the global `fetch` costs five times as much. */
export function undiciTransport({ upstream, maxConnections, connectTimeoutMs }: TransportOptions) {
  const prefix = upstream.pathname.replace(/\/$/, '');
  const pool = new Pool(upstream.origin, {
    connections: maxConnections,
    pipelining: 1,
    allowH2: false,
    // The attempt's signal spans the whole exchange; undici's own timers restart with each byte.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: connectorWithoutInterim(connectTimeoutMs),
  });
  const transport: Transport = (request) =>
    new Promise((resolve, reject) => {
      const collector = new Collector(request, resolve, reject);
      const { method, path, headers, body = null } = request;
      if (!collector.isSettled) pool.dispatch({ method, path: prefix + path, headers, body }, collector);
    });
  return { transport, close: () => pool.destroy() };
}

type Resolve = (answer: RawAnswer | Promise<RawAnswer>) => void;

/** Collects one answer. Settles once: with the answer, the signal's reason, or a `TransportError`. */
class Collector implements Dispatcher.DispatchHandler {
  readonly #request: UpstreamRequest;
  readonly #resolve: Resolve;
  readonly #reject: (reason: unknown) => void;
  #stay = () => {};
  #chunks: Buffer | Buffer[] | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: RawAnswer['headers'] = {};
  #size = 0;
  isSettled = false;

  constructor(request: UpstreamRequest, resolve: Resolve, reject: (reason: unknown) => void) {
    this.#request = request;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#stay = onAbort(request.signal, (reason) => this.#aborted(reason));
  }

  /** Called when the request is about to be written; before that nothing was sent. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    try {
      this.#request.beforeFirstByte?.();
    } catch (error) {
      this.#fail(error);
    }
    this.#controller = controller;
    if (this.isSettled) controller.abort(new Error('ended before it was sent'));
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: RawAnswer['headers']): void {
    if (status < 200) throw new Error('bad response');
    this.#status = status;
    this.#headers = headers; // undici gives their names in lower case
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#chunks === undefined) this.#chunks = chunk;
    else if (Array.isArray(this.#chunks)) this.#chunks.push(chunk);
    else this.#chunks = [this.#chunks, chunk];
    if (this.#size <= this.#request.maxBodyBytes) return;
    this.#answer('too_large');
    this.#controller?.abort(new Error('too large'));
  }

  onResponseEnd(): void {
    const chunks = this.#chunks ?? EMPTY;
    this.#answer(Array.isArray(chunks) ? Buffer.concat(chunks, this.#size) : chunks);
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error & { code?: string }): void {
    if (this.#status > 0) this.#answer('cut_short');
    else this.#fail(this.#faultOf(error));
  }

  #answer(bytes: Buffer | BodyFlaw): void {
    if (!this.#settle()) return;
    const [status, headers] = [this.#status, this.#headers];
    const coding = headerOf({ headers }, 'content-encoding')?.trim().toLowerCase() ?? '';
    if (typeof bytes === 'string') this.#resolve({ status, headers, body: { flaw: bytes } });
    else if (coding === '' || coding === 'identity' || bytes.length === 0)
      this.#resolve({ status, headers, body: textOf(bytes) });
    else this.#resolve(decoded(bytes, coding, this.#request.maxBodyBytes).then((body) => ({ status, headers, body })));
  }

  /** With a 4xx or 5xx the status is known: a body that hangs does not change it. */
  #aborted(reason: unknown): void {
    if (this.#status >= 400) this.#answer('cut_short');
    else this.#fail(this.#controller ? reason : unsent(reason));
    this.#controller?.abort(new Error('ended'));
  }

  #fail(reason: unknown): void {
    if (this.#settle()) this.#reject(reason);
  }

  #settle(): boolean {
    if (this.isSettled) return false;
    this.isSettled = true;
    this.#stay();
    return true;
  }

  #faultOf(error: Error & { code?: string }): TransportError {
    const code = error.code ?? '';
    if (!this.#controller) return new TransportError(code === 'UND_ERR_CONNECT_TIMEOUT' ? 'timeout' : 'refused', error);
    const isHttp = ![code, error.name, error.message].some((text) => NOT_HTTP.test(text));
    return new TransportError(isHttp ? 'broken' : 'malformed', error);
  }
}

/** A timeout while waiting for a connection proves that nothing was sent. */
const unsent = (reason: unknown) =>
  reason instanceof GatewayError && reason.particulars.fault === 'timeout'
    ? new TransportError('timeout', reason)
    : reason;

/** How a code, name or message of undici's begins where what came is not HTTP. */
const NOT_HTTP =
  /^(HTTPParserError|ERR_ASSERTION|HPE_|UND_ERR_(HEADERS_OVERFLOW|RES_|INVALID_)|bad (upgrade|response)$)/;

const decoders = new Map([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
]);

const EMPTY = Buffer.alloc(0);

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** We ask for no content coding, but an upstream may still use one. The decoded size is bounded too. */
async function decoded(bytes: Buffer, coding: string, maxOutputLength: number): Promise<Body> {
  const decode = decoders.get(coding);
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
    const text = utf8.decode(bytes);
    return { text, isAscii: text.length === bytes.length };
  } catch {
    return { flaw: 'charset' };
  }
}
