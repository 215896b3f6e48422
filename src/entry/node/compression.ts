import { gzipSync } from 'node:zlib';
import { parseAccept } from 'hono/utils/accept';
import { PROBLEM_TYPE } from '../../core/errors.ts';
import type { Compress } from '../../middleware/sending.ts';
import { recent } from '../../store/bounded.ts';

type Whole = string | Uint8Array<ArrayBuffer>;

export type Gzip = (body: Whole) => Uint8Array<ArrayBuffer>;

/** CPU for 2 and 14 kB: 20 and 40 µs. Level 6 takes 20 and 67 for 4 % less; zlib's threads, at any level, 120 and 150 or more. */
const LEVEL = 3;

/** A copy: zlib's own result keeps all of the 16 KB alive that it was written into. */
const gzip: Gzip = (body) => new Uint8Array(gzipSync(body, { level: LEVEL }));

/** Smaller ones fit into one packet anyway. */
const LEAST_BYTES = 1_024;

/** Compresses what clients take as gzip. What is made of a copy is made once, and kept with it: at most so many bytes. */
export function compressing(maxBytes: number, make: Gzip = gzip): Compress {
  const kept = new Kept(maxBytes, make);
  const isTaken = remembering(takesGzip);
  return (request, { status, body, copy, isSecret }, headers, isFirst) => {
    if (!request.route.mayBeCompressed || isSecret) return undefined;
    const isWorthIt = isText(headers['Content-Type']) && isLarge(body);
    if (isWorthIt || status === 304) headers['Vary'] = joined(headers['Vary'], 'Accept-Encoding');
    if (!isWorthIt || !isFirst || !isTaken(request.header('accept-encoding'))) return undefined;
    headers['Content-Encoding'] = 'gzip';
    if (headers['ETag'] !== undefined) headers['ETag'] = `W/${headers['ETag']}`;
    return kept.of(body, copy);
  };
}

const joined = (names: string | undefined, name: string) => (names === undefined ? name : `${names}, ${name}`);

const isText = (type = '') => type === 'application/json' || type === PROBLEM_TYPE || type.startsWith('text/');

/** A character has up to three bytes. */
function isLarge(body: Whole | ReadableStream | null): body is Whole {
  if (body instanceof Uint8Array) return body.length >= LEAST_BYTES;
  if (typeof body !== 'string' || body.length * 3 < LEAST_BYTES) return false;
  return body.length >= LEAST_BYTES || Buffer.byteLength(body) >= LEAST_BYTES;
}

/** Whether `Accept-Encoding` prefers gzip to the body as it is (RFC 9110, section 12.5.3). */
function takesGzip(header: string): boolean {
  const weights = new Map(parseAccept(header).map(({ type, q }) => [type.toLowerCase(), q]));
  const others = weights.get('*') ?? 0;
  const weight = weights.get('gzip') ?? others;
  return weight > 0 && weight >= (weights.get('identity') ?? others);
}

const MOST_REMEMBERED = 100;
const LONGEST_REMEMBERED = 100;

/** The same, with what it said of the last headers: there are few different ones. */
function remembering(takes: (header: string) => boolean): (header: string | undefined) => boolean {
  const known = recent<string, boolean>(MOST_REMEMBERED);
  return (header) => {
    if (header === undefined) return false;
    const said = known.get(header) ?? takes(header);
    if (header.length <= LONGEST_REMEMBERED) known.set(header, said);
    return said;
  };
}

interface Packed {
  readonly body: Whole;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Objects. */
const KEPT_BYTES = 400;

/** Bodies that are kept compressed, each for as long as what it was made of. When there are too many, all are forgotten. */
class Kept {
  readonly #maxBytes: number;
  readonly #make: Gzip;
  #kept = new WeakMap<object, Packed>();
  #bytes = 0;

  constructor(maxBytes: number, make: Gzip) {
    this.#maxBytes = maxBytes;
    this.#make = make;
  }

  of(body: Whole, copy: object | undefined): Uint8Array<ArrayBuffer> {
    const source = copy ?? (typeof body === 'string' ? undefined : body);
    if (!source) return this.#make(body);
    const before = this.#kept.get(source);
    if (before?.body === body) return before.bytes;
    const bytes = this.#make(body);
    const isHeld = source === body || ('text' in source && source.text === body);
    this.#keep(source, { body, bytes }, KEPT_BYTES + bytes.length + (isHeld ? 0 : body.length));
    return bytes;
  }

  #keep(source: object, packed: Packed, size: number): void {
    if (this.#bytes + size > this.#maxBytes) [this.#kept, this.#bytes] = [new WeakMap(), 0];
    if (size > this.#maxBytes) return;
    this.#kept.set(source, packed);
    this.#bytes += size;
  }
}
