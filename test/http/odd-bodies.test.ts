import { describe, expect, test, vi } from 'vitest';
import { expectProblem } from './problem.ts';
import { allOverviews } from '../support/account-api.ts';
import { exampleRequest } from '../support/examples.ts';
import { callOf } from '../support/marked.ts';
import { openSocket, type RawResponse } from '../support/raw-client.ts';
import { secret } from '../support/secrets.ts';
import { readIds, rowOf, writeIds } from '../support/table.ts';
import { openWorld, type World } from '../support/world.ts';

const LIMIT = 65_536;

/** Writes that take no body, by method and path. */
const WRITES = writeIds.filter((id) => !rowOf(id).body).map(exampleRequest);
const READS = [
  ...readIds.map((id) => exampleRequest(id).path),
  ...allOverviews.map(({ path }) => path),
  '/problems/not_found',
  '/openapi.json',
  '/livez',
];

const headOf = ([method, path]: readonly [string, string], lines: string) =>
  `${method} ${path} HTTP/1.1\r\nHost: portico.test\r\nAuthorization: Token ${secret()}\r\n${lines}\r\n`;

const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

const SENT: Readonly<Record<string, (body: string) => readonly [lines: string, body: string]>> = {
  'with a length': (body) => [`Content-Length: ${body.length}\r\n`, body],
  'in chunks': (body) => [
    'Transfer-Encoding: chunked\r\n',
    `${chunk(body.slice(0, 1000))}${chunk(body.slice(1000))}0\r\n\r\n`,
  ],
};

/** One request after the other on one connection: nothing of a body is taken for a request. */
const onOneConnection = async ({ gateway }: World, requests: readonly (readonly [text: string, method: string])[]) => {
  const socket = await openSocket(gateway.port);
  const answers: RawResponse[] = [];
  for (const [text, method] of requests) {
    await socket.write(text);
    answers.push(await socket.readResponse({ head: method === 'HEAD' }));
  }
  socket.destroy();
  return answers;
};

/** A request of its own, where it is taken for one. */
const SMUGGLED = 'GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n';

describe.each(Object.entries(SENT))('a body that nobody takes, %s,', (_, sentAs) => {
  test.each(READS.flatMap((path) => [['GET', path] as const, ['HEAD', path] as const]))(
    'to %s %s is not looked at',
    async (method, path) => {
      const world = await openWorld();
      world.answerAll();
      for (const body of ['x'.repeat(2 * LIMIT), SMUGGLED.repeat(100)]) {
        const [lines, sent] = sentAs(body);
        const answers = await onOneConnection(world, [
          [headOf([method, path], lines) + sent, method],
          [headOf(['GET', '/livez'], ''), 'GET'],
        ]);
        expect(answers).toMatchObject([{ status: 200 }, { status: 200, body: '{"status":"live"}' }]);
      }
      for (const { body, headers } of world.upstream.calls) {
        expect(body).toBe('');
        expect(headers).not.toHaveProperty('content-type');
        expect(headers).not.toHaveProperty('transfer-encoding');
      }
    },
  );

  test.each(WRITES.map(({ method, path }) => [method, path]))(
    'to %s %s is too large above the limit, and asks nobody',
    async (method, path) => {
      const world = await openWorld();
      const [lines, body] = sentAs('x'.repeat(LIMIT + 1));
      const [first, second] = await onOneConnection(world, [
        [headOf([method, path], lines) + body, method],
        [headOf(['GET', '/problems'], ''), 'GET'],
      ]);
      expectProblem(first!, { status: 413, code: 'payload_too_large', instance: path });
      expect(second).toMatchObject({ status: 200 });
      expect(world.upstream.calls).toEqual([]);
      const line = { status: 413, code: 'payload_too_large', method };
      expect(world.gateway.lines).toEqual([expect.objectContaining(line), expect.anything()]);
    },
  );

  test.each(WRITES.map(({ method, path }) => [method, path]))(
    'to %s %s is passed over up to the limit',
    async (method, path) => {
      const world = await openWorld();
      world.answerAll();
      for (const body of [SMUGGLED.repeat(100), 'x'.repeat(LIMIT)]) {
        const [lines, sent] = sentAs(body);
        const [answer] = await onOneConnection(world, [[headOf([method, path], lines) + sent, method]]);
        expect(answer?.status).toBeLessThan(300);
      }
      for (const { body, headers } of world.upstream.calls) {
        expect(body).toBe('');
        expect(headers).not.toHaveProperty('content-type');
        expect(headers).not.toHaveProperty('transfer-encoding');
      }
    },
  );
});

const READ = ['GET', exampleRequest('getSubscription').path] as const;
const COMING: Readonly<Record<string, string>> = {
  'of which nothing comes': 'Content-Length: 5\r\n\r\n',
  'of which a part comes': 'Content-Length: 5\r\n\r\n{',
  'in chunks, of which none comes': 'Transfer-Encoding: chunked\r\n\r\n',
  'in chunks, of which one comes': `Transfer-Encoding: chunked\r\n\r\n${chunk('{}')}`,
};

/** All answers of a connection, until it is closed by the gateway. */
const answersTo = async ({ gateway }: World, text: string) => {
  const socket = await openSocket(gateway.port);
  await socket.write(text);
  await socket.closed;
  socket.destroy();
  return socket.unread();
};

const BARE_408 = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

const statusesIn = (text: string) => [...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status));

const startOf = (request: readonly [string, string], rest: string) => headOf(request, '').replace(/\r\n$/, '') + rest;

/** They wait for the five seconds that a request may take to arrive. */
describe.concurrent('a request with a body', () => {
  test.for(Object.entries(COMING))(
    '%s gets one answer: a bare 408, or what it has asked for where no body belongs',
    { timeout: 20_000 },
    async ([, rest], { onTestFinished }) => {
      const world = await openWorld({}, { atEnd: onTestFinished });
      world.answerAll();
      const all = [
        [READ, 200],
        [['HEAD', READ[1]], 200],
        [['GET', '/problems'], 200],
        [['GET', '/nothing'], 404],
        [['POST', '/api/v2/apikey/'], 408],
        [['DELETE', '/api/v2/proxy/ipauthorization/1/'], 408],
      ] as const;
      const answers = await Promise.all(all.map(([request]) => answersTo(world, startOf(request, rest))));
      for (const [at, text] of answers.entries()) {
        const [request, status] = all[at]!;
        expect(statusesIn(text), request.join(' ')).toEqual([status]);
        if (status === 408) expect(text).toBe(BARE_408);
      }
      expect(world.upstream.calls.map(({ method }) => method)).not.toContain('POST');
      expect(world.upstream.calls.map(({ method }) => method)).not.toContain('DELETE');
      await vi.waitFor(() => expect(world.gateway.lines).toHaveLength(all.length));
    },
  );

  test('that is answered before it has come gets no second answer', { timeout: 20_000 }, async ({ onTestFinished }) => {
    const world = await openWorld({}, { atEnd: onTestFinished });
    world.answerAll();
    const large = `Content-Length: ${LIMIT + 1}\r\n\r\n`;
    const garbled = 'Transfer-Encoding: chunked\r\n\r\nzz\r\n';
    const refused = (method: string, rest: string) => `${method} ${READ[1]} HTTP/1.1\r\nHost: a b\r\n${rest}`;
    const rows = [
      [startOf(['POST', '/api/v2/apikey/'], large), 413],
      [startOf(['PUT', READ[1]], 'Content-Length: 5\r\n\r\n'), 405],
      [refused('GET', 'Content-Length: 5\r\n\r\n'), 400],
      [refused('GET', garbled), 400],
      [refused('POST', 'Content-Length: 5\r\n\r\n'), 400],
      [startOf(READ, garbled), undefined],
      [startOf(['PUT', READ[1]], garbled), undefined],
    ] as const;
    const answers = await Promise.all(rows.map(([text]) => answersTo(world, text)));
    for (const [at, text] of answers.entries()) {
      const statuses = statusesIn(text);
      expect(statuses, rows[at]![0]).toHaveLength(1);
      expect(statuses[0]).toBe(rows[at]![1] ?? statuses[0]);
    }
  });
});

test.each([
  ['with a length', 'Content-Length: 5\r\n\r\n{'],
  ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n5\r\n{'],
])('a write whose body %s takes longer than REQUEST_TIMEOUT_MS took too long itself', async (_, rest) => {
  const world = await openWorld({ REQUEST_TIMEOUT_MS: '2000', UPSTREAM_TIMEOUT_MS: '1000' });
  const [method, path] = ['POST', '/api/v2/apikey/'];
  expect(callOf('createApiKey')).toBe(`${method} ${path}`);
  const socket = await openSocket(world.gateway.port);
  await socket.write(startOf([method, path], `Content-Type: application/json\r\n${rest}`));
  await world.call({ path: '/problems' }); // the gateway has had its turn
  world.advance(2);
  expectProblem(await socket.readResponse(), { status: 408, code: 'request_timeout', instance: path });
  expect(world.upstream.calls).toEqual([]);
  socket.destroy();
});

test.each(['in the middle', 'in the middle of a chunk'])(
  'a body that breaks off %s asks nobody, and has its line',
  async (how) => {
    const world = await openWorld();
    const socket = await openSocket(world.gateway.port);
    const rest = how === 'in the middle' ? 'Content-Length: 5\r\n\r\n{' : 'Transfer-Encoding: chunked\r\n\r\n5\r\n{';
    await socket.write(startOf(['POST', '/api/v2/apikey/'], `Content-Type: application/json\r\n${rest}`));
    await world.call({ path: '/problems' });
    socket.reset();
    await vi.waitFor(() => expect(world.gateway.lines).toHaveLength(2));
    expect(world.gateway.lines[1]).toMatchObject({ status: 499, code: 'client_left', operation: 'createApiKey' });
    expect(world.upstream.calls).toEqual([]);
  },
);
