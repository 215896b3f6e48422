import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { barrier, hold, json, reply, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import type { ConsoleEvent } from '../../src/console/event.d.ts';
import { call, stream } from '../support/http.ts';
import { secret } from '../support/secrets.ts';
import { killAll, startNode } from './node-gateway.ts';

const EVENTS = '/console/events';
const PATH = '/api/v2/subscription/';

let upstream: ScriptedUpstream;

beforeEach(async () => {
  upstream = await startUpstream();
});

afterEach(async () => {
  await killAll();
  await upstream.close();
});

/** A reader that takes nothing of what it is told. */
async function stalled(url: string): Promise<void> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined); // it is cut off
  socket.write(`GET ${EVENTS} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await once(socket, 'readable');
}

test('the console of a process tells every second what is so, and holds nobody up when the process is told to stop', async () => {
  const held = barrier();
  upstream.on(`GET ${PATH}`, reply(hold(held), json(200, { id: 1, plan: 2, payment_method: null })));
  const gateway = await startNode({ UPSTREAM_BASE_URL: upstream.url });
  expect((await call(gateway.adminUrl, { path: '/console' })).text).toContain('Portico console');
  for (const name of ['console.js', 'uPlot.iife.min.js'])
    expect((await call(gateway.adminUrl, { path: `/console/${name}` })).status).toBe(200);
  await stalled(gateway.adminUrl); // from here on requests under way are kept
  const inFlight = call(gateway.url, { path: PATH, token: secret() });
  await held.reached;
  const { lines } = await stream(gateway.adminUrl, { path: EVENTS });
  const events: ConsoleEvent[] = [];
  let isTold = false;
  for await (const line of lines) {
    if (line.startsWith('data: ')) events.push(JSON.parse(line.slice('data: '.length)) as ConsoleEvent);
    if (events.length === 3 && !isTold) gateway.signal('SIGTERM');
    isTold = events.length >= 3;
  }
  // They have ended, while the request goes on.
  expect(events[0]).toMatchObject({ underWayCount: 1 });
  expect(events[2]!.at - events[1]!.at).toBeGreaterThan(900);
  expect(gateway.hasExited()).toBe(false);
  held.release();
  expect((await inFlight).status).toBe(200);
  const answeredAt = performance.now();
  expect(await gateway.exited).toBe(0);
  expect(performance.now() - answeredAt).toBeLessThan(5_000); // of the ten seconds that it may take
});
