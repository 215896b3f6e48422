import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Hono } from 'hono';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listen, type Listener } from '../../src/entry/node/server.ts';
import type { Env } from '../../src/http/bindings.ts';
import { keepingLogger } from '../support/gateway.ts';
import { openSocket } from '../support/raw-client.ts';

const STALLED_AFTER_MS = 300;
/** More than the kernel keeps for both sides together. */
const BIG = new Uint8Array(32 * 1_048_576);
const STEP = 1_048_576;
const STEP_MS = 50;

let listener: Listener;
let port: number;
let goOn: PromiseWithResolvers<void>;

/** Two lines, the second when the test says so. */
const streamed = () =>
  new ReadableStream<Uint8Array>({
    async start(stream) {
      stream.enqueue(new TextEncoder().encode('one\n'));
      await goOn.promise;
      stream.enqueue(new TextEncoder().encode('two\n'));
      stream.close();
    },
  });

beforeEach(async () => {
  goOn = Promise.withResolvers();
  const app = new Hono<Env>()
    .get('/big', () => new Response(BIG))
    .get('/streamed', () => new Response(streamed()))
    .get('/late', async () => {
      await goOn.promise;
      return new Response('late');
    });
  const at = { host: '127.0.0.1', port: 0, stalledAfterMs: STALLED_AFTER_MS };
  listener = await listen({ app, logger: keepingLogger([]), background: () => {}, ...at });
  port = Number(new URL(listener.url).port);
});

afterEach(() => listener.drain(0));

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

/** A client that has sent its request and reads only when it is told to. */
function reader(path: string): Socket {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => {}); // 'close' follows
  socket.write(get(path));
  return socket;
}

/** Resolves when a client that takes nothing of its answer has been cut off: so much time has passed for all. */
async function untilCut(): Promise<void> {
  const socket = reader('/big');
  const cut = new Promise((resolve) => void socket.once('close', resolve));
  const noticing = setInterval(() => socket.write(get('/big')), 20); // a write is how it learns
  await cut;
  clearInterval(noticing);
}

test('who reads nothing of an answer is cut off', async () => {
  await untilCut();
}, 10_000);

test('who reads slowly gets it all', async () => {
  const socket = reader('/big');
  let [read, step] = [0, 0];
  for await (const bytes of socket as AsyncIterable<Buffer>) {
    read += bytes.length;
    step += bytes.length;
    if (read >= BIG.length) break;
    if (step < STEP) continue;
    step = 0;
    await sleep(STEP_MS);
  }
  expect(read).toBeGreaterThanOrEqual(BIG.length);
}, 30_000);

test.each([
  ['/late', 'late'],
  ['/streamed', 'one\ntwo\n'],
])(
  'who waits for %s, while nothing comes, is not cut off',
  async (path, body) => {
    const socket = await openSocket(port);
    await socket.write(get(path));
    await untilCut();
    await untilCut();
    goOn.resolve();
    expect(await socket.readResponse()).toMatchObject({ status: 200, body });
    socket.destroy();
  },
  20_000,
);
