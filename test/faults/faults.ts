import { gzipSync } from 'node:zlib';
import type { Reason } from '../../src/core/errors.ts';
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

/** Something that goes wrong at the upstream, and what contract.md makes of it. */
export interface Fault {
  readonly name: string;
  /** What the upstream does in place of a 200 with this body; or where it is not reached at all, why. */
  readonly what: ((good: string) => Step) | 'refused' | 'blackholed';
  /** What a read without a copy comes to; no code where the answer counts as good. */
  readonly read: readonly [status: number, code?: string];
  /** What the log gives as the reason; none where the upstream has not failed. */
  readonly reason?: Reason;
  /** A read is tried twice more. */
  readonly isRetried?: true;
  /** The gateway's own patience ends it. */
  readonly runsToDeadline?: true;
  /** Nobody can tell any more where on its connection an answer begins. */
  readonly endsConnection?: true;
  /** Holds all calls of its account back for a while. */
  readonly holdsAccount?: true;
}

const MEBIBYTE = 1_048_576;

const FIFTY_MB = 50 * MEBIBYTE;

const UNREACHABLE = [502, 'upstream_unreachable'] as const;
const UNREADABLE = [502, 'upstream_bad_response'] as const;
const TIMEOUT = [504, 'upstream_timeout'] as const;

const ENDS = { endsConnection: true } as const;
const LOST = { read: UNREACHABLE, reason: 'reset', isRetried: true, ...ENDS } as const;
const GARBLED = { read: UNREADABLE, reason: 'bad_body', ...ENDS } as const;
const LATE = { read: TIMEOUT, reason: 'timeout', runsToDeadline: true, ...ENDS } as const;

/** The head of a whole answer with this body, or with no length but chunks. */
const headOf = (good: string) => httpResponse(200, good).toString('latin1').split('\r\n\r\n')[0] ?? '';
const CHUNKED = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';

const withHeaders = (good: string, lines: readonly string[]): Step =>
  bytes(`${headOf(good)}\r\n${lines.join('\r\n')}\r\n\r\n${good}`);

const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

const packed = (body: Uint8Array): Step => {
  const headers = { 'Content-Encoding': 'gzip', 'Content-Length': String(body.length) };
  return reply(bytes(httpResponse(200, '', headers)), bytes(body));
};

/** What another account must never get to see. */
export const POISON = httpResponse(200, { poison: true });

/** A JSON text of 50 MB, in 50 KB. Packed when it is first wanted. */
let bomb: Buffer | undefined;
const gzipBomb = () => (bomb ??= gzipSync(`"${'a'.repeat(FIFTY_MB)}"`));

export const POLLUTION = '"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}';

const NETWORK: readonly Fault[] = [
  { name: 'refused', what: 'refused', read: UNREACHABLE, reason: 'refused', isRetried: true },
  { name: 'blackholed', what: 'blackholed', read: TIMEOUT, reason: 'timeout', runsToDeadline: true },
  { name: 'reset before an answer', what: reset, ...LOST },
  { name: 'closed before an answer', what: close, ...LOST },
  { name: 'hang', what: hang, ...LATE },
  {
    name: 'header drip',
    what: () => reply(bytes('HTTP/1.1 200 OK\r\n'), drip(`X-Drip: ${'x'.repeat(10_000)}`)),
    ...LATE,
  },
  {
    name: 'body drip',
    what: () => reply(bytes(httpResponse(200, '', { 'Content-Length': '10000' })), drip(' '.repeat(10_000))),
    ...LATE,
  },
];

const FRAMING: readonly Fault[] = [
  {
    name: 'reset in mid body',
    what: (good) => reply(bytes(httpResponse(200, good).subarray(0, -9)), letRead(), reset()),
    ...GARBLED,
    reason: 'reset',
  },
  {
    name: 'short body',
    what: (good) => reply(bytes(httpResponse(200, good).subarray(0, -9)), close()),
    ...GARBLED,
    reason: 'reset',
  },
  {
    name: 'short chunks',
    what: (good) => reply(bytes(`${CHUNKED}${chunk(good)}`), close()),
    ...GARBLED,
    reason: 'reset',
  },
  {
    name: 'extra bytes after the length',
    what: (good) => bytes(Buffer.concat([httpResponse(200, good), POISON])),
    read: [200],
    ...ENDS,
  },
  { name: 'two lengths', what: (good) => withHeaders(good, ['Content-Length: 2']), ...GARBLED },
  {
    name: 'length and chunks',
    what: (good) => withHeaders(`${chunk(good)}0\r\n\r\n`, ['Transfer-Encoding: chunked']),
    ...GARBLED,
  },
  { name: 'no chunk size', what: (good) => bytes(`${CHUNKED}what?\r\n${good}`), ...GARBLED, reason: 'reset' },
  { name: 'garbage line', what: () => bytes('hello?\r\n\r\n'), ...GARBLED },
  { name: 'garbage header', what: (good) => withHeaders(good, ['no colon']), ...GARBLED },
  {
    name: '101',
    what: () => bytes('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
    ...GARBLED,
  },
  {
    name: 'interim answers before it',
    what: (good) =>
      reply(bytes(['102', '103'].map((status) => `HTTP/1.1 ${status}\r\n\r\n`).join('')), json(200, good)),
    read: [200],
  },
  { name: '100 before it', what: (good) => reply(bytes('HTTP/1.1 100\r\n\r\n'), json(200, good)), ...GARBLED },
  {
    name: '204 with a body',
    what: () => reply(bytes(`HTTP/1.1 204 No Content\r\nContent-Length: ${POISON.length}\r\n\r\n`), bytes(POISON)),
    read: [204],
    ...ENDS,
  },
];

const SIZE: readonly Fault[] = [
  { name: '100 KB header', what: (good) => withHeaders(good, [`X-Large: ${'x'.repeat(102_400)}`]), ...GARBLED },
  {
    name: '1,000 headers',
    what: (good) =>
      withHeaders(
        good,
        Array.from({ length: 1000 }, (_, index) => `X-${index}: ${index}`),
      ),
    read: [200],
  },
  {
    name: '50 MB',
    what: () =>
      reply(bytes(httpResponse(200, '', { 'Content-Length': String(FIFTY_MB) })), flood(' '.repeat(MEBIBYTE), 50)),
    ...GARBLED,
    reason: 'too_large',
  },
  {
    name: 'endless chunks',
    what: () => reply(bytes(CHUNKED), flood(chunk(' '.repeat(65_536)))),
    ...GARBLED,
    reason: 'too_large',
  },
  { name: 'gzip bomb', what: () => packed(gzipBomb()), read: UNREADABLE, reason: 'too_large' },
];

const CONTENT: readonly Fault[] = [
  { name: 'bad gzip', what: () => packed(Buffer.from('no gzip')), read: UNREADABLE, reason: 'bad_body' },
  { name: 'short gzip', what: (good) => packed(gzipSync(good).subarray(0, -9)), read: UNREADABLE, reason: 'bad_body' },
  {
    name: '100,000 levels deep',
    what: () => json(200, `${'['.repeat(100_000)}${']'.repeat(100_000)}`),
    read: UNREADABLE,
    reason: 'bad_body',
  },
  {
    name: 'HTML with 200',
    what: () => json(200, '<!doctype html><h1>Back soon</h1>', { 'Content-Type': 'text/html' }),
    read: UNREADABLE,
    reason: 'bad_body',
  },
  { name: 'nothing with 200', what: () => json(200, ''), read: UNREADABLE, reason: 'bad_body' },
  {
    name: 'invalid UTF-8',
    what: () => reply(bytes(httpResponse(200, '', { 'Content-Length': '3' })), bytes(Uint8Array.of(0x22, 0xff, 0x22))),
    read: UNREADABLE,
    reason: 'bad_body',
  },
  {
    name: '__proto__ keys',
    what: (good) =>
      json(
        200,
        good.replace('{', () => `{${POLLUTION},`),
      ),
    read: [200],
  },
];

const STATUS: readonly Fault[] = [
  { name: '500', what: () => json(500, { detail: 'x' }), read: UNREADABLE, reason: 'status' },
  { name: '502', what: () => json(502, '<h1>Bad gateway</h1>'), read: UNREADABLE, reason: 'status', isRetried: true },
  { name: '503', what: () => json(503, ''), read: [503, 'upstream_unavailable'], reason: 'status', isRetried: true },
  { name: '504', what: () => json(504, ''), read: TIMEOUT, reason: 'status', isRetried: true },
  {
    name: '429',
    what: () => json(429, '', { 'Retry-After': '7' }),
    read: [429, 'rate_limited'],
    holdsAccount: true,
  },
  { name: '401', what: () => json(401, { detail: 'Invalid token.' }), read: [401, 'unauthenticated'] },
  { name: '403', what: () => json(403, { detail: 'No.', code: '2fa_needed' }), read: [403, '2fa_needed'] },
  { name: '404', what: () => json(404, { detail: 'Not found.' }), read: [404, 'not_found'] },
  { name: '302', what: () => json(302, '', { Location: 'http://127.0.0.1:9/' }), read: UNREADABLE, reason: 'status' },
];

export const faults: readonly Fault[] = [...NETWORK, ...FRAMING, ...SIZE, ...CONTENT, ...STATUS];
