import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createApp } from '../../src/app.ts';
import { noMetrics } from '../../src/core/metrics.ts';
import { nodeDeps } from '../../src/entry/node/deps.ts';
import { addresses } from '../../src/entry/node/server/address.ts';
import { NodeInbound } from '../../src/entry/node/server/inbound.ts';
import { shedder } from '../../src/entry/node/server/shed.ts';
import { Unsent } from '../../src/entry/node/server/unsent.ts';
import { expectHidden, expectShown, LISTED } from '../http/cors.ts';
import { expectProblem } from '../http/problem.ts';
import { configOf, keepingLogger, type LogLine } from '../support/gateway.ts';
import { openSocket, rawRequest, requestText } from '../support/raw-client.ts';

let server: Server;
let close: () => Promise<void>;
let port: number;
/** So many in flight are too many. */
let tooMany: number;
let inFlight: Set<ServerResponse>;
let lines: LogLine[];
let refusals: string[];

beforeEach(async () => {
  [tooMany, inFlight, lines, refusals] = [0, new Set(), [], []];
  const metrics = { ...noMetrics, refused: (by: string) => void refusals.push(by) };
  const pressure = { isOverloaded: (many: number) => many > tooMany };
  const addressOf = addresses(['127.0.0.1']);
  const upstream = new URL('http://upstream.test');
  const config = configOf({ UPSTREAM_BASE_URL: upstream.href, ALLOWED_ORIGINS: LISTED });
  const logger = keepingLogger(lines);
  const built = nodeDeps({ config, upstream, logger, readiness: { isReady: () => true } });
  close = built.close;
  const shed = shedder({ app: createApp(built.deps), pressure, addressOf, metrics });
  server = createServer((incoming, outgoing) => {
    inFlight.add(outgoing);
    outgoing.once('close', () => inFlight.delete(outgoing));
    const inbound = new NodeInbound(incoming, outgoing, {
      addressOf,
      waitUntil: () => undefined,
      unsent: new Unsent(),
    });
    if (shed(inbound, inFlight)) return;
    if (incoming.url !== '/held') outgoing.end('served');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  port = (server.address() as AddressInfo).port; // a listening TCP server has one
});

afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await close();
});

const READ = { target: '/api/v2/subscription/?page=2', headers: [['X-Request-Id', 'of-the-client']] } as const;

test('a request too many gets its problem at once, a line in the log and its place in the figures', async () => {
  const answer = await rawRequest(port, requestText(READ));
  const problem = expectProblem(answer, { status: 503, code: 'overloaded', instance: '/api/v2/subscription/' });
  expect(problem).toMatchObject({ retryable: true, retry_after: 1 });
  expect(answer.headers).toMatchObject({ 'retry-after': '1', 'x-request-id': 'of-the-client' });
  const line = { request_id: 'of-the-client', method: 'GET', route: '(none)', status: 503, code: 'overloaded' };
  expect(lines).toMatchObject([line]);
  expect(refusals).toEqual(['event_loop']);
});

test('it is shown to a page of an origin that is allowed, and to no other', async () => {
  const from = (origin: string) => rawRequest(port, requestText({ ...READ, headers: [['Origin', origin]] }));
  expectShown(await from(LISTED));
  expectHidden(await from('https://other.example'));
  expectHidden(await rawRequest(port, requestText(READ)));
});

const from = (address: string, target = '/') =>
  rawRequest(port, requestText({ target, headers: [['X-Forwarded-For', address]] }));

test('those of an address with many are turned away first, and all others when there are twice as many', async () => {
  tooMany = 20;
  const held = Array.from({ length: 20 }, () => from('10.0.0.1', '/held').catch(() => undefined));
  await expect.poll(() => inFlight.size).toBe(20);
  expect([(await from('10.0.0.1')).status, (await from('10.0.0.2')).status]).toEqual([503, 200]);
  tooMany = 10;
  expect((await from('10.0.0.2')).status).toBe(503);
  server.closeAllConnections();
  await Promise.all(held);
});

test.each(['/livez', '/readyz', '/livez/', '/readyz?from=lb'])('a probe is never one: %s', async (target) => {
  expect(await rawRequest(port, requestText({ target }))).toMatchObject({ status: 200, body: 'served' });
  expect(refusals).toEqual([]);
});

test.each(['/livezx', '/api/livez', '/livez/more'])('what only looks like a probe may be one: %s', async (target) => {
  expect((await rawRequest(port, requestText({ target }))).status).toBe(503);
});

test('its connection goes on, with or without a body that nobody reads, and in order', async () => {
  const socket = await openSocket(port);
  const body = JSON.stringify({ label: 'x'.repeat(10_000) });
  await socket.write(requestText({ ...READ, method: 'HEAD' }));
  const { status, body: none } = await socket.readResponse({ head: true });
  expect([status, none]).toEqual([503, '']);
  await socket.write(
    requestText({ method: 'POST', target: '/api/v2/apikey/', body }) + requestText({ target: '/livez' }),
  );
  expect((await socket.readResponse()).status).toBe(503);
  expect(await socket.readResponse()).toMatchObject({ status: 200, body: 'served' });
  tooMany = Infinity;
  await socket.write(requestText(READ));
  expect(await socket.readResponse()).toMatchObject({ status: 200, body: 'served' });
  socket.destroy();
});
