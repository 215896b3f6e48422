import { connect, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Hono } from 'hono';
import { expect, onTestFinished, test } from 'vitest';
import { serve } from '../../src/entry/node/server/serve.ts';
import type { Env } from '../../src/http/request.ts';
import { says } from '../support/contract.ts';
import { openSocket } from '../support/raw-client.ts';
import { oneAfterOther } from './raw.ts';

const MB = 1_048_576;
/** More than the kernel keeps for both sides together: what is read beyond that was sent meanwhile. */
const STEP_BYTES = 16 * MB;
const BIG = new Uint8Array(4 * STEP_BYTES);
/** No client may take nothing for so long. */
const STALLED_MS = 30_000;

const text = (words: string) => new TextEncoder().encode(words);

/** Two parts, the second when the test says so. */
const streamed = (first: Uint8Array, goOn: Promise<void>) =>
  new ReadableStream<Uint8Array>({
    async start(stream) {
      stream.enqueue(first);
      await goOn;
      stream.enqueue(text('two\n'));
      stream.close();
    },
  });

const refuse = (): never => {
  throw new Error('no guard refuses what is sent here');
};

/** `pass`: so much time passes, and the listener looks at what its clients have not read. */
async function listen(mostUnreadBytes = Infinity) {
  const goOn = Promise.withResolvers<void>();
  const app = new Hono<Env>()
    .get('/big', (c) => c.body(BIG))
    .get('/half', (c) => c.body(streamed(BIG, goOn.promise)))
    .post('/refused', (c) => c.text('', 413))
    .get('/streamed', (c) => c.body(streamed(text('one\n'), goOn.promise)))
    .get('/late', async (c) => {
      await goOn.promise;
      return c.body('late');
    });
  const shared = { app, refuse, waitUntil: () => {}, host: '127.0.0.1', port: 0 };
  const serving = await serve({ ...shared, mostUnreadBytes, sweeps: false });
  const unread = () => serving.load().unreadBytes;
  onTestFinished(() => serving.drain(0));
  let now = performance.timeOrigin; // later than any time of this process
  const pass = (ms: number) => serving.sweep((now += ms));
  return { serving, port: Number(new URL(serving.url).port), goOn, unread, pass };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

const refused = (bytes: number) => `POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n`;

const closing = (head: string) => head.replace('\r\n', '\r\nConnection: close\r\n');

/** A client that has sent its request and reads only when it is told to. */
function reader(port: number, head: string): Socket {
  const socket = connect({ port, host: '127.0.0.1' });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {}); // 'close' follows
  socket.write(head);
  return socket;
}

/** The kernel says of nothing that it has taken bytes: it is looked at in each turn, for as long as it takes. */
async function untilSo(is: () => boolean): Promise<void> {
  while (!is()) await turn();
}

test.each(['/big', '/half'])(
  `${says('a client that has something to read and takes nothing for 30 s is cut')}, whatever it sends meanwhile: %s`,
  async (path) => {
    const { port, unread, pass } = await listen();
    const socket = reader(port, get(path));
    await untilSo(() => (pass(0), unread() > 0));
    pass(STALLED_MS - 1);
    expect(unread()).toBeGreaterThan(0);
    await untilSo(() => {
      socket.write('\r\n'); // also how it learns that it is cut off
      pass(STALLED_MS); // the kernel may have taken something since
      return socket.closed;
    });
    expect(unread()).toBe(0);
  },
);

test('who reads slowly gets it all', async () => {
  const { port, unread, pass } = await listen();
  const socket = reader(port, get('/big'));
  await untilSo(() => (pass(0), unread() > 0));
  let [all, step] = [0, 0];
  for await (const bytes of socket as AsyncIterable<Buffer>) {
    all += bytes.length;
    step += bytes.length;
    if (all >= BIG.length) break;
    if (step < STEP_BYTES) continue;
    step = 0;
    pass(STALLED_MS);
  }
  expect(all).toBeGreaterThanOrEqual(BIG.length);
});

test.each([
  ['/late', 'late'],
  ['/streamed', 'one\ntwo\n'],
])('who waits for %s, while nothing comes, is not cut off', async (path, body) => {
  const { port, goOn, pass } = await listen();
  const socket = await openSocket(port);
  await socket.write(get(path));
  const idle = await openSocket(port);
  await idle.write(get('/nowhere'));
  expect((await idle.readResponse()).status).toBe(404); // the listener has seen the other too
  for (let n = 0; n < 4; n++) pass(STALLED_MS);
  goOn.resolve();
  expect(await socket.readResponse()).toMatchObject({ status: 200, body });
  await idle.write(get('/nowhere'));
  expect((await idle.readResponse()).status).toBe(404);
  for (const one of [socket, idle]) one.destroy();
});

test(`${says('Bytes that clients have not read yet are bounded')}: who has taken nothing for longest is cut off`, async () => {
  const { port, unread } = await listen(1.5 * BIG.length);
  const longest = reader(port, get('/big'));
  await untilSo(() => unread() > 0);
  const other = reader(port, get('/big'));
  let all = 0;
  other.on('data', (bytes) => (all += bytes.length));
  await untilSo(() => all > BIG.length);
  await untilSo(() => (longest.write('\r\n'), longest.closed));
  await untilSo(() => unread() === 0);
});

const PIECE = Buffer.alloc(65_536, 'x');

test.each([
  [413, closing(refused(4 * MB))],
  [
    404,
    closing(
      refused(4 * MB)
        .replace('/refused', '/x')
        .replace(/Content.*\r\n/, 'Transfer-Encoding: chunked\r\n'),
    ) + '400000\r\n',
  ],
  [400, refused(4 * MB).replace('POST', 'WHAT')],
  [400, refused(4 * MB).replace('POST', 'CONNECT')],
  [431, `GET /${'x'.repeat(70_000)}`],
])('who sends 4 MB before reading finds the %d that came meanwhile, and no reset', async (status, head) => {
  const { port } = await listen();
  const [socket, other] = [reader(port, head), await openSocket(port)];
  for (let sent = 0; sent < 4 * MB; sent += PIECE.length) {
    await promisify<Buffer, void>(socket.write.bind(socket))(PIECE);
    await oneAfterOther(other, get('/nowhere')); // the listener has had its turn
  }
  let answer = '';
  for await (const bytes of socket as AsyncIterable<Buffer>) answer += bytes.toString();
  expect(answer).toMatch(`HTTP/1.1 ${status} `);
});

test.each([refused(64 * MB), closing(refused(64 * MB))])(
  'but who sends more than 5 MB, or for 2 s, is cut off: %j',
  async (head) => {
    const { port, pass, serving } = await listen();
    const [slow, fast] = [await openSocket(port), reader(port, head)];
    await untilSo(() => (fast.write(PIECE), fast.closed));
    const open = () => serving.load().connections;
    await oneAfterOther(slow, head);
    pass(0);
    pass(1_999);
    expect(open()).toBe(1);
    pass(1);
    await untilSo(() => open() === 0);
  },
);

test('nor does the end of the process reset it', async () => {
  const { port, serving } = await listen();
  const socket = await openSocket(port);
  await oneAfterOther(socket, refused(20_000));
  let isDrained = false;
  const drained = serving.drain(60_000).then(() => (isDrained = true));
  for (let sent = 0; sent < 20_000; sent++) await Promise.all([socket.write('x'), turn()]);
  expect(isDrained).toBe(false);
  await drained;
});
