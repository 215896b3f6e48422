import { describe, expect, test } from 'vitest';
import { says } from '../support/contract.ts';
import { exampleBody } from '../support/examples.ts';
import { expectBare, expectCommonHeaders, expectProblem } from '../support/problem.ts';
import { requestText } from '../support/raw-client.ts';
import { barrier, hold, json, perCall, reply } from '../support/scripted-upstream.ts';
import { authorization, get, head, HOST, oneAfterOther, PATH, post, useGateway } from './raw.ts';

/** Heads as bytes, and what comes of them. */

const stage = useGateway();

const older = (request: string) => request.replace('HTTP/1.1', 'HTTP/1.0');

const HOSTS = 'a.example/x user@a.example a.example?x a.example:99999 a%2eexample [::1 1.2.3.4.5 gätewäy.example';

describe(says('No `Host`, two of them or a malformed one: 400; HTTP/1.0 needs none.'), () => {
  const malformed = [...HOSTS.split(' '), 'gateway example', 'one.example, two.example', ''];
  const lines = [
    '',
    `${HOST}Host: other.example\r\n`,
    HOST + HOST.toLowerCase(),
    ...malformed.map((host) => `Host: ${host}\r\n`),
  ];

  test.each(lines)('%j', async (hosts) => {
    const all = [get(hosts), head('POST /api/v2/apikey/', `${hosts}Content-Length: 2\r\n`, '{}')];
    for (const bytes of hosts ? [...all, ...all.map(older)] : all)
      expectProblem(await stage.raw(bytes), { status: 400, code: 'bad_request' });
    expect(stage.upstream.calls).toEqual([]);
    await stage.expectServing();
  });

  test('but not one that is good', async () => {
    for (const host of ['gateway.example.', 'my_gateway', 'GATEWAY.example', '198.51.100.7:80', '[2001:db8::1]:8787'])
      expect((await stage.raw(get(`Host: ${host}\r\n`))).status).toBe(200);
  });

  test('then it is the address where the client has connected, which no `Origin` may name', async () => {
    stage.upstream.on(
      'GET /api/v2/payment/method/',
      json(200, `{"next":"${stage.upstream.url}/api/v2/payment/method/?page=2"}`),
    );
    const url = `http://127.0.0.1:${stage.gateway.port}`;
    const asked = (line: string, target = '/api/v2/payment/method/') => stage.raw(older(head(`GET ${target}`, line)));
    expect((await asked('')).body).toContain(`"next":"${url}/api/v2/payment/method/?page=2"`);
    expect((await stage.raw('OPTIONS / HTTP/1.0\r\n\r\n')).body).toContain('ready'); // HAProxy's plain `option httpchk`
    expect((await asked('', 'http://a.example/api/v2/payment/method/')).body).toContain(
      '"next":"http://a.example/api/',
    );
    expectProblem(await asked(`Origin: ${url}\r\n`), { status: 403, code: 'origin_rejected' });
  });

  test('and an answer without a length ends with the connection', async () => {
    const accepted = `TE: chunked\r\nAccept: application/x-ndjson\r\n`;
    const socket = await stage.open();
    const [answer] = await oneAfterOther(socket, older(head('GET /bff/v1/account-overview', accepted)));
    expect(answer).toMatchObject({ status: 200, body: expect.stringMatching(/^(\{.*\}\n)+$/) });
    expect(answer!.headers).not.toHaveProperty('transfer-encoding');
    await socket.closed;
  });
});

const CHUNKED = 'Transfer-Encoding: chunked\r\n';

/** All 400. */
const REFUSED: readonly string[] = [
  head(`GET http://other.example${PATH}`, HOST),
  head(`GET http://gateway.example:81${PATH}`, HOST),
  head('GET ftp://gateway.example/', HOST),
  head('OPTIONS *', HOST),
  get(HOST).replace('1.1', '0.9'),
  ...['x', 'gzip, chunked', ', chunked', '"chunked"'].map((coding) => get(`${HOST}Transfer-Encoding: ${coding}\r\n`)),
  get(`${HOST}Transfer-Encoding: gzip\r\n${CHUNKED}`),
  older(get(HOST + CHUNKED)),
  older(head('GET http://a.example:x/', '')),
  `GET ${PATH}\r\n\r\n`,
];

test.each(REFUSED)(`${says('Every 4xx and 5xx, from every path and listener')}: %j`, async (bytes) => {
  expectProblem(await stage.raw(bytes), { status: 400, code: 'bad_request' });
  expect(stage.upstream.calls).toEqual([]);
  await stage.expectServing();
});

const BARE: readonly string[] = [
  head('GET api/v2/subscription/', HOST),
  get(HOST).replace('HTTP/1.1', 'HTTP/1.2'),
  ...['what is this', 'X-Name : x', 'X-Name: a\0b', 'X-Name: a\nX-Other: b', 'X-Name: a\r\n b', ': x'].map((line) =>
    get(`${HOST}${line}\r\n`),
  ),
  ...['-1', '0x5', '5, 5', '+5', '', '99999999999999999999999'].map((length) =>
    get(`${HOST}Content-Length: ${length}\r\n`),
  ),
  get(`${HOST}Content-Length: 5\r\nContent-Length: 5\r\n`),
  get(`${HOST}Content-Length: 5\r\n${CHUNKED}`),
  get(`${HOST}${CHUNKED}Content-Length: 5\r\n`),
  get(HOST + CHUNKED + CHUNKED),
  ...['chunked, identity', 'chunked, chunked', '', '\x0bchunked'].map((coding) =>
    get(`${HOST}Transfer-Encoding:${coding}\r\n`),
  ),
  get(HOST).replaceAll('\r\n', '\n'),
  get(`${HOST}X-Name: a\rX-Other: b\r\n`),
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
  head(`FOO ${PATH}`, HOST),
  head('CONNECT elsewhere.example:443', HOST),
  ...['/api/v2/subuser/١/', '/api/v2/subuser/\x01/', `${PATH}?q=é`].map((target) => head(`GET ${target}`, HOST)),
  post(CHUNKED, 'zz\r\n{}\r\n0\r\n\r\n'),
  post(CHUNKED, '2\r\n{}zz\r\n0\r\n\r\n'),
  post(CHUNKED, '2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n'),
];

const PARSER = says(
  "only what the runtime's parser refuses gets a bare 400, 408 or 431 (methods that it does not know, too)",
);

test.each(BARE)(`${PARSER}: %j`, async (bytes) => {
  expectBare(await stage.raw(bytes), 400);
  expect(stage.upstream.calls).toEqual([]);
  expect(stage.gateway.lines.filter(({ status }) => status === 400)).toEqual([]);
  await stage.expectServing();
});

test.each([
  get(`${HOST}X-Long: ${'x'.repeat(16_384)}\r\n`),
  get(HOST + `X-Many: ${'x'.repeat(50)}\r\n`.repeat(400)),
  head(`GET /${'x'.repeat(20_000)}`, HOST),
  get(HOST + 'X:\r\n'.repeat(255)),
  get(`${HOST}${'X:\r\n'.repeat(900)}Host: other.example\r\n`),
])('a head of more than 16 KB or 256 headers is 431: %.80s', async (bytes) => {
  expectProblem(await stage.raw(bytes), { status: 431, code: 'request_header_fields_too_large' });
  expect(stage.upstream.calls).toEqual([]);
  await stage.expectServing();
});

test.each([get(`${HOST}X-Long: ${'x'.repeat(70_000)}\r\n`), get(HOST + 'X:\r\n'.repeat(3_000))])(
  `${PARSER}: %.80s`,
  async (bytes) => {
    expectBare(await stage.raw(bytes), 431);
    expect(stage.gateway.lines).toEqual([]);
    await stage.expectServing();
  },
);

test.each([
  ['PROPFIND', PATH, 405, 'method_not_allowed'],
  ['TRACE', '/nothing', 501, 'method_not_implemented'],
])(`${says('Known path, other method: 405 with `Allow`')}: %s %s`, async (method, target, status, code) => {
  const answer = await stage.raw(head(`${method} ${target}`, HOST));
  expectProblem(answer, { status, code });
  expect(answer.headers['allow']).toBe(status === 405 ? 'GET, HEAD' : undefined);
});

/** Node hands a path over as it came. */
const SPOILT = ['/v2/./', '/v2/x/../', '/v2/x/%2e%2e/', '/v2\\', '//v2/'].map((part) => PATH.replace('/v2/', part));

test.each([...SPOILT, `/${PATH}`, `${PATH}x/..`, `${PATH}#x`, '/api/v2/payment/method/../', '/..'])(
  `${says("The upstream's URL is made from the row, never from the raw path")}: %s is nothing`,
  async (target) => {
    const [instance] = /^[^?#]*/.exec(target)!;
    expectProblem(await stage.raw(head(`GET ${target}`, HOST)), { status: 404, code: 'unknown_endpoint', instance });
    expect(stage.upstream.calls).toEqual([]);
  },
);

test.each([
  head(`GET http://gateway.example${PATH}`, HOST),
  get(`${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n`),
  get(`${HOST}Expect: a-miracle\r\n`),
  get(`${HOST}Connection: close, authorization, host\r\n`),
  `${get(`${HOST}Content-Length: 5\r\n`)}GET /`,
  `${get(HOST + CHUNKED)}5\r\nGET /\r\n0\r\n\r\n`,
  get(`${HOST}X-Long: ${'x'.repeat(16_000)}\r\n`),
  get(HOST + 'X:\r\n'.repeat(254)),
  `${get(HOST + CHUNKED.replace('chunked', 'CHUNKED'))}0\r\n\r\n`,
  get(`${HOST}X-Forwarded-Host: other.example\r\nX-Forwarded-Proto: gopher\r\n`),
])('is served: %.100j', async (bytes) => {
  const answer = await stage.raw(bytes);
  expect(answer.status).toBe(200);
  expectCommonHeaders(answer);
  const { host } = new URL(stage.upstream.url);
  expect(stage.upstream.calls.map(({ target, headers }) => [target, headers['host']])).toEqual([[PATH, host]]);
});

describe('a connection', () => {
  test('serves one request after the other, whatever becomes of them', async () => {
    const requests = [
      [get(HOST), 200],
      [head('GET /nothing', HOST), 404],
      [get('Host: a b\r\n'), 400],
      [head('HEAD /x', 'Host: a/b\r\n'), 400],
      [head('TRACE /nothing', HOST), 501],
      [requestText({ target: PATH, body: 'x'.repeat(100) }), 401],
      [head(`HEAD ${PATH}`, HOST), 200],
      [head('DELETE /api/v2/payment/method/', HOST), 204],
      [get(HOST), 200],
    ] as const;
    const socket = await stage.open();
    const answers = await oneAfterOther(socket, ...requests.map(([bytes]) => bytes));
    expect(answers.map(({ status }) => status)).toEqual(requests.map(([, status]) => status));
    for (const answer of answers) expectCommonHeaders(answer);
    for (const name of ['content-type', 'content-length', 'transfer-encoding'])
      expect(answers[7]!.headers).not.toHaveProperty(name);
    expect(answers[6]!.headers['content-length']).toBe(answers[0]!.headers['content-length']);
    expect(socket.unread()).toBe('');
  });

  test.each([
    ['HTTP/1.1', 'Connection: close\r\n', 'close'],
    ['HTTP/1.0', '', 'close'],
    ['HTTP/1.0', 'Connection: keep-alive\r\n', 'keep-alive'],
  ])('of %s with %j: %s', async (version, lines, connection) => {
    const socket = await stage.open();
    const [answer] = await oneAfterOther(socket, get(HOST + lines).replace('HTTP/1.1', version));
    expect(answer).toMatchObject({ status: 200, headers: { connection } });
    if (connection === 'close') await socket.closed;
  });

  test('brings a body after 100 Continue', async () => {
    const socket = await stage.open();
    await socket.write(post('Content-Length: 2\r\nExpect: 100-continue\r\n'));
    expect(await oneAfterOther(socket, '{}')).toMatchObject([{ status: 200 }]);
  });
});

test(`${says('Missing or malformed: 401 `unauthenticated`')}: two of them, equal ones too, however far apart`, async () => {
  const one = authorization();
  for (const lines of [one + one, `Authorization: Token a\r\n${'X:\r\n'.repeat(200)}Authorization: Basic b\r\n`])
    expect((await stage.raw(`GET ${PATH} HTTP/1.1\r\n${HOST}${lines}\r\n`)).status).toBe(401);
  expect(stage.upstream.calls).toEqual([]);
  const ids = 'X-Request-Id: one\r\nX-Request-Id: two\r\n';
  expect((await stage.raw(get(HOST + ids))).headers['x-request-id']).not.toMatch(/one|two/);
});

test('a body needs no length and may have extensions, and what stands behind it is no header', async () => {
  const request = post(CHUNKED, `2;x=1\r\n{}\r\n0\r\n${authorization()}X-Request-Id: behind\r\n\r\n`);
  expect((await stage.raw(request)).status).toBe(200);
  const [, token] = /Authorization: (.*)\r\n/.exec(request)!;
  expect(stage.upstream.calls[0]?.headers).toMatchObject({
    authorization: token,
    'x-request-id': expect.not.stringMatching('behind'),
  });
});

/** Requests that come before the answer to the one before them. */
const TOTAL = 20;
const MOST = 32;

const pipelined = () =>
  Array.from({ length: TOTAL }, (_, at) => head(`GET /api/v2/payment/pending/${at + 1}/`, HOST)).join('');

test('they are begun one after the other and answered in their order', async () => {
  const gate = barrier();
  const answer = perCall(({ path }) => json(200, { id: Number(/\d+(?=\/$)/.exec(path)?.[0]) }));
  stage.upstream.on(({ path }) => path.startsWith('/api/v2/payment/pending/'), reply(hold(gate), answer), answer);
  const socket = await stage.open();
  await socket.write(pipelined());
  await gate.reached;
  await stage.call({ path: '/livez' }); // the gateway has had its turn, and begun no other
  expect(stage.upstream.calls).toHaveLength(1);
  gate.release();
  for (let at = 1; at <= TOTAL; at++) expect(JSON.parse((await socket.readResponse()).body)).toEqual({ id: at });
});

test('those behind an answer that its client did not wait for are never begun', async () => {
  const gate = barrier();
  stage.upstream.on('GET /api/v2/payment/pending/1/', reply(hold(gate), json(200, { id: 1 })));
  const socket = await stage.open();
  await socket.write(pipelined());
  const [first] = await stage.upstream.waitForCalls(1);
  socket.reset();
  await stage.upstream.disconnected(first!);
  await stage.call({ path: '/livez' });
  expect(stage.upstream.calls).toHaveLength(1);
  gate.release();
});

test.each([
  'POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
  'POST /x HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
])('those behind a request whose end is not certain are never begun: %j', async (misframed) => {
  const socket = await stage.open();
  await socket.write(misframed + pipelined());
  expect((await socket.readResponse()).status).toBe(400);
  await socket.closed;
  expect(stage.upstream.calls).toEqual([]);
});

test(`more than ${MOST} of them on one connection end it, and no other`, async () => {
  const request = get(HOST);
  const [good, flood] = [await stage.open(), await stage.open()];
  await good.write(request.repeat(MOST));
  for (let n = 0; n < MOST; n++) expect((await good.readResponse()).status).toBe(200);
  await flood.write(request.repeat(MOST + 1));
  await flood.closed;
  expect(await oneAfterOther(good, request)).toMatchObject([{ status: 200 }]);
});

test.each(['what is this\r\n\r\n', `GET / HTTP/1.1\r\nX: ${'x'.repeat(70_000)}`])(
  'what is no HTTP behind a write without an answer closes the connection without one: %.40j',
  async (garbage) => {
    const gate = barrier();
    stage.upstream.on('POST /api/v2/apikey/', reply(hold(gate), json(200, exampleBody('createApiKey'))));
    const socket = await stage.open();
    await socket.write(post('Content-Length: 2\r\n', '{}'));
    await gate.reached;
    await socket.write(garbage);
    await socket.closed;
    expect(socket.unread()).toBe('');
    gate.release();
    expect(await stage.linesOf(1)).toHaveLength(1);
    expect(stage.upstream.calls).toHaveLength(1);
  },
);
