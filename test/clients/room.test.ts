import { afterEach, beforeEach, expect, test } from 'vitest';
import { createApp, createRefuser } from '../../src/app.ts';
import { nodeDeps } from '../../src/entry/node/deps.ts';
import { serve, type Serving } from '../../src/entry/node/server/serve.ts';
import { expectHidden, expectShown, LISTED } from '../http/cors.ts';
import { expectProblem } from '../http/problem.ts';
import { configOf, keepingLogger, type LogLine } from '../support/gateway.ts';
import { openSocket, rawRequest, requestText } from '../support/raw-client.ts';
import { accountTables } from '../support/account-api.ts';

/** Requests that may be under way. */
const MOST = 16;

let serving: Serving;
let close: () => Promise<void>;
let port: number;
let lines: LogLine[];
let refusals: number;
let underWay: number;
let goOn: PromiseWithResolvers<void>;
/** Resolves where those under way only wait. */
let waiting: PromiseWithResolvers<void>;

beforeEach(async () => {
  [lines, refusals, underWay, goOn, waiting] = [[], 0, 0, Promise.withResolvers(), Promise.withResolvers()];
  const upstream = new URL('http://upstream.test');
  const config = configOf({ UPSTREAM_BASE_URL: upstream.href, ALLOWED_ORIGINS: LISTED });
  const readiness = { isReady: () => true };
  const built = nodeDeps({ ...accountTables, config, upstream, logger: keepingLogger(lines), readiness });
  close = built.close;
  const app = createApp(built.deps).get('/held', async (c) => {
    underWay++;
    await Promise.race([goOn.promise, waiting.promise.then(() => built.deps.leaveRoom?.(c.env))]);
    await goOn.promise;
    return c.text('served');
  });
  serving = await serve({
    app,
    refuse: createRefuser(built.deps),
    waitUntil: built.deps.waitUntil,
    host: '127.0.0.1',
    port: 0,
    mostRequests: MOST,
    onOverload: () => refusals++,
  });
  port = Number(new URL(serving.url).port);
});

afterEach(async () => {
  goOn.resolve();
  await serving.drain(0);
  await close();
});

const READ = { target: '/problems?page=2', headers: [['X-Request-Id', 'of-the-client']] } as const;

const ask = (target: string = READ.target) => rawRequest(port, requestText({ target }));

/** As many requests as may be, which are not answered before the test says so. */
async function fill(): Promise<void> {
  for (let one = 0; one < MOST; one++) void ask('/held').catch(() => undefined);
  await expect.poll(() => underWay).toBe(MOST);
}

test('a request too many gets its problem at once, a line in the log and its place in the figures', async () => {
  await fill();
  const answer = await rawRequest(port, requestText(READ));
  const problem = expectProblem(answer, { status: 503, code: 'overloaded', instance: '/problems' });
  expect(problem).toMatchObject({ retryable: true, retry_after: 1 });
  expect(answer.headers).toMatchObject({ 'retry-after': '1', 'x-request-id': 'of-the-client' });
  const line = { request_id: 'of-the-client', method: 'GET', route: '(none)', status: 503, code: 'overloaded' };
  expect(lines).toMatchObject([line]);
  expect(refusals).toBe(1);
});

test('it is shown to a page of an origin that is allowed, and to no other', async () => {
  await fill();
  const page = (origin: string) => rawRequest(port, requestText({ ...READ, headers: [['Origin', origin]] }));
  expectShown(await page(LISTED));
  expectHidden(await page('https://other.example'));
  expectHidden(await rawRequest(port, requestText(READ)));
});

test('when those under way are answered there is room again', async () => {
  await fill();
  expect((await ask()).status).toBe(503);
  goOn.resolve();
  await expect.poll(async () => (await ask()).status).toBe(200);
});

test('a request that only waits for a change takes none', async () => {
  await fill();
  expect((await ask()).status).toBe(503);
  waiting.resolve();
  await expect.poll(async () => (await ask()).status).toBe(200);
  expect(serving.load().requests).toBe(0);
});

test.each(['/livez', '/readyz', '/livez/', '/readyz?from=lb'])('a probe is never one: %s', async (target) => {
  await fill();
  expect((await rawRequest(port, requestText({ target }))).status).toBe(200);
  expect(refusals).toBe(0);
});

test.each(['/livezx', '/api/livez', '/livez/more'])('what only looks like a probe may be one: %s', async (target) => {
  await fill();
  expect((await rawRequest(port, requestText({ target }))).status).toBe(503);
});

test('its connection goes on, with or without a body that nobody reads, and in order', async () => {
  await fill();
  const socket = await openSocket(port);
  const body = JSON.stringify({ label: 'x'.repeat(10_000) });
  await socket.write(requestText({ ...READ, method: 'HEAD' }));
  const { status, body: none } = await socket.readResponse({ head: true });
  expect([status, none]).toEqual([503, '']);
  await socket.write(
    requestText({ method: 'POST', target: '/api/v2/apikey/', body }) + requestText({ target: '/livez' }),
  );
  expect((await socket.readResponse()).status).toBe(503);
  expect((await socket.readResponse()).status).toBe(200);
  goOn.resolve();
  await expect.poll(async () => (await ask()).status).toBe(200);
  await socket.write(requestText(READ));
  expect((await socket.readResponse()).status).toBe(200);
  socket.destroy();
});
