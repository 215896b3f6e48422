import { beforeEach, describe, expect, test } from 'vitest';
import { expectBare, expectCommonHeaders, expectProblem } from './problem.ts';
import { exampleBody } from '../support/examples.ts';
import { openSocket, requestText } from '../support/raw-client.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { useWorld } from '../support/world.ts';

const stage = useWorld();

const PATH = '/api/v2/subscription/';
const HOST = 'Host: gateway.example\r\n';

beforeEach(() => {
  stage.upstream.on(`GET ${PATH}`, json(200, exampleBody('getSubscription')));
});

const authorization = () => `Authorization: Token ${secret()}\r\n`;

/** A head with these lines in it, and a body behind it. */
const head = (startLine: string, lines: string, body = '') =>
  `${startLine} HTTP/1.1\r\n${lines}${authorization()}\r\n${body}`;

const get = (lines: string) => head(`GET ${PATH}`, lines);

const expectServing = async () => {
  expect((await stage.raw(get(HOST))).status).toBe(200);
};

describe('a head that is refused', () => {
  test.each([
    ['no Host', () => get('')],
    ['no Host, in HTTP/1.0', () => get('').replace('1.1', '1.0')],
    ['an empty Host', () => get('Host:\r\n')],
    ['two Hosts', () => get(`${HOST}Host: other.example\r\n`)],
    ['two equal Hosts', () => get(HOST + HOST.toLowerCase())],
    ['a Host with a path', () => get('Host: gateway.example/x\r\n')],
    ['a Host with a user', () => get('Host: user@gateway.example\r\n')],
    ['a Host with a query', () => get('Host: gateway.example?x\r\n')],
    ['a Host with a space', () => get('Host: gateway example\r\n')],
    ['a Host with a comma', () => get('Host: one.example, two.example\r\n')],
    ['a Host with a bad port', () => get('Host: gateway.example:x\r\n')],
    ['a Host with a port out of range', () => get('Host: gateway.example:99999\r\n')],
    ['a Host with an encoded character', () => get('Host: gateway%2eexample\r\n')],
    ['a Host with a quote', () => get('Host: gateway".example\r\n')],
    ['a Host that is half an address', () => get('Host: [::1\r\n')],
    ['a Host that looks like an IPv6 address', () => get('Host: [1:2]\r\n')],
    ['a Host that looks like an IPv4 address', () => get('Host: 1.2.3.4.5\r\n')],
    ['a Host with a number out of range', () => get('Host: 256.256.256.256\r\n')],
    ['a Host of letters that are not ASCII', () => get('Host: gätewäy.example\r\n')],
    ['another host in the target', () => head(`GET http://other.example${PATH}`, HOST)],
    ['the host in the target with a user', () => head(`GET http://x@gateway.example${PATH}`, HOST)],
    ['another port in the target', () => head(`GET http://gateway.example:81${PATH}`, HOST)],
    ['another scheme in the target', () => head('GET ftp://gateway.example/', HOST)],
    ['no path but an asterisk', () => head('OPTIONS *', HOST)],
    ['HTTP/0.9', () => get(HOST).replace('1.1', '0.9')],
    ['HTTP/2.0', () => get(HOST).replace('1.1', '2.0')],
    ['a coding that nobody knows', () => get(`${HOST}Transfer-Encoding: x\r\n`)],
    ['a coding before the chunks', () => get(`${HOST}Transfer-Encoding: gzip, chunked\r\n`)],
    [
      'a coding before the chunks, by itself',
      () => get(`${HOST}Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n`),
    ],
    ['no coding before the chunks', () => get(`${HOST}Transfer-Encoding: , chunked\r\n`)],
    ['identity before the chunks', () => get(`${HOST}Transfer-Encoding: identity, chunked\r\n`)],
    ['chunks with a parameter', () => get(`${HOST}Transfer-Encoding: chunked;q=1\r\n`)],
    ['chunks in quotes', () => get(`${HOST}Transfer-Encoding: "chunked"\r\n`)],
    ['chunks in HTTP/1.0', () => get(`${HOST}Transfer-Encoding: chunked\r\n`).replace('1.1', '1.0')],
    ['no version', () => `GET ${PATH}\r\n\r\n`],
  ])('because of %s', async (_, bytes) => {
    expectProblem(await stage.raw(bytes()), { status: 400, code: 'bad_request' });
    expect(stage.upstream.calls).toEqual([]);
    await expectServing();
  });

  test.each(['GET', 'HEAD'])('with the length of what it says: %s', async (method) => {
    const socket = await openSocket(stage.gateway.port);
    await socket.write(head(`${method} ${PATH}`, 'Host: a/b\r\n'));
    const { headers } = await socket.readResponse({ head: method === 'HEAD' });
    socket.destroy();
    expect(Number(headers['content-length'])).toBeGreaterThan(100);
    expect(headers).not.toHaveProperty('transfer-encoding');
  });

  test.each([
    ['a target without a slash', () => head('GET api/v2/subscription/', HOST)],
    ['a bad version', () => get(HOST).replace('HTTP/1.1', 'HTTP/3.7')],
    ['HTTP/1.2', () => get(HOST).replace('1.1', '1.2')],
    ['HTTP/3.0', () => get(HOST).replace('1.1', '3.0')],
    ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a line that is no header', () => get(`${HOST}what is this\r\n`)],
    ['a header name with a space', () => get(`${HOST}X Name: x\r\n`)],
    ['a space before the colon', () => get(`${HOST}X-Name : x\r\n`)],
    ['a null in a header', () => get(`${HOST}X-Name: a\0b\r\n`)],
    ['a lone line feed in a header', () => get(`${HOST}X-Name: a\nX-Other: b\r\n`)],
    ['a folded header', () => get(`${HOST}X-Name: a\r\n b\r\n`)],
    ['length and chunks', () => get(`${HOST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n`)],
    ['chunks and length', () => get(`${HOST}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n`)],
    ['two lengths', () => get(`${HOST}Content-Length: 5\r\nContent-Length: 6\r\n`)],
    ['two lengths in one', () => get(`${HOST}Content-Length: 5, 6\r\n`)],
    ['a length below zero', () => get(`${HOST}Content-Length: -1\r\n`)],
    ['a length in hexadecimal', () => get(`${HOST}Content-Length: 0x5\r\n`)],
    ['a coding after the chunks', () => get(`${HOST}Transfer-Encoding: chunked, identity\r\n`)],
    ['two equal lengths', () => get(`${HOST}Content-Length: 5\r\nContent-Length: 5\r\n`)],
    ['two equal lengths in one', () => get(`${HOST}Content-Length: 5, 5\r\n`)],
    ['a length with a sign', () => get(`${HOST}Content-Length: +5\r\n`)],
    ['a length that is empty', () => get(`${HOST}Content-Length:\r\n`)],
    ['a length beyond all numbers', () => get(`${HOST}Content-Length: 99999999999999999999999\r\n`)],
    ['chunks twice', () => get(`${HOST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n`)],
    ['chunks twice in one', () => get(`${HOST}Transfer-Encoding: chunked, chunked\r\n`)],
    ['an empty coding', () => get(`${HOST}Transfer-Encoding:\r\n`)],
    ['an empty coding and a length', () => get(`${HOST}Transfer-Encoding:\r\nContent-Length: 5\r\n`)],
    ['a coding after a vertical tab', () => get(`${HOST}Transfer-Encoding:\x0bchunked\r\n`)],
    ['line feeds for line ends', () => get(HOST).replaceAll('\r\n', '\n')],
    ['a lone carriage return in a header', () => get(`${HOST}X-Name: a\rX-Other: b\r\n`)],
    ['a header without a name', () => get(`${HOST}: x\r\n`)],
    ['a first header that is indented', () => get(` ${HOST}`)],
    ['bytes that are no HTTP', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
    ['an unknown method', () => head(`FOO ${PATH}`, HOST)],
    ['a method in small letters', () => head(`get ${PATH}`, HOST)],
    ['a method for proxies', () => head('CONNECT elsewhere.example:443', HOST)],
  ])('because Node cannot read it: %s', async (_, bytes) => {
    expectBare(await stage.raw(bytes()), 400);
    expect(stage.upstream.calls).toEqual([]);
    expect(stage.gateway.lines).toEqual([]);
    await expectServing();
  });

  test('because of a length behind the chunks', async () => {
    const lines = `${HOST}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n`;
    const chunks = '2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n';
    expectBare(await stage.raw(head('POST /api/v2/apikey/', lines, chunks)), 400);
    expect(stage.upstream.calls).toEqual([]);
  });

  test.each(['1.2.3.4.5', '256.256.256.256', 'gateway.example:99999'])(
    'because of a Host that no URL can have, before a body is read: %s',
    async (host) => {
      const lines = `Host: ${host}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n`;
      expectProblem(await stage.raw(head('POST /api/v2/apikey/', lines, '{}')), { status: 400, code: 'bad_request' });
      expect(stage.upstream.calls).toEqual([]);
    },
  );

  test.each(['zz\r\n{}\r\n0\r\n\r\n', '2\r\n{}zz\r\n0\r\n\r\n', '-2\r\n{}\r\n0\r\n\r\n'])(
    'because of chunks that are none: %j',
    async (chunks) => {
      const lines = `${HOST}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n`;
      expectBare(await stage.raw(head('POST /api/v2/apikey/', lines, chunks)), 400);
      expect(stage.upstream.calls).toEqual([]);
      await expectServing();
    },
  );

  test.each([
    ['one header of 16 KB', () => get(`${HOST}X-Long: ${'x'.repeat(16_384)}\r\n`)],
    ['one header of 20 KB', () => get(`${HOST}X-Long: ${'x'.repeat(20_000)}\r\n`)],
    ['many headers of 20 KB together', () => get(HOST + `X-Many: ${'x'.repeat(50)}\r\n`.repeat(400))],
    ['a path of 20 KB', () => head(`GET /${'x'.repeat(20_000)}`, HOST)],
    ['a query of 20 KB', () => head(`GET ${PATH}?${'x'.repeat(20_000)}`, HOST)],
    ['257 headers', () => get(HOST + 'X:\r\n'.repeat(255))],
    ['900 headers and another host behind them', () => get(`${HOST}${'X:\r\n'.repeat(900)}Host: other.example\r\n`)],
  ])('because of %s', async (_, bytes) => {
    expectProblem(await stage.raw(bytes()), { status: 431, code: 'request_header_fields_too_large' });
    expect(stage.upstream.calls).toEqual([]);
    await expectServing();
  });

  test.each([
    ['one header of 70 KB', () => get(`${HOST}X-Long: ${'x'.repeat(70_000)}\r\n`)],
    ['3,000 headers', () => get(HOST + 'X:\r\n'.repeat(3_000))],
  ])('because of %s, which is more than Node reads', async (_, bytes) => {
    expectBare(await stage.raw(bytes()), 431);
    expect(stage.upstream.calls).toEqual([]);
    expect(stage.gateway.lines).toEqual([]);
    await expectServing();
  });

  test.each([
    ['TRACE', PATH, 405, 'method_not_allowed'],
    ['PROPFIND', PATH, 405, 'method_not_allowed'],
    ['PUT', PATH, 405, 'method_not_allowed'],
    ['PROPFIND', '/nothing', 501, 'method_not_implemented'],
    ['TRACE', '/nothing', 501, 'method_not_implemented'],
    ['PUT', '/nothing', 404, 'unknown_endpoint'],
  ])('because of the method %s at %s', async (method, target, status, code) => {
    const answer = await stage.raw(head(`${method} ${target}`, HOST));
    expectProblem(answer, { status, code });
    expect(answer.headers['allow']).toBe(status === 405 ? 'GET, HEAD' : undefined);
    expect(stage.upstream.calls).toEqual([]);
    await expectServing();
  });
});

describe('a head that is served', () => {
  test.each([
    ['the host in the target', () => head(`GET http://gateway.example${PATH}`, HOST)],
    ['the host in the target in another case', () => head(`GET HTTP://Gateway.EXAMPLE${PATH}`, HOST)],
    ['a Host with a port', () => get('Host: gateway.example:8787\r\n')],
    ['a Host that ends with a dot', () => get('Host: gateway.example.\r\n')],
    ['a Host of one word', () => get('Host: localhost\r\n')],
    ['a Host with an underscore', () => get('Host: my_gateway\r\n')],
    ['a Host in capitals', () => get('Host: GATEWAY.example\r\n')],
    ['an IPv4 address', () => get('Host: 198.51.100.7:80\r\n')],
    ['an IPv6 address', () => get('Host: [2001:db8::1]:8787\r\n')],
    ['a wish to upgrade', () => get(`${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n`)],
    [
      'a wish for HTTP/2',
      () => get(`${HOST}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n`),
    ],
    ['a wish to go on', () => get(`${HOST}Expect: 100-continue\r\n`)],
    ['a wish that nobody knows', () => get(`${HOST}Expect: a-miracle\r\n`)],
    ['headers that Connection takes away', () => get(`${HOST}Connection: close, authorization, host\r\n`)],
    ['a body that GET has not', () => `${get(`${HOST}Content-Length: 5\r\n`)}GET /`],
    [
      'a body in chunks that GET has not',
      () => `${get(`${HOST}Transfer-Encoding: chunked\r\n`)}5\r\nGET /\r\n0\r\n\r\n`,
    ],
    ['one header of 16,000 characters', () => get(`${HOST}X-Long: ${'x'.repeat(16_000)}\r\n`)],
    ['256 headers', () => get(HOST + 'X:\r\n'.repeat(254))],
    ['chunks in capitals', () => `${get(`${HOST}Transfer-Encoding: CHUNKED\r\n`)}0\r\n\r\n`],
    ['an X-Forwarded-Host', () => get(`${HOST}X-Forwarded-Host: other.example\r\nX-Forwarded-Proto: gopher\r\n`)],
  ])('with %s', async (_, bytes) => {
    const answer = await stage.raw(bytes());
    expect({ status: answer.status, body: answer.body }).toEqual({ status: 200, body: exampleBody('getSubscription') });
    expectCommonHeaders(answer);
    expect(stage.upstream.calls.map(({ target, headers }) => [target, headers['host']])).toEqual([
      [PATH, new URL(stage.upstream.url).host],
    ]);
    await expectServing();
  });

  test('after which the client wants the connection closed', async () => {
    const socket = await openSocket(stage.gateway.port);
    await socket.write(get(`${HOST}Connection: close\r\n`));
    const answer = await socket.readResponse();
    expect(answer).toMatchObject({ status: 200, headers: { connection: 'close' } });
    await socket.closed;
    expect(socket.unread()).toBe('');
  });

  test.each([
    ['', 'close'],
    ['Connection: keep-alive\r\n', 'keep-alive'],
  ])('in HTTP/1.0, and the connection is kept where the client asks for that: %j', async (lines, connection) => {
    const socket = await openSocket(stage.gateway.port);
    await socket.write(get(HOST + lines).replace('HTTP/1.1', 'HTTP/1.0'));
    const answer = await socket.readResponse();
    expect(answer).toMatchObject({ status: 200, body: exampleBody('getSubscription'), headers: { connection } });
    if (connection === 'close') await socket.closed;
    socket.destroy();
  });

  test('by HEAD has the headers of GET and no body', async () => {
    const [whole, part] = [await stage.raw(get(HOST)), await stage.raw(get(HOST).replace('GET', 'HEAD'))];
    expect(part.body).toBe('');
    expect(Object.keys(part.headers).toSorted()).toEqual(Object.keys(whole.headers).toSorted());
    for (const name of ['content-length', 'content-type', 'etag', 'cache-control'])
      expect(part.headers[name]).toBe(whole.headers[name]);
  });

  test('with a body only after 100 Continue', async () => {
    stage.upstream.on('POST /api/v2/apikey/', json(200, exampleBody('createApiKey')));
    const socket = await openSocket(stage.gateway.port);
    const lines = `${HOST}Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n`;
    await socket.write(head('POST /api/v2/apikey/', lines));
    await socket.write('{}');
    expect((await socket.readResponse()).status).toBe(200);
    socket.destroy();
  });
});

describe('two credentials', () => {
  test('are none, however far apart they stand', async () => {
    const lines = `${HOST}${authorization()}${'X:\r\n'.repeat(200)}`;
    expectProblem(await stage.raw(get(lines)), { status: 401, code: 'unauthenticated' });
    expect(stage.upstream.calls).toEqual([]);
  });

  test('are one when the other stands behind the body', async () => {
    stage.upstream.on('POST /api/v2/apikey/', json(200, exampleBody('createApiKey')));
    const lines = `${HOST}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n`;
    const behind = `2\r\n{}\r\n0\r\n${authorization()}X-Request-Id: behind\r\n\r\n`;
    const request = head('POST /api/v2/apikey/', lines, behind);
    expect((await stage.raw(request)).status).toBe(200);
    const [, token] = /Authorization: (.*)\r\n/.exec(request) ?? [];
    expect(stage.upstream.calls[0]?.headers['authorization']).toBe(token);
    expect(stage.upstream.calls[0]?.headers['x-request-id']).not.toBe('behind');
  });
});

describe('a connection', () => {
  test('serves one request after the other, whatever becomes of them', async () => {
    const socket = await openSocket(stage.gateway.port);
    const requests = [
      [get(HOST), 200],
      [head('GET /nothing', HOST), 404],
      [head(`PUT ${PATH}`, HOST), 405],
      [get('Host: a b\r\n'), 400],
      [head('TRACE /nothing', HOST), 501],
      [requestText({ target: PATH }), 401],
      [requestText({ target: PATH, body: 'x'.repeat(100) }), 401],
      [get(HOST), 200],
    ] as const;
    for (const [bytes, status] of requests) {
      await socket.write(bytes);
      const answer = await socket.readResponse();
      expect(answer.status).toBe(status);
      expectCommonHeaders(answer);
    }
    expect(socket.unread()).toBe('');
    socket.destroy();
  });

  test('serves requests that come all at once, in order', async () => {
    const socket = await openSocket(stage.gateway.port);
    await socket.write(get(HOST) + head('GET /nothing', HOST) + head(`HEAD ${PATH}`, HOST) + get(HOST));
    expect((await socket.readResponse()).status).toBe(200);
    expect((await socket.readResponse()).status).toBe(404);
    expect((await socket.readResponse({ head: true })).status).toBe(200);
    expect((await socket.readResponse()).status).toBe(200);
    socket.destroy();
  });

  test('does not take a body for a request, nor what follows a refused one', async () => {
    const smuggled = get(HOST);
    for (const lines of [
      'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n',
      'Transfer-Encoding: x\r\n',
      'Transfer-Encoding: gzip, chunked\r\n',
      'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n',
    ]) {
      const socket = await openSocket(stage.gateway.port);
      await socket.write(`${head('POST /api/v2/apikey/', HOST + lines)}0\r\n\r\n${smuggled}`);
      await socket.closed;
      expect(socket.unread()).not.toContain('200 OK');
    }
    expect(stage.upstream.calls).toEqual([]);
  });

  test.each(['0.9', '2.0'])('is closed where it speaks HTTP/%s, whatever it asks for', async (version) => {
    const socket = await openSocket(stage.gateway.port);
    await socket.write(get(`${HOST}Connection: keep-alive\r\n`).replace('1.1', version) + get(HOST));
    await socket.closed;
    expect(socket.unread().match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 400']);
    expect(stage.upstream.calls).toEqual([]);
  });

  test('that ends in the middle of a head gets its problem or nothing', async () => {
    const socket = await openSocket(stage.gateway.port);
    await socket.write(`GET ${PATH} HTTP/1.1\r\nHost: ga`);
    socket.end();
    await socket.closed;
    expect(socket.unread()).toMatch(/^($|HTTP\/1\.1 400 )/);
    await expectServing();
  });
});
