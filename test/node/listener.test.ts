import type { HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { expect, onTestFinished, test } from 'vitest';
import { createParts, createRefuser } from '../../src/app.ts';
import { serve, type ServeOptions } from '../../src/entry/node/server/serve.ts';
import { exampleRequest } from '../support/examples.ts';
import { openGateway } from '../support/gateway.ts';
import { openSocket, type RawSocket, rawRequest, requestText } from '../support/raw-client.ts';
import { secret } from '../support/secrets.ts';

const ORIGIN = 'https://app.example';
const READ = requestText({ target: '/problems?page=2', headers: [['X-Request-Id', 'of-the-client']] });
const PROBE = requestText({ target: '/livez' });

const read = (
  token = secret(),
  headers: readonly (readonly [string, string])[] = [],
  target = '/api/v2/subscription/',
) => requestText({ target, headers: [['Authorization', `Token ${token}`], ...headers] });

/** The gateway of this process behind a listener of Node. */
async function listen(options: Partial<ServeOptions> = {}) {
  const gateway = openGateway({ ALLOWED_ORIGINS: ORIGIN });
  const { app } = createParts(gateway.deps);
  const shared = { refuse: createRefuser(gateway.deps), waitUntil: gateway.deps.waitUntil };
  const serving = await serve({ app, ...shared, host: '127.0.0.1', port: 0, ...options });
  onTestFinished(() => serving.drain(0));
  return { ...gateway, serving, port: Number(new URL(serving.url).port) };
}

const MOST = 4;

/** With as many requests under way as may be. */
async function full() {
  const refusals: number[] = [];
  const listening = await listen({ mostRequests: MOST, onOverload: () => refusals.push(1) });
  const { port, upstream } = listening;
  const held = Array.from({ length: MOST }, () => upstream.hold('getSubscription'));
  const answers = held.map(() => rawRequest(port, read()));
  await Promise.all(held.map(({ call }) => call));
  const release = async () => {
    for (const one of held) one.release();
    return (await Promise.all(answers)).map(({ status }) => status);
  };
  onTestFinished(async () => void (await release()));
  return { ...listening, refusals, release };
}

test('a request too many gets its problem at once, a line in the log, and its place in the figures', async () => {
  const { port, lines, refusals, release } = await full();
  const { status, headers, body } = await rawRequest(port, READ);
  expect(headers).toMatchObject({ 'retry-after': '1', 'x-request-id': 'of-the-client' });
  const problem = { code: 'overloaded', instance: '/problems', retryable: true, retry_after: 1 };
  expect(JSON.parse(body)).toMatchObject(problem);
  expect([status, refusals.length]).toEqual([503, 1]);
  expect(lines).toMatchObject([{ request_id: 'of-the-client', route: '(none)', status: 503, code: 'overloaded' }]);
  const page = await rawRequest(port, read(secret(), [['Origin', ORIGIN]]));
  expect(page.headers).toMatchObject({ 'access-control-allow-origin': ORIGIN });
  expect(await release()).toEqual(Array(MOST).fill(200));
  expect((await rawRequest(port, READ)).status).toBe(200);
});

test('a probe is never one, what only looks like a probe may be one', async () => {
  const { port, refusals } = await full();
  const statusOf = async (target: string) => (await rawRequest(port, requestText({ target }))).status;
  for (const target of ['/livez', '/readyz', '/livez/', '/readyz?from=lb']) expect(await statusOf(target)).toBe(200);
  expect(refusals).toEqual([]);
  for (const target of ['/livezx', '/api/livez', '/livez/more']) expect(await statusOf(target)).toBe(503);
});

test('a refused request leaves its connection usable, with or without a body that nobody reads, and in order', async () => {
  const { port, release } = await full();
  const socket = await openSocket(port);
  onTestFinished(() => socket.destroy());
  await socket.write(requestText({ target: '/problems', method: 'HEAD' }));
  expect(await socket.readResponse({ head: true })).toMatchObject({ status: 503, body: '' });
  const body = JSON.stringify({ label: 'x'.repeat(10_000) });
  await socket.write(requestText({ method: 'POST', target: '/api/v2/apikey/', body }) + PROBE);
  expect((await socket.readResponse()).status).toBe(503);
  expect((await socket.readResponse()).status).toBe(200);
  await release();
  await socket.write(READ);
  expect((await socket.readResponse()).status).toBe(200);
});

test.each(['text', 'clone', 'stream'])(
  'who reads on behind the answer gets all of the body, or an error: by %s',
  async (how) => {
    const got = Promise.withResolvers<string>();
    const readOf: Readonly<Record<string, (request: Request) => Promise<string>>> = {
      text: (request) => request.text(),
      clone: (request) => request.clone().text(),
      stream: async ({ body }) => await new Response(body).text(),
    };
    const fetch = (request: Request) => {
      got.resolve(readOf[how]!(request).catch(() => 'an error'));
      return new Response('taken');
    };
    const { port } = await listen({ app: { fetch } });
    const socket = await openSocket(port);
    onTestFinished(() => socket.destroy());
    await socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 400000\r\n\r\n${'x'.repeat(200_000)}`);
    expect((await socket.readResponse()).body).toBe('taken');
    await socket.write('y'.repeat(200_000) + PROBE);
    expect((await socket.readResponse()).body).toBe('taken');
    const text = await got.promise;
    expect(text === 'an error' || text.length === 400_000, `${text.length} of 400000`).toBe(true);
  },
);

test('a request that only waits for a change takes no room', async () => {
  const { port, serving, endWaits, clock } = await listen({ mostRequests: 1 });
  const token = secret();
  const { headers } = await rawRequest(port, read(token));
  const wait = [
    ['If-None-Match', headers['etag']!],
    ['Prefer', 'wait=30'],
  ] as const;
  const waiting = rawRequest(port, read(token, wait));
  while (clock.timers().length === 0 || serving.load().requests > 0) await rawRequest(port, PROBE);
  expect((await rawRequest(port, READ)).status).toBe(200);
  endWaits();
  expect((await waiting).status).toBe(304);
});

test('a client that leaves while it waits for a change leaves at once, and with no time passing', async () => {
  const { port, endWaits, clock, lines, idle, serving } = await listen();
  const token = secret();
  const polled = exampleRequest('getPendingPayment').path; // for which the upstream is asked at each reading
  const { headers } = await rawRequest(port, read(token, [], polled));
  const client = await openSocket(port);
  const wait = [
    ['If-None-Match', headers['etag']!],
    ['Prefer', 'wait=30'],
  ] as const;
  await client.write(read(token, wait, polled));
  while (clock.timers().length === 0 || serving.load().requests > 0) await rawRequest(port, PROBE);
  client.reset();
  while (clock.timers().length > 0) await rawRequest(port, PROBE);
  await idle();
  expect(lines.at(-1)).toMatchObject({ operation: 'getPendingPayment', status: 499, code: 'client_left' });
  endWaits();
});

type Turn = PromiseWithResolvers<void>;

test('a client that has left before its request comes to the app is none that the upstream is asked for', async () => {
  const gateway = openGateway();
  const { app } = createParts(gateway.deps);
  const [come, go, over] = Array.from({ length: 3 }, () => Promise.withResolvers<void>()) as [Turn, Turn, Turn];
  const host = new Hono<{ Bindings: HttpBindings }>()
    .use(async (c, next) => {
      c.env.outgoing.once('close', go.resolve);
      come.resolve();
      await go.promise;
      await next();
      over.resolve();
    })
    .route('/', app as never);
  const shared = { refuse: createRefuser(gateway.deps), waitUntil: gateway.deps.waitUntil };
  const serving = await serve({ app: host, ...shared, host: '127.0.0.1', port: 0 });
  onTestFinished(() => serving.drain(0));
  const client = await openSocket(Number(new URL(serving.url).port));
  await client.write(read());
  await come.promise;
  client.reset();
  await over.promise;
  expect(gateway.lines).toMatchObject([{ operation: 'getSubscription', status: 499, code: 'client_left' }]);
  expect(gateway.upstream.calls).toEqual([]);
});

test('beyond the connections that there may be, others are closed at once, and those that are there go on', async () => {
  const { port } = await listen({ mostConnections: 2 });
  const known = await openSocket(port);
  const other = await openSocket(port);
  for (const one of [known, other]) await one.write(PROBE);
  for (const one of [known, other]) expect((await one.readResponse()).status).toBe(200);
  const third = await openSocket(port);
  await third.closed;
  await known.write(PROBE);
  expect((await known.readResponse()).status).toBe(200);
  for (const one of [known, other]) one.destroy();
});

const HEAD = 'GET /api/v2/subscription/ HTTP/1.1\r\nHost: x\r\nX-Long: ';
const body = () =>
  `POST /api/v2/apikey/ HTTP/1.1\r\nHost: x\r\nAuthorization: Token ${secret()}\r\n` +
  'Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{';

/** Connected, and answered once: tried again where the limits are over before this process has sent anything. */
async function keptAlive(port: number): Promise<RawSocket> {
  const socket = await openSocket(port);
  await socket.write(PROBE);
  const answer = await socket.readResponse().catch(() => undefined);
  return answer ? socket : keptAlive(port);
}

test('who sends a head or a body byte by byte is cut off, and so is who sends nothing; who is idle between requests is not', async () => {
  const limits = { headersTimeout: 100, requestTimeout: 200, connectionsCheckingInterval: 20 };
  const { port, upstream } = await listen({ limits });
  const healthy = await keptAlive(port);
  const silent = await openSocket(port);
  const drippers = await Promise.all(Array.from({ length: 20 }, () => openSocket(port)));
  for (const [n, one] of drippers.entries()) await one.write(n % 2 ? HEAD : body());
  const left = new Set([silent, ...drippers]);
  for (const one of left) void one.closed.then(() => left.delete(one));
  const token = secret();
  while (left.size > 0) {
    for (const one of drippers) if (left.has(one)) await one.write('x');
    await healthy.write(read(token));
    expect((await healthy.readResponse()).status).toBe(200);
  }
  expect(upstream.callsTo('createApiKey')).toEqual([]);
  for (const one of [healthy, silent, ...drippers]) one.destroy();
});
