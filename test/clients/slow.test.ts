import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { killAll, type NodeGateway, startNode } from '../runtime/node-gateway.ts';
import { call } from '../support/http.ts';
import { openSocket } from '../support/raw-client.ts';
import { json, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import type { AtEnd } from '../support/world.ts';

const PATH = '/api/v2/subscription/';
const DRIPPING = 1_000;
const EACH_MS = 250;
const GONE_MS = 10_000;
const HEALTHY_P99_MS = 1_000;

afterAll(killAll);

async function open(atEnd: AtEnd) {
  const upstream = await startUpstream();
  upstream.on(`GET ${PATH}`, json(200, { id: 1, plan: 2, payment_method: null }));
  const gateway = await startNode({ UPSTREAM_BASE_URL: upstream.url, ADMIN_PORT: '0', RATE_LIMIT_PER_MINUTE: '0' });
  atEnd(() => upstream.close());
  return { upstream, gateway };
}

/** A client that does not leave when it is told to, and sends a byte now and then for as long as anybody takes it. */
class Dripper {
  readonly gone: Promise<void>;
  readonly #socket: Socket;

  constructor(port: number, start: string) {
    this.#socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    this.#socket.on('error', () => {}); // 'close' follows
    this.#socket.resume();
    this.gone = new Promise((resolve) => void this.#socket.once('close', () => resolve()));
    this.#socket.write(start);
  }

  drip(): void {
    if (!this.#socket.destroyed) this.#socket.write('x');
  }
}

const headOf = () => `GET ${PATH} HTTP/1.1\r\nHost: x\r\nX-Long: `;
const bodyOf = () =>
  `POST /api/v2/apikey/ HTTP/1.1\r\nHost: x\r\nAuthorization: Token ${secret()}\r\n` +
  'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{';

/** What a client waits for each of its reads, one after the other, until it is told to stop. */
async function healthyUntil({ url }: NodeGateway, isOver: () => boolean): Promise<readonly number[]> {
  const token = secret();
  const took: number[] = [];
  while (!isOver()) {
    const sentAt = performance.now();
    expect((await call(url, { path: PATH, token })).status).toBe(200);
    took.push(performance.now() - sentAt);
    await sleep(5); // a client that thinks, and leaves the processor to those under test
  }
  return took.toSorted((a, b) => a - b);
}

/** Both wait for seconds. */
describe.concurrent('a gateway', () => {
  test('a thousand who send a byte now and then are gone in seconds, and nobody else notices', async ({
    onTestFinished,
  }) => {
    const { upstream, gateway } = await open(onTestFinished);
    const idle = await openSocket(gateway.port);
    const drippers = Array.from(
      { length: DRIPPING },
      (_, at) => new Dripper(gateway.port, at % 2 ? headOf() : bodyOf()),
    );
    const beganAt = performance.now();
    let left = DRIPPING;
    for (const { gone } of drippers) void gone.then(() => left--);
    const dripping = setInterval(() => drippers.forEach((one) => one.drip()), EACH_MS);
    const waits = await healthyUntil(gateway, () => left === 0 || performance.now() - beganAt > GONE_MS);
    clearInterval(dripping);
    expect(left).toBe(0);
    expect(waits[Math.floor(waits.length * 0.99)]).toBeLessThan(HEALTHY_P99_MS);
    expect(upstream.calls.map(({ path }) => path)).not.toContain('/api/v2/apikey/');
    await idle.closed; // one that never sent anything
    expect(gateway.stderr()).toBe('');
  }, 30_000);

  test('a connection that idles between its requests is left alone for longer than that', async ({
    onTestFinished,
  }) => {
    const { gateway } = await open(onTestFinished);
    const socket = await openSocket(gateway.port);
    const request = `GET ${PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Token ${secret()}\r\n\r\n`;
    await socket.write(request);
    expect((await socket.readResponse()).status).toBe(200);
    const slow = await openSocket(gateway.port);
    await slow.write(bodyOf());
    await slow.closed; // of all limits on requests, the longest has passed
    await socket.write(request);
    expect((await socket.readResponse()).status).toBe(200);
    socket.destroy();
  }, 30_000);
});
