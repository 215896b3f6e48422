import { expect, test, vi } from 'vitest';
import { expectBare } from './problem.ts';
import { exampleBody, exampleInput } from '../support/examples.ts';
import { openSocket, requestText } from '../support/raw-client.ts';
import { barrier, hold, json, perCall, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { useWorld } from '../support/world.ts';

const stage = useWorld();

const TOTAL = 20;

const pipelined = (token: string): string =>
  Array.from({ length: TOTAL }, (_, index) =>
    requestText({ target: `/api/v2/payment/pending/${index + 1}/`, headers: [['Authorization', `Token ${token}`]] }),
  ).join('');

test('pipelined requests are begun one after the other and answered in their order', async () => {
  const gate = barrier();
  const answer = perCall(({ path }) => json(200, { id: Number(/\d+(?=\/$)/.exec(path)?.[0]) }));
  stage.upstream.on(({ path }) => path.startsWith('/api/v2/payment/pending/'), reply(hold(gate), answer), answer);
  const socket = await openSocket(stage.gateway.port);
  await socket.write(pipelined(secret()));
  await gate.reached;
  await stage.call({ path: '/livez' }); // the gateway has had its turn, and begun no other
  expect(stage.upstream.calls).toHaveLength(1);
  gate.release();
  const seen: unknown[] = [];
  for (let index = 0; index < TOTAL; index++) {
    const { body } = await socket.readResponse();
    seen.push((JSON.parse(body) as { id: number }).id);
  }
  expect(seen).toEqual(Array.from({ length: TOTAL }, (_, index) => index + 1));
  socket.destroy();
});

test('those behind an answer that its client did not wait for are never begun', async () => {
  const gate = barrier();
  stage.upstream.on('GET /api/v2/payment/pending/1/', reply(hold(gate), json(200, { id: 1 })));
  const socket = await openSocket(stage.gateway.port);
  await socket.write(pipelined(secret()));
  const [first] = await stage.upstream.waitForCalls(1);
  socket.reset();
  await stage.upstream.disconnected(first!);
  await stage.call({ path: '/livez' });
  expect(stage.upstream.calls).toHaveLength(1);
  gate.release();
});

const MISFRAMED = [
  'POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
  'POST /x HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
];

test.each(MISFRAMED)('those behind a request whose end is not certain are never begun: %j', async (head) => {
  const socket = await openSocket(stage.gateway.port);
  await socket.write(head + pipelined(secret()));
  expect((await socket.readResponse()).status).toBe(400);
  await socket.closed;
  expect(stage.upstream.calls).toEqual([]);
});

const MOST = 32;

test('more than 32 of them on one connection end it', async () => {
  stage.upstream.on('GET /api/v2/subscription/', json(200, exampleBody('getSubscription')));
  const token = secret();
  const request = requestText({ target: '/api/v2/subscription/', headers: [['Authorization', `Token ${token}`]] });
  const good = await openSocket(stage.gateway.port);
  await good.write(request.repeat(MOST));
  for (let index = 0; index < MOST; index++) expect((await good.readResponse()).status).toBe(200);
  const flood = await openSocket(stage.gateway.port);
  await flood.write(request.repeat(MOST + 1));
  await flood.closed;
  await good.write(request);
  expect((await good.readResponse()).status).toBe(200);
  good.destroy();
});

const PURCHASE = '/api/v2/subscription/checkout/purchase/';

test.each([
  ['words', 'what is this\r\n\r\n'],
  ['a bad name', 'GET / HTTP/1.1\r\nX Name: x\r\n\r\n'],
  ['too large a head', `GET / HTTP/1.1\r\nX: ${'x'.repeat(70_000)}`],
])('what is no HTTP behind a purchase without an answer closes the connection without one: %s', async (_, garbage) => {
  const gate = barrier();
  stage.upstream.on(`POST ${PURCHASE}`, reply(hold(gate), json(200, exampleBody('purchasePlan'))));
  const socket = await openSocket(stage.gateway.port);
  const headers = [
    ['Authorization', `Token ${secret()}`],
    ['Content-Type', 'application/json'],
  ] as const;
  await socket.write(
    requestText({ method: 'POST', target: PURCHASE, headers, body: exampleInput('purchasePlan').body! }),
  );
  await gate.reached;
  await socket.write(garbage);
  await socket.closed;
  expect(socket.unread()).toBe('');
  gate.release();
  socket.destroy();
  await vi.waitFor(() => expect(stage.gateway.lines).toHaveLength(1));
  expect(stage.upstream.calls).toHaveLength(1);
});

test('what is no HTTP behind an answer is told so, and gets no line', async () => {
  stage.upstream.on('GET /api/v2/subscription/', json(200, exampleBody('getSubscription')));
  const socket = await openSocket(stage.gateway.port);
  const headers = [['Authorization', `Token ${secret()}`]] as const;
  await socket.write(requestText({ target: '/api/v2/subscription/', headers }));
  expect((await socket.readResponse()).status).toBe(200);
  await socket.write('what is this\r\n\r\n');
  expectBare(await socket.readResponse(), 400);
  await socket.closed;
  expect(stage.gateway.lines).toHaveLength(1);
  socket.destroy();
});
