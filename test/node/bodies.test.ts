import { describe, expect, test } from 'vitest';
import { says } from '../support/contract.ts';
import { expectBare, expectProblem } from '../support/problem.ts';
import { get, head, HOST, JSON_TYPE, oneAfterOther, PATH, post, useGateway } from './raw.ts';

/** Bodies where none belongs, that do not come, come in pieces or break off. */

const LIMIT = 65_536;
const MB = 1_048_576;

const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

const SENT: Readonly<Record<string, (body: string) => readonly [lines: string, body: string]>> = {
  'with a length': (body) => [`Content-Length: ${body.length}\r\n`, body],
  'in chunks': (body) => [
    'Transfer-Encoding: chunked\r\n',
    `${chunk(body.slice(0, 1000))}${chunk(body.slice(1000))}0\r\n\r\n`,
  ],
};

const BARE_408 = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

/** A request of its own, where it is taken for one. */
const SMUGGLED = 'GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(100);

const stage = useGateway();

/** The request with this body, and whatever comes next on its connection. */
const withBody = async (startLine: string, [lines, body]: readonly [string, string]) => {
  const next = head('GET /livez', HOST);
  return oneAfterOther(await stage.open(), head(startLine, HOST + lines, body), next);
};

const expectNoBodySent = () => {
  for (const { body, headers } of stage.upstream.calls) {
    expect(body).toBe('');
    for (const name of ['content-type', 'transfer-encoding']) expect(headers).not.toHaveProperty(name);
  }
};

describe.each(Object.entries(SENT))('a body that nobody takes, %s,', (_, sentAs) => {
  test.each([`GET ${PATH}`, `HEAD ${PATH}`, 'GET /bff/v1/account-overview', 'GET /livez'])(
    'to %s is not looked at',
    async (startLine) => {
      for (const body of ['x'.repeat(2 * LIMIT), SMUGGLED])
        expect(await withBody(startLine, sentAs(body))).toMatchObject([{ status: 200 }, { body: '{"status":"live"}' }]);
      expectNoBodySent();
    },
  );

  test.each(['DELETE /api/v2/payment/method/', 'POST /api/v2/proxy/list/refresh/'])(
    'to %s is passed over up to the limit',
    async (startLine) => {
      for (const body of ['x'.repeat(LIMIT), SMUGGLED])
        expect(await withBody(startLine, sentAs(body))).toMatchObject([{ status: 204 }, { body: '{"status":"live"}' }]);
      expect(stage.upstream.calls).toHaveLength(2);
      expectNoBodySent();
    },
  );

  test.each(['DELETE /api/v2/payment/method/', 'POST /api/v2/apikey/'])(
    'to %s is too large above it, and asks nobody',
    async (startLine) => {
      for (const size of [LIMIT + 1, 4 * MB]) {
        const [first, second] = await withBody(startLine, sentAs('x'.repeat(size)));
        expectProblem(first!, { status: 413, code: 'payload_too_large', instance: startLine.split(' ')[1]! });
        expect(second).toMatchObject({ status: 200 });
      }
      expect(stage.upstream.calls).toEqual([]);
      const line = { status: 413, code: 'payload_too_large' };
      expect(stage.gateway.lines).toMatchObject([line, line]);
    },
  );
});

describe.each(['Content-Length: 5\r\n\r\n{', 'Transfer-Encoding: chunked\r\n\r\n5\r\n{'])('a body %j', (rest) => {
  const begin = async () => {
    const socket = await stage.open();
    await socket.write(post('').replace(/\r\n$/, rest));
    await stage.call({ path: '/problems' }); // the gateway has had its turn
    return socket;
  };

  test('that breaks off asks nobody, and has its line', async () => {
    (await begin()).reset();
    const [, line] = await stage.linesOf(2);
    expect(line).toMatchObject({ status: 499, code: 'client_left', operation: 'createApiKey' });
    expect(stage.upstream.calls).toEqual([]);
  });

  test('that takes longer than REQUEST_TIMEOUT_MS took too long itself', async () => {
    const socket = await begin();
    stage.advance(10);
    expectProblem(await socket.readResponse(), { status: 408, code: 'request_timeout' });
    expect(stage.upstream.calls).toEqual([]);
  });
});

test.each([
  [413, post(`Content-Length: ${LIMIT + 1}\r\nExpect: 100-continue\r\n`)],
  [401, post('Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n').replace('Token', 'Basic')],
])('who asks before sending a body is told %d, not to go on', async (status, text) => {
  const socket = await stage.open();
  await socket.write(text);
  await socket.closed;
  expect(statusesIn(socket.unread())).toEqual([status]);
});

const statusesIn = (text: string) => [...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status));

const begun = (startLine: string, rest: string) => head(startLine, HOST + JSON_TYPE).replace(/\r\n$/, '') + rest;

const bad = (method: string, rest: string) => `${method} ${PATH} HTTP/1.1\r\nHost: a b\r\n${rest}`;

describe(says("only what the runtime's parser refuses gets a bare 400, 408 or 431"), () => {
  /** What has come by then is cut, however late that is. */
  const impatient = useGateway(
    {},
    { limits: { headersTimeout: 2_000, requestTimeout: 4_000, connectionsCheckingInterval: 20 } },
  );

  /** All answers of a connection, until it is closed by the gateway. */
  const answersTo = async (text: string) => {
    const socket = await impatient.open();
    await socket.write(text);
    await socket.closed;
    return socket.unread();
  };

  test('a body that does not come gets one answer: 408, or what was asked for where none belongs', async () => {
    const starts = ['Content-Length: 5\r\n\r\n', 'Transfer-Encoding: chunked\r\n\r\n'];
    const [sized, chunked] = starts as [string, string];
    const rests = [sized, `${sized}{`, chunked, chunked + chunk('{}')];
    const all = [
      [`GET ${PATH}`, 200],
      [`HEAD ${PATH}`, 200],
      ['GET /problems', 200],
      ['GET /nothing', 404],
      ['POST /api/v2/apikey/', 408],
      ['DELETE /api/v2/proxy/ipauthorization/1/', 408],
    ] as const;
    const rows = rests.flatMap((rest) => all.map(([startLine, status]) => ({ text: begun(startLine, rest), status })));
    const answers = await Promise.all(rows.map(({ text }) => answersTo(text)));
    expect(answers.map(statusesIn)).toEqual(rows.map(({ status }) => [status]));
    for (const text of answers.filter((one) => one.includes(' 408 '))) expect(text).toBe(BARE_408);
    expect(impatient.upstream.calls.filter(({ method }) => method !== 'GET')).toEqual([]);
    expect(await impatient.linesOf(rows.length)).toHaveLength(rows.length);
  });

  test('who is answered before the body has come gets no second answer', async () => {
    const garbled = 'Transfer-Encoding: chunked\r\n\r\nzz\r\n';
    const rows = [
      [begun('POST /api/v2/apikey/', `Content-Length: ${LIMIT + 1}\r\n\r\n`), 413],
      [begun(`PUT ${PATH}`, 'Content-Length: 5\r\n\r\n'), 405],
      [bad('GET', 'Content-Length: 5\r\n\r\n'), 400],
      [bad('GET', garbled), 400],
      [begun(`GET ${PATH}`, garbled), undefined],
    ] as const;
    const answers = await Promise.all(rows.map(([text]) => answersTo(text)));
    for (const [at, text] of answers.entries()) {
      const statuses = statusesIn(text);
      expect(statuses).toEqual([rows[at]![1] ?? statuses[0]]);
    }
  });

  test('what is no HTTP behind an answer is told so, and gets no line', async () => {
    const socket = await stage.open();
    await oneAfterOther(socket, get(HOST));
    await socket.write('what is this\r\n\r\n');
    expectBare(await socket.readResponse(), 400);
    await socket.closed;
    expect(stage.gateway.lines).toHaveLength(1);
  });
});
