import { gzipSync } from 'node:zlib';
import { parseAccept } from 'hono/utils/accept';
import { PROBLEM_TYPE } from '../../core/errors.ts';
import type { Compress } from '../../http/request.ts';
import { recent } from '../../store/bounded.ts';

type Bytes = Uint8Array<ArrayBuffer>;
type Whole = string | Bytes;

/** Smaller ones fit into one packet anyway. */
const LEAST_BYTES = 1_024;

const isText = (type = '') => type === 'application/json' || type === PROBLEM_TYPE || type.startsWith('text/');

/** A character may have several bytes. */
const isLarge = (body: Whole | ReadableStream | null): body is Whole =>
  (typeof body === 'string' || body instanceof Uint8Array) &&
  (body.length >= LEAST_BYTES || Buffer.byteLength(body) >= LEAST_BYTES);

/** What the last headers said: there are few different ones. */
const known = recent<string, boolean>(100);

/** Whether `Accept-Encoding` prefers gzip to the body as it is (RFC 9110, section 12.5.3). */
function takesGzip(header = ''): boolean {
  const said = known.get(header);
  if (said !== undefined) return said;
  const weights = new Map(parseAccept(header).map(({ type, q }) => [type.toLowerCase(), q]));
  const others = weights.get('*') ?? 0;
  const weight = weights.get('gzip') ?? others;
  const takes = weight > 0 && weight >= (weights.get('identity') ?? others);
  known.set(header, takes);
  return takes;
}

/** CPU for 2 and 14 kB: 20 and 40 µs. Level 6 takes 20 and 67 for 4 % less; zlib's threads, at any level, 120 and 150 or more. */
const LEVEL = 3;

/** What the objects of one body that is kept take. */
const KEPT_BYTES = 400;

/**
 * Compresses what clients take as gzip. What a copy becomes is made once, and kept for as long as the copy. When there are too
 * many, all are forgotten.
 */
export class Compressed {
  readonly #maxBytes: number;
  #kept = new WeakMap<object, { readonly body: Whole; readonly bytes: Bytes }>();
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  compress: Compress = (request, { status, body, copy, isSecret }, headers, isFirst) => {
    if (!request.route.mayBeCompressed || isSecret) return undefined;
    const isWorthIt = isText(headers['Content-Type']) && isLarge(body);
    if (isWorthIt || status === 304)
      headers['Vary'] = headers['Vary'] === undefined ? 'Accept-Encoding' : `${headers['Vary']}, Accept-Encoding`;
    if (!isWorthIt || !isFirst || !takesGzip(request.header('accept-encoding'))) return undefined;
    headers['Content-Encoding'] = 'gzip';
    if (headers['ETag'] !== undefined) headers['ETag'] = `W/${headers['ETag']}`;
    return this.#of(body, copy ?? (typeof body === 'string' ? undefined : body));
  };

  #of(body: Whole, source: object | undefined): Bytes {
    const before = source && this.#kept.get(source);
    if (before?.body === body) return before.bytes;
    // A copy: zlib's own result keeps all of the 16 KB alive that it was written into.
    const bytes = new Uint8Array(gzipSync(body, { level: LEVEL }));
    if (!source) return bytes;
    const isHeld = source === body || ('text' in source && source.text === body);
    const size = KEPT_BYTES + bytes.length + (isHeld ? 0 : body.length);
    if (this.#size + size > this.#maxBytes) [this.#kept, this.#size] = [new WeakMap(), 0];
    if (size > this.#maxBytes) return bytes;
    this.#kept.set(source, { body, bytes });
    this.#size += size;
    return bytes;
  }
}
