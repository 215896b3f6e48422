import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { exampleBody } from '../support/examples.ts';
import {
  bytes,
  close,
  drip,
  flood,
  hang,
  httpResponse,
  json,
  letRead,
  reply,
  reset,
  type Step,
} from '../support/scripted-upstream.ts';

/** What a read comes to: status and code, and what the log gives as the reason. */
type Outcome = readonly [status: number, code: string, reason: string];

const LOST: Outcome = [502, 'upstream_unreachable', 'reset'];
const LATE: Outcome = [504, 'upstream_timeout', 'timeout'];
const BAD: Outcome = [502, 'upstream_bad_response', 'bad_body'];
const SHORT: Outcome = [502, 'upstream_bad_response', 'reset'];
const LARGE: Outcome = [502, 'upstream_bad_response', 'too_large'];

interface Fault {
  readonly name: string;
  readonly outcome: Outcome;
  /** In place of a good answer. */
  readonly what: Step;
  /** The connection serves again: everybody knows where the answer has ended. */
  readonly isKept: boolean;
}

export const GOOD = exampleBody('getSubscription');
const SIZE = Buffer.byteLength(GOOD);
const MEBIBYTE = 1_048_576;
const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';
export const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`;

export const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

/** A good body behind a head with these lines. */
const withLines = (...lines: readonly string[]): Step =>
  bytes(`${HEAD}Content-Length: ${SIZE}\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n${GOOD}`);

const whole = (body: Uint8Array, headers: Readonly<Record<string, string>> = {}): Step =>
  bytes(Buffer.concat([httpResponse(200, '', { 'content-length': String(body.length), ...headers }), body]));

export const packed = (body: Uint8Array, coding = 'gzip'): Step => whole(body, { 'content-encoding': coding });

const cut = (...ends: readonly Step[]): Step => reply(bytes(httpResponse(200, GOOD).subarray(0, -9)), ...ends);

const raw = (text: string): Step => reply(bytes(text), close());

/** A JSON text of 50 MB, in 50 KB. */
const bomb = gzipSync(`"${'a'.repeat(50 * MEBIBYTE)}"`);

const ended = (outcome: Outcome, faults: Readonly<Record<string, Step>>): Fault[] =>
  Object.entries(faults).map(([name, what]) => ({ name, what, outcome, isKept: false }));

const kept = (outcome: Outcome, faults: Readonly<Record<string, Step>>): Fault[] =>
  ended(outcome, faults).map((fault) => ({ ...fault, isKept: true }));

/** Bytes that come as an answer, each once; what is made of an outcome is tested in process. */
export const FAULTS: readonly Fault[] = [
  ...ended(LOST, {
    'a reset before an answer': reset(),
    'a close before an answer': close(),
    'a close in the head': raw('HTTP/1.1 200 OK\r\nX: '),
    'a close behind a 103': raw('HTTP/1.1 103\r\n\r\n'),
  }),
  ...ended(LATE, {
    nothing: hang(),
    'half a head': reply(bytes('HTTP/1.1 200 OK\r\nX-'), hang()),
    'half a body': cut(hang()),
    'a dripping head': reply(bytes(HEAD), drip(`X-Drip: ${'x'.repeat(10_000)}`)),
    'a dripping body': reply(bytes(httpResponse(200, '', { 'content-length': '10000' })), drip(' '.repeat(10_000))),
    'only a 103': reply(bytes('HTTP/1.1 103\r\n\r\n'), hang()),
  }),
  ...ended(SHORT, {
    'a reset in the body': cut(letRead(), reset()),
    'a body shorter than its length': cut(close()),
    'chunks without an end': raw(CHUNKED + chunk(GOOD)),
    'no size of a chunk': bytes(`${CHUNKED}what?\r\n${GOOD}`),
  }),
  ...ended(BAD, {
    'two lengths': withLines('Content-Length: 2'),
    'length and chunks': withLines('Transfer-Encoding: chunked'),
    'a garbage line': bytes('hello?\r\n\r\n'),
    'a status below 100': raw(`HTTP/1.1 099 No\r\n\r\n${GOOD}`),
    'a garbage header': withLines('no colon'),
    'a 101': bytes('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
    'a 100': reply(bytes('HTTP/1.1 100\r\n\r\n'), json(200, GOOD)),
    'a 103 that speaks of closing': reply(bytes('HTTP/1.1 103\r\nConnection: close\r\n\r\n'), json(200, GOOD)),
    '103 without end': flood('HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n'),
    'a 103 of 20 KB': bytes(`HTTP/1.1 103\r\nX-Long: ${'x'.repeat(20_000)}`),
    'more codings than anybody uses': packed(Buffer.from(GOOD), 'br, br, br, br, br, br'),
    'a header of 100 KB': withLines(`X-Large: ${'x'.repeat(102_400)}`),
  }),
  ...ended(LARGE, {
    '50 MB': reply(
      bytes(httpResponse(200, '', { 'content-length': String(50 * MEBIBYTE) })),
      flood(' '.repeat(MEBIBYTE), 50),
    ),
    'chunks without end': reply(bytes(CHUNKED), flood(chunk(' '.repeat(65_536)))),
    'bytes without end': reply(bytes(`${HEAD}\r\n`), flood(' '.repeat(65_536))),
  }),
  ...kept(LARGE, { 'a gzip bomb': packed(bomb) }),
  ...kept(BAD, {
    'gzip that is none': packed(Buffer.from(GOOD)),
    'gzip cut short': packed(gzipSync(GOOD).subarray(0, -9)),
    'gzip and more': packed(Buffer.concat([gzipSync(GOOD), Buffer.from('{}')])),
    'raw deflate': packed(deflateRawSync(GOOD), 'deflate'),
    'an unknown coding': packed(Buffer.from(GOOD), 'compress'),
    'no UTF-8': whole(Uint8Array.of(0x22, 0xff, 0x22)),
    '100,000 levels': json(200, '['.repeat(100_000) + ']'.repeat(100_000)),
    HTML: json(200, '<!doctype html><h1>Back soon</h1>'),
  }),
];

/** Unusual, and as good as any; at the end of some the connection is gone. */
export const GOOD_ANSWERS: Readonly<Record<string, Step>> = {
  chunks: bytes(`${CHUNKED}${chunk(GOOD.slice(0, 7))}${chunk(GOOD.slice(7))}0\r\n\r\n`),
  'chunks with a trailer': bytes(`${CHUNKED}${chunk(GOOD)}0\r\nX-Trailer: x\r\n\r\n`),
  'until the connection closes': raw(`HTTP/1.1 200 OK\r\n\r\n${GOOD}`),
  'HTTP/1.0': raw(`HTTP/1.0 200 OK\r\n\r\n${GOOD}`),
  gzip: packed(gzipSync(GOOD)),
  'x-gzip': packed(gzipSync(GOOD), ' X-GZIP'),
  zstd: packed(zstdCompressSync(GOOD), 'zstd'),
  brotli: packed(brotliCompressSync(GOOD), 'br'),
  'packed twice': packed(deflateSync(gzipSync(GOOD)), 'gzip, deflate'),
  identity: packed(Buffer.from(GOOD), 'identity'),
  'another type': json(200, GOOD, { 'content-type': 'text/plain' }),
  'no reason': bytes(`HTTP/1.1 200\r\nContent-Length: ${SIZE}\r\n\r\n${GOOD}`),
  '1,000 headers': withLines(...Array.from({ length: 1_000 }, (_, at) => `X-${at}: ${at}`)),
  'a 102, an unknown one and 103s before it': reply(
    bytes(
      ['102 Processing', '199 What', '103', '103'].map((status) => `HTTP/1.1 ${status}\r\nLink: </x>\r\n\r\n`).join(''),
    ),
    json(200, GOOD),
  ),
};
