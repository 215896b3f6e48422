import { describe, expect, test } from 'vitest';
import { expectProblem } from './problem.ts';
import { allOverviews } from '../../src/gateway/overviews.ts';
import { exampleRequest } from '../support/examples.ts';
import { bodyOf, callOf, goodAnswer } from '../support/marked.ts';
import { openSocket, type RawResponse } from '../support/raw-client.ts';
import { perCall } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { readIds, rowOf, writeIds } from '../support/table.ts';
import { openWorld, type World } from '../support/world.ts';

const LIMIT = 65_536;

/** What takes no body, by method and path. */
const OPERATIONS = [...readIds, ...writeIds.filter((id) => !rowOf(id).body)].map(exampleRequest);
const READS = [
  ...readIds.map((id) => exampleRequest(id).path),
  ...allOverviews.map(({ path }) => path),
  '/problems/not_found',
  '/openapi.json',
  '/livez',
  '/nothing',
];
const ODD = [
  ...OPERATIONS.map(({ method, path }) => [method, path] as const),
  ...READS.map((path) => ['HEAD', path] as const),
  ...READS.slice(readIds.length).map((path) => ['GET', path] as const),
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

const expectTooLarge = (answer: RawResponse, method: string, path: string) =>
  method === 'HEAD'
    ? expect(answer).toMatchObject({ status: 413, body: '' })
    : expectProblem(answer, { status: 413, code: 'payload_too_large', instance: path });

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

describe.each(Object.entries(SENT))('a body that nobody takes, %s,', (_, sentAs) => {
  test.each(ODD)('to %s %s is too large above the limit, and asks nobody', async (method, path) => {
    const world = await openWorld();
    const [lines, body] = sentAs('x'.repeat(LIMIT + 1));
    const large = headOf([method, path], lines) + body;
    const [first, second, third] = await onOneConnection(world, [
      [large, method],
      [headOf(['GET', '/livez'], ''), 'GET'],
      [large, method],
    ]);
    expectTooLarge(first!, method, path);
    expect(second).toMatchObject({ status: 200 });
    expectTooLarge(third!, method, path);
    expect(world.upstream.calls).toEqual([]);
  });

  test.each(OPERATIONS.map(({ method, path }) => [method, path]))(
    'to %s %s is passed over up to the limit',
    async (method, path) => {
      const world = await openWorld();
      world.upstream.on(
        `${method} ${path}`,
        perCall((call) => goodAnswer(call, 1)),
      );
      for (const body of ['GET / HTTP/1.1\r\n\r\n'.repeat(100), 'x'.repeat(LIMIT)]) {
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

const statusesIn = (text: string) => [...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status));

const startOf = (request: readonly [string, string], rest: string) => headOf(request, '').replace(/\r\n$/, '') + rest;

/** They wait for the five seconds that a request may take to arrive. */
describe.concurrent('a request with a body', () => {
  test.for(Object.entries(COMING))(
    '%s gets one answer, that it took too long, whatever its method',
    { timeout: 20_000 },
    async ([, rest], { onTestFinished }) => {
      const world = await openWorld({}, { atEnd: onTestFinished });
      const all = [
        READ,
        ['HEAD', READ[1]],
        ['GET', '/livez'],
        ['GET', '/nothing'],
        ['POST', '/api/v2/apikey/'],
      ] as const;
      const answers = await Promise.all(all.map((request) => answersTo(world, startOf(request, rest))));
      for (const [at, text] of answers.entries()) {
        expect(statusesIn(text), all[at]!.join(' ')).toEqual([408]);
        if (all[at]![0] === 'HEAD') expect(text).toMatch(/\r\n\r\n$/);
        else expect(text).toContain('"code":"request_timeout"');
      }
      expect(world.upstream.calls).toEqual([]);
    },
  );

  test('that is answered before it has come gets no second answer', { timeout: 20_000 }, async ({ onTestFinished }) => {
    const world = await openWorld({}, { atEnd: onTestFinished });
    const large = `Content-Length: ${LIMIT + 1}\r\n\r\n`;
    const garbled = 'Transfer-Encoding: chunked\r\n\r\nzz\r\n';
    const refused = (method: string, rest: string) => `${method} ${READ[1]} HTTP/1.1\r\nHost: a b\r\n${rest}`;
    const rows = [
      [startOf(READ, large), 413],
      [startOf(['HEAD', READ[1]], large), 413],
      [startOf(['PUT', READ[1]], 'Content-Length: 5\r\n\r\n'), 405],
      [refused('GET', 'Content-Length: 5\r\n\r\n'), 400],
      [refused('GET', garbled), 400],
      [refused('POST', 'Content-Length: 5\r\n\r\n'), 400],
      [startOf(READ, garbled), 400],
      [startOf(['PUT', READ[1]], garbled), undefined],
    ] as const;
    const answers = await Promise.all(rows.map(([text]) => answersTo(world, text)));
    for (const [at, text] of answers.entries()) {
      const statuses = statusesIn(text);
      expect(statuses, rows[at]![0]).toHaveLength(1);
      expect(statuses[0]).toBe(rows[at]![1] ?? statuses[0]);
    }
    expect(world.upstream.calls).toEqual([]);
  });
});

test.each(['GET', 'POST'])(
  'a %s whose body takes longer than REQUEST_TIMEOUT_MS took too long itself',
  async (method) => {
    const world = await openWorld({ REQUEST_TIMEOUT_MS: '2000', UPSTREAM_TIMEOUT_MS: '1000' });
    const [path, id] = method === 'GET' ? [READ[1], 'getSubscription'] : ['/api/v2/apikey/', 'createApiKey'];
    expect(callOf(id as 'createApiKey')).toBe(`${method} ${path}`);
    const socket = await openSocket(world.gateway.port);
    await socket.write(startOf([method, path], 'Content-Type: application/json\r\nContent-Length: 5\r\n\r\n{'));
    await world.call({ path: '/livez' }); // the gateway has had its turn
    world.advance(2);
    expectProblem(await socket.readResponse(), { status: 408, code: 'request_timeout', instance: path });
    expect(world.upstream.calls).toEqual([]);
    socket.destroy();
  },
);

test('a body that comes late is waited for', async () => {
  const world = await openWorld();
  world.upstream.on(
    `GET ${READ[1]}`,
    perCall((call) => goodAnswer(call, 1)),
  );
  const socket = await openSocket(world.gateway.port);
  await socket.write(headOf(READ, 'Content-Length: 5\r\n'));
  await world.call({ path: '/livez' });
  expect(world.upstream.calls).toEqual([]);
  await socket.write('12345');
  expect(await socket.readResponse()).toMatchObject({ status: 200, body: bodyOf('getSubscription', 1) });
  socket.destroy();
});
