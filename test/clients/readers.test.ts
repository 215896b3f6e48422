import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { connect, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Context, Hono } from 'hono';
import { describe, expect, test } from 'vitest';
import { type ServeOptions, serve } from '../../src/entry/node/server/serve.ts';
import { Unsent } from '../../src/entry/node/server/unsent.ts';
import type { Env } from '../../src/middleware/request.ts';
import { openSocket, rawRequest } from '../support/raw-client.ts';
import type { AtEnd } from '../support/world.ts';

const STALLED_AFTER_MS = 300;
/** More than the kernel keeps for both sides together. */
const BIG = new Uint8Array(32 * 1_048_576);
const STEP = 1_048_576;
const STEP_MS = 100;
/** Less than its reading takes, and much more than a busy machine keeps it from the next step. */
const SLOW_STALLED_AFTER_MS = 2_000;

/** Two parts, the second when the test says so. */
const streamed = (goOn: Promise<void>, first = new TextEncoder().encode('one\n')) =>
  new ReadableStream<Uint8Array>({
    async start(stream) {
      stream.enqueue(first);
      await goOn;
      stream.enqueue(new TextEncoder().encode('two\n'));
      stream.close();
    },
  });

const refuse = (): never => {
  throw new Error('no guard refuses what is sent here');
};

interface Bounds extends Pick<Partial<ServeOptions>, 'stalledAfterMs'> {
  readonly mostUnsentBytes?: number;
}

async function start(atEnd: AtEnd, { mostUnsentBytes, ...bounds }: Bounds = {}) {
  const goOn = Promise.withResolvers<void>();
  const unsent = new Unsent(mostUnsentBytes);
  const streamOf = (c: Context<Env>, first?: Uint8Array<ArrayBuffer>) =>
    c.body(unsent.metered(c.env, streamed(goOn.promise, first)));
  const app = new Hono<Env>()
    .get('/big', (c) => c.body(BIG))
    .get('/half', (c) => streamOf(c, BIG))
    .get('/of/:owner', (c) => {
      unsent.note(c.env, c.req.param('owner'));
      return c.body(BIG);
    })
    .get('/full/:owner', (c) => c.body(`${unsent.isFull(c.req.param('owner'))}`))
    .get('/streamed', (c) => streamOf(c))
    .get('/late', async (c) => {
      await goOn.promise;
      return c.body('late');
    });
  const at = { host: '127.0.0.1', port: 0, stalledAfterMs: STALLED_AFTER_MS, ...bounds };
  const serving = await serve({ app, refuse, unsent, waitUntil: () => {}, ...at });
  atEnd(() => serving.drain(0));
  return { port: Number(new URL(serving.url).port), goOn };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

/** A client that has sent its request and reads only when it is told to. */
function reader(port: number, path: string): Socket {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => {}); // 'close' follows
  socket.write(get(path));
  return socket;
}

/** A client that takes nothing of its answer, until it is cut off: so much time has passed for all then. */
async function untilCut(port: number): Promise<void> {
  const socket = reader(port, '/big');
  const cut = new Promise((resolve) => void socket.once('close', resolve));
  const noticing = setInterval(() => socket.write(get('/big')), 20); // a write is how it learns
  await cut;
  clearInterval(noticing);
}

describe.concurrent('a client', () => {
  test('who reads nothing of an answer is cut off', async ({ onTestFinished }) => {
    const { port } = await start(onTestFinished);
    const begunAt = performance.now();
    await untilCut(port);
    expect(performance.now() - begunAt).toBeGreaterThanOrEqual(STALLED_AFTER_MS);
  }, 10_000);

  test.for(['/big', '/half'])(
    'who reads nothing of %s is cut off, whatever it sends',
    async (path, { onTestFinished }) => {
      const { port } = await start(onTestFinished);
      const socket = reader(port, path);
      const cut = new Promise((resolve) => void socket.once('close', resolve));
      const living = setInterval(() => socket.write('\r\n'), 20);
      await cut;
      clearInterval(living);
    },
  );

  test('who reads slowly gets it all', async ({ onTestFinished }) => {
    const { port } = await start(onTestFinished, { stalledAfterMs: SLOW_STALLED_AFTER_MS });
    const socket = reader(port, '/big');
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

  test.for([
    ['/late', 'late'],
    ['/streamed', 'one\ntwo\n'],
  ] as const)('who waits for %s, while nothing comes, is not cut off', async ([path, body], { onTestFinished }) => {
    // Of who was cut off nothing may count against this one, who has the same address.
    const { port, goOn } = await start(onTestFinished, { mostUnsentBytes: 16 * BIG.length });
    const socket = await openSocket(port);
    await socket.write(get(path));
    await untilCut(port);
    await untilCut(port);
    goOn.resolve();
    expect(await socket.readResponse()).toMatchObject({ status: 200, body });
    socket.destroy();
  });
});

/** Whether an answer to that owner would be one too many. */
async function isFull(port: number, owner: string): Promise<boolean> {
  const { body } = await rawRequest(port, get(`/full/${owner}`));
  return body === 'true';
}

test('an owner has an eighth of what may be unsent', async ({ onTestFinished }) => {
  const { port } = await start(onTestFinished, { mostUnsentBytes: 2 * BIG.length, stalledAfterMs: 60_000 });
  const full = (owner: string) => expect.poll(() => isFull(port, owner));
  const first = reader(port, '/of/first');
  await full('first').toBe(true);
  expect(await isFull(port, 'other')).toBe(false);
  first.destroy();
  await full('first').toBe(false);
});

/** How much comes of an answer before it is whole or its connection is closed. */
async function lengthRead(socket: Socket): Promise<number> {
  let length = 0;
  for await (const bytes of socket as AsyncIterable<Buffer>) if ((length += bytes.length) >= BIG.length) break;
  return length;
}

const lengthsOf = (sockets: readonly Socket[]) => Promise.all(sockets.map(lengthRead));

test('who has most loses an answer where all together have too much, and nobody else is refused', async ({
  onTestFinished,
}) => {
  const { port } = await start(onTestFinished, { mostUnsentBytes: 4.5 * BIG.length, stalledAfterMs: 60_000 });
  const greedy = [reader(port, '/of/greedy'), reader(port, '/of/greedy')];
  await expect.poll(() => isFull(port, 'greedy')).toBe(true);
  const others = ['first', 'second', 'third'].map((owner) => reader(port, `/of/${owner}`));
  for (const owner of ['first', 'second', 'third']) await expect.poll(() => isFull(port, owner)).toBe(true);
  expect(await isFull(port, 'stranger')).toBe(false);
  const [ofGreedy, ofOthers] = await Promise.all([lengthsOf(greedy), lengthsOf(others)]);
  expect(ofGreedy.filter((length) => length >= BIG.length)).toHaveLength(1);
  expect(ofOthers.filter((length) => length >= BIG.length)).toHaveLength(3);
});

test('nothing is kept of an answer whose client has left before it', async () => {
  const socket = new Socket();
  const outgoing = new ServerResponse(new IncomingMessage(socket));
  outgoing.assignSocket(socket);
  socket.destroy();
  await once(outgoing, 'close');
  const body = streamed(Promise.resolve());
  expect(new Unsent().metered({ outgoing }, body)).toBe(body);
});
