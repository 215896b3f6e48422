import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { CallOptions } from '../support/http.ts';
import { openWorld, useWorld } from '../support/world.ts';
import { expectProblem } from '../http/problem.ts';
import { exampleBody } from '../support/examples.ts';
import {
  barrier,
  bytes,
  close,
  hang,
  hold,
  httpResponse,
  json,
  reply,
  reset,
  type Step,
} from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

const PATH = '/api/v2/subscription/';
const WRITE = { method: 'POST', path: '/api/v2/apikey/' } as const;
const GOOD = exampleBody('getSubscription');
const SIZE = Buffer.byteLength(GOOD);
const GZIP = { 'Content-Encoding': 'gzip' };

/** An answer whose body is these bytes. */
const packed = (body: Uint8Array, headers: Readonly<Record<string, string>> = {}, status = 200): Step => {
  const head = httpResponse(status, '', { 'Content-Length': String(body.length), ...headers });
  return bytes(Buffer.concat([head, body]));
};

const cut = (body: string, length: number) => httpResponse(200, body, { 'Content-Length': String(length) });

const chunked = (...chunks: readonly string[]) =>
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunks
    .map((chunk) => `${Buffer.byteLength(chunk).toString(16)}\r\n${chunk}\r\n`)
    .join('')}`;

/** JSON of that many levels. */
const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

/** JSON of that many bytes. */
const sized = (length: number) => `"${'x'.repeat(length - 2)}"`;

/** A byte every now and then, until the gateway's deadline ends it. */
const drip: Step = async (exchange) => {
  const { socket, gone } = exchange;
  await bytes(cut(' ', 1_000_000))(exchange);
  const timer = setInterval(() => socket.write(' '), 20);
  await gone;
  clearInterval(timer);
};

/** Steps are made at each use: those with a barrier or a connection cannot be used twice. */
const BROKEN: Readonly<Record<string, readonly [code: string, make: () => Step]>> = {
  'an empty 200': ['upstream_bad_response', () => json(200, '')],
  'HTML with 200': [
    'upstream_bad_response',
    () => json(200, '<html>Maintenance</html>', { 'Content-Type': 'text/html' }),
  ],
  'truncated JSON': ['upstream_bad_response', () => json(200, GOOD.slice(0, -1))],
  'JSON and something after it': ['upstream_bad_response', () => json(200, `${GOOD}{}`)],
  'JSON with NaN': ['upstream_bad_response', () => json(200, '{"id":NaN}')],
  'a body shorter than its length': ['upstream_bad_response', () => reply(bytes(cut(GOOD, SIZE + 500)), close())],
  'a reset in the middle of the body': ['upstream_bad_response', () => reply(bytes(cut(GOOD, SIZE + 500)), reset())],
  'chunks without an end': ['upstream_bad_response', () => reply(bytes(chunked(GOOD)), close())],
  'chunks that are none': ['upstream_bad_response', () => reply(bytes(`${chunked(GOOD)}zz\r\n`), close())],
  'bytes that are no UTF-8': [
    'upstream_bad_response',
    () => packed(Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xe9]), Buffer.from('"}')])),
  ],
  'nesting of 65': ['upstream_bad_response', () => json(200, nested(65))],
  'nesting of 100,000': ['upstream_bad_response', () => json(200, `{"a":${nested(100_000)}}`)],
  'gzip that is none': ['upstream_bad_response', () => json(200, GOOD, GZIP)],
  'gzip that is cut off': ['upstream_bad_response', () => packed(gzipSync(GOOD).subarray(0, -9), GZIP)],
  'in a coding that nobody knows': ['upstream_bad_response', () => json(200, GOOD, { 'Content-Encoding': 'compress' })],
  'in a known coding and an unknown one': [
    'upstream_bad_response',
    () => packed(gzipSync(GOOD), { 'Content-Encoding': 'compress, gzip' }),
  ],
  'in more codings than anybody uses': [
    'upstream_bad_response',
    () => json(200, GOOD, { 'Content-Encoding': 'br, br, br, br, br, br' }),
  ],
  'brotli that is none': ['upstream_bad_response', () => json(200, GOOD, { 'Content-Encoding': 'br' })],
  'zstd that is none': ['upstream_bad_response', () => json(200, GOOD, { 'Content-Encoding': 'zstd' })],
  'raw deflate': ['upstream_bad_response', () => packed(deflateRawSync(GOOD), { 'Content-Encoding': 'deflate' })],
  'gzip and something after it': [
    'upstream_bad_response',
    () => packed(Buffer.concat([gzipSync(GOOD), Buffer.from('{}')]), GZIP),
  ],
  'a status line of garbage': ['upstream_bad_response', () => reply(bytes('HELLO 200 OK\r\n\r\n{}'), close())],
  'an SMTP greeting': ['upstream_bad_response', () => reply(bytes('220 mail.example ESMTP\r\n'), close())],
  'a status below 100': ['upstream_bad_response', () => reply(bytes(`HTTP/1.1 099 No\r\n\r\n${GOOD}`), close())],
  'a header that is none': [
    'upstream_bad_response',
    () => reply(bytes(`HTTP/1.1 200 OK\r\nX Y\r\nContent-Length: 2\r\n\r\n{}`), close()),
  ],
  'two lengths': [
    'upstream_bad_response',
    () => reply(bytes(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} `), close()),
  ],
  'a head of 100 KB': ['upstream_bad_response', () => json(200, GOOD, { 'X-Long': 'x'.repeat(100_000) })],
  '101 Switching Protocols': [
    'upstream_bad_response',
    () => bytes('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
  ],
  '101 without another protocol': [
    'upstream_bad_response',
    () => reply(bytes('HTTP/1.1 101 Switching Protocols\r\n\r\n'), json(200, GOOD)),
  ],
  'a 304 that nobody asked for': ['upstream_bad_response', () => json(304)],
  'a close before an answer': ['upstream_unreachable', () => close()],
  'a reset before an answer': ['upstream_unreachable', () => reset()],
  'a close in the middle of the head': ['upstream_unreachable', () => reply(bytes('HTTP/1.1 200 OK\r\nX: '), close())],
  ...Object.fromEntries(
    [300, 301, 302, 303, 307, 308].map((status) => [
      `a redirect ${status}`,
      ['upstream_bad_response', () => json(status, GOOD, { Location: '/api/v2/referral/config/' })],
    ]),
  ),
};

describe('an answer that is', () => {
  const stage = useWorld();

  test.each(Object.entries(BROKEN))('%s is a bad one, and not kept', async (_, [code, make]) => {
    stage.upstream.on('POST /api/v2/apikey/', make());
    const write = await stage.call({ ...WRITE, token: secret(), body: {} });
    expect(expectProblem(write, { status: 502, code }).outcome).toBe('unknown');
    expect(stage.upstream.callsTo('POST /api/v2/apikey/')).toHaveLength(1);

    const token = secret();
    stage.upstream.on(`GET ${PATH}`, make());
    const read = await stage.call({ path: PATH, token });
    expect(expectProblem(read, { status: 502, code, instance: PATH }).retryable).toBe(true);

    const seen = stage.upstream.calls.length;
    stage.upstream.on(`GET ${PATH}`, json(200, GOOD));
    expect(await stage.call({ path: PATH, token })).toMatchObject({ status: 200, text: GOOD });
    expect(stage.upstream.calls).toHaveLength(seen + 1);
  });
});

test.each([403, 400])('a %i that is packed keeps its code', async (status) => {
  const { call, upstream } = await openWorld();
  const body = gzipSync(JSON.stringify({ detail: 'No.', code: '2fa_needed' }));
  upstream.on(`GET ${PATH}`, packed(body, GZIP, status));
  expectProblem(await call({ path: PATH, token: secret() }), { status, code: '2fa_needed' });
});

describe('an answer of more bytes than allowed', () => {
  const stage = useWorld({ UPSTREAM_MAX_BODY_BYTES: '1000' });

  test.each([
    ['by its length', () => json(200, sized(1001))],
    ['by what comes', () => reply(bytes(chunked(sized(600), sized(600))), hang())],
    ['without an end', () => reply(bytes('HTTP/1.1 200 OK\r\n\r\n'), bytes(' '.repeat(2000)), hang())],
    ['once it is unpacked', () => packed(gzipSync(sized(1001)), GZIP)],
    ['a thousand times, once it is unpacked', () => packed(gzipSync(Buffer.alloc(10_000_000, ' ')), GZIP)],
  ])('%s is a bad one, and its connection is given up', async (_, make) => {
    stage.upstream.on(`GET ${PATH}`, make());
    expectProblem(await stage.call({ path: PATH, token: secret() }), { status: 502, code: 'upstream_bad_response' });
    stage.upstream.on(`GET ${PATH}`, json(200, '{}'));
    expect((await stage.call({ path: PATH, token: secret() })).status).toBe(200);
  });

  test('is not: one of exactly as many', async () => {
    stage.upstream.on(`GET ${PATH}`, json(200, sized(1000)));
    expect((await stage.call({ path: PATH, token: secret() })).text).toBe(sized(1000));
  });
});

describe('an answer that is unusual but good', () => {
  const stage = useWorld();

  test.each([
    ['in chunks', () => bytes(`${chunked(GOOD.slice(0, 7), GOOD.slice(7))}0\r\n\r\n`)],
    ['in chunks with a trailer', () => bytes(`${chunked(GOOD)}0\r\nX-Trailer: x\r\n\r\n`)],
    ['until the connection closes', () => reply(bytes(`HTTP/1.1 200 OK\r\n\r\n${GOOD}`), close())],
    ['in HTTP/1.0', () => reply(bytes(`HTTP/1.0 200 OK\r\n\r\n${GOOD}`), close())],
    ['packed, though nobody asked', () => packed(gzipSync(GOOD), GZIP)],
    ['packed and called x-gzip', () => packed(gzipSync(GOOD), { 'Content-Encoding': ' X-GZIP' })],
    ['packed as zstd', () => packed(zstdCompressSync(GOOD), { 'Content-Encoding': 'zstd' })],
    ['packed as brotli', () => packed(brotliCompressSync(GOOD), { 'Content-Encoding': 'br' })],
    ['packed twice', () => packed(deflateSync(gzipSync(GOOD)), { 'Content-Encoding': 'gzip, deflate' })],
    ['packed in no way', () => json(200, GOOD, { 'Content-Encoding': 'identity' })],
    ['of another type', () => json(200, GOOD, { 'Content-Type': 'text/plain' })],
    ['without a type', () => bytes(`HTTP/1.1 200 OK\r\nContent-Length: ${SIZE}\r\n\r\n${GOOD}`)],
    ['without a reason', () => bytes(String(httpResponse(200, GOOD)).replace('200 OK', '200'))],
  ])('comes through: %s', async (_, make) => {
    stage.upstream.on(`GET ${PATH}`, make());
    const answer = await stage.call({ path: PATH, token: secret() });
    expect({ status: answer.status, text: answer.text }).toEqual({ status: 200, text: GOOD });
    expect(answer.headers).not.toHaveProperty('content-encoding');
  });

  test.each([' {"a" : 25.0}\n', nested(64), '"\\ud83d\\ude00é\\u0000"', '0', 'null', '[]', '[1e400,-0.0,1E+2]'])(
    'comes through as it is: %s',
    async (text) => {
      stage.upstream.on(`GET ${PATH}`, json(200, text));
      expect(await stage.call({ path: PATH, token: secret() })).toMatchObject({ status: 200, text });
    },
  );

  test('keeps no connection where what is packed ends and the answer does not', async () => {
    const body = Buffer.concat([brotliCompressSync(GOOD), Buffer.from('more')]);
    const headers = { 'Content-Encoding': 'br', 'Content-Length': String(body.length + 1) };
    stage.upstream.on(`GET ${PATH}`, reply(packed(body, headers), hang()));
    expect(await stage.call({ path: PATH, token: secret() })).toMatchObject({ status: 200, text: GOOD });
    const [call] = stage.upstream.calls;
    await stage.upstream.disconnected(call!);
  });

  test('of status 201 comes through, and is not kept', async () => {
    const token = secret();
    stage.upstream.on(`GET ${PATH}`, json(201, GOOD));
    for (let i = 0; i < 2; i += 1) {
      const answer = await stage.call({ path: PATH, token });
      expect(answer).toMatchObject({ status: 201, text: GOOD, headers: { 'cache-control': 'no-store' } });
    }
    expect(stage.upstream.calls).toHaveLength(2);
  });

  test('of status 204 to a read comes through without a body, and is not kept', async () => {
    const token = secret();
    stage.upstream.on(`GET ${PATH}`, json(204));
    for (let i = 0; i < 2; i += 1) {
      const answer = await stage.call({ path: PATH, token });
      expect(answer).toMatchObject({ status: 204, text: '', headers: { 'cache-control': 'no-store' } });
      expect(answer.headers).not.toHaveProperty('content-type');
    }
    expect(stage.upstream.calls).toHaveLength(2);
  });
});

describe('an answer that takes longer than UPSTREAM_TIMEOUT_MS', () => {
  const stage = useWorld({ UPSTREAM_TIMEOUT_MS: '2000', REQUEST_TIMEOUT_MS: '10000' });

  test.each([
    ['because nothing comes', () => hang()],
    ['because only half a head comes', () => reply(bytes('HTTP/1.1 200 OK\r\nX-'), hang())],
    ['because only half a body comes', () => reply(bytes(cut(GOOD, SIZE + 1)), hang())],
    ['because it drips', () => drip],
    ['because only 103 comes', () => reply(bytes('HTTP/1.1 103 Early Hints\r\n\r\n'), hang())],
  ])('%s, is none', async (_, make) => {
    const answered = async (match: string, options: CallOptions) => {
      stage.upstream.on(match, make());
      const pending = stage.call(options);
      const [call] = await stage.upstream.waitForCalls(1, match);
      let isCut = false;
      const gone = stage.upstream.disconnected(call!).then(() => (isCut = true));
      stage.advance(1.999);
      await stage.call({ path: '/livez' });
      expect(isCut).toBe(false);
      stage.advance(0.001);
      await gone;
      return expectProblem(await pending, { status: 504, code: 'upstream_timeout' });
    };
    const { outcome } = await answered('POST /api/v2/apikey/', { ...WRITE, token: secret(), body: {} });
    expect(outcome).toBe('unknown');
    await answered(`GET ${PATH}`, { path: PATH, token: secret() });
  });

  test('does not hold up others', async () => {
    const gate = barrier();
    stage.upstream.once(`GET ${PATH}`, reply(hold(gate), json(200, GOOD)));
    const slow = stage.call({ path: PATH, token: secret() });
    await gate.reached;
    stage.upstream.once(`GET ${PATH}`, json(200, GOOD));
    expect((await stage.call({ path: PATH, token: secret() })).status).toBe(200);
    gate.release();
    expect((await slow).status).toBe(200);
  });
});
