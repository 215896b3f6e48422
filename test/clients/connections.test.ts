import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { killAll, type NodeGateway, startNode } from '../runtime/node-gateway.ts';
import { exampleBody } from '../support/examples.ts';
import { openSocket, requestText } from '../support/raw-client.ts';
import { barrier, hold, json, reply, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

const DESCRIPTORS = 300;
const AT_ONCE = 50;
const ATTACKER = '127.0.0.2';
const TARGET = '/api/v2/subscription/';

interface Sent {
  readonly bytes?: string;
  readonly after?: string;
  /** Nothing is answered soon. */
  readonly isHeld?: boolean;
}

const PROBE = requestText({ target: '/livez' });
const UNFINISHED = requestText({
  method: 'POST',
  target: '/api/v2/register/social/',
  headers: [
    ['Content-Type', 'application/json'],
    ['Content-Length', '2'],
  ],
});

afterAll(killAll);

async function open(given: Readonly<Record<string, string>> = {}) {
  const upstream = await startUpstream();
  upstream.on(`GET ${TARGET}`, json(200, exampleBody('getSubscription')));
  onTestFinished(() => upstream.close());
  const limited = ['sh', '-c', `ulimit -n ${DESCRIPTORS}; exec "$@"`, 'sh'];
  const env = { ADMIN_PORT: '0', UPSTREAM_MAX_CONNECTIONS: '16', RATE_LIMIT_PER_MINUTE: '0', ...given };
  return { upstream, gateway: await startNode({ UPSTREAM_BASE_URL: upstream.url, ...env }, limited) };
}

const read = () => requestText({ target: TARGET, headers: [['Authorization', `Token ${secret()}`]] });

/** A connection that has had an answer. */
async function served({ port }: NodeGateway) {
  const socket = await openSocket(port);
  await socket.write(PROBE);
  expect((await socket.readResponse()).status).toBe(200);
  return socket;
}

/** A connection that waits for an answer to what it sends, if it sends anything, and then sends no more than `after`. */
function idler(port: number, from: string, { bytes = '', after = '', isHeld = bytes === '' }: Sent): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined); // 'close' follows
  if (bytes !== '') socket.write(bytes);
  return new Promise((resolve) => {
    socket.once('close', () => resolve()).once(isHeld ? 'connect' : 'data', () => socket.write(after, () => resolve()));
  });
}

/** More connections than the process can have. */
async function crowd({ port }: NodeGateway, from: string, sent: Sent = {}): Promise<void> {
  for (let opened = 0; opened < 2 * DESCRIPTORS; opened += AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, () => idler(port, from, sent)));
}

test.each([
  ['have sent nothing', {}],
  ['have had an answer', { bytes: PROBE }],
  ['have had an answer, and sent an empty line since', { bytes: PROBE, after: '\r\n' }],
  ['wait for the body that they have announced', { bytes: UNFINISHED, isHeld: true }],
])('one address with connections that %s keeps nobody out', async (_, sent) => {
  const { gateway } = await open();
  const known = await openSocket(gateway.port);
  await known.write(read());
  expect((await known.readResponse()).status).toBe(200);
  await crowd(gateway, ATTACKER, sent);
  const stranger = await openSocket(gateway.port);
  for (const socket of [known, stranger]) {
    await socket.write(read());
    expect((await socket.readResponse()).status).toBe(200);
    socket.destroy();
  }
});

test('of an address with many, those with a request under way, or a part of one, are kept', async () => {
  const { gateway, upstream } = await open();
  const waits = barrier();
  upstream.on(`GET ${TARGET}`, reply(hold(waits), json(200, exampleBody('getSubscription'))));
  const [idle, begun, asking] = [await served(gateway), await served(gateway), await openSocket(gateway.port)];
  await asking.write(PROBE + read()); // both come at once
  expect((await asking.readResponse()).status).toBe(200);
  await waits.reached;
  await begun.write(PROBE.slice(0, 20));
  await crowd(gateway, '127.0.0.1');
  await idle.closed;
  await begun.write(PROBE.slice(20));
  expect((await begun.readResponse()).status).toBe(200);
  waits.release();
  expect((await asking.readResponse()).status).toBe(200);
  for (const socket of [begun, asking]) socket.destroy();
});

test('where all addresses have as many, a few are closed and not all', async () => {
  const { gateway } = await open();
  let closed = 0;
  for (let nth = 1; nth <= 200; nth++) {
    const socket = connect({ port: gateway.port, host: '127.0.0.1', localAddress: `127.0.1.${nth}` });
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined).once('close', () => closed++);
    await once(socket, 'connect');
  }
  await expect.poll(() => closed).toBeGreaterThan(0);
  expect(closed).toBeLessThan(100);
});

test('those of a trusted proxy, behind which others are, are closed after all others', async () => {
  const { gateway } = await open({ TRUSTED_PROXIES: '127.0.0.1' });
  const proxied = await Promise.all(Array.from({ length: 100 }, () => served(gateway)));
  await crowd(gateway, ATTACKER);
  for (const socket of proxied) {
    await socket.write(PROBE);
    expect((await socket.readResponse()).status).toBe(200);
    socket.destroy();
  }
});
