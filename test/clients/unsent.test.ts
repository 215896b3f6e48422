import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { expectProblem } from '../http/problem.ts';
import type { Backlog } from '../../src/middleware/sending.ts';
import { startGateway } from '../support/gateway.ts';
import { call } from '../support/http.ts';
import { requestText } from '../support/raw-client.ts';
import { secret } from '../support/secrets.ts';
import { openWorld, type World } from '../support/world.ts';

const SUBSCRIPTION = '/api/v2/subscription/';
const OVERVIEW = '/bff/v1/account-overview';
const MB = 1_048_576;
/** More than the kernel keeps for both sides of a connection, by far. */
const LARGE_MB = 16;
/** Nothing makes it much smaller. */
const LARGE = randomBytes(LARGE_MB * MB * (3 / 4)).toString('base64');
/** Of large answers, each of which waits for the most part: more than an owner may have. */
const MANY = 8;

let world: World;
let large: boolean;

beforeEach(async () => {
  world = await openWorld({ UPSTREAM_MAX_BODY_BYTES: String(2 * LARGE_MB * MB) });
  large = false;
  world.answerAll(() => (large ? LARGE : 1));
});

/** A client that takes nothing of its answer. */
function reader(headers: readonly (readonly [string, string])[], target: string): Socket {
  const socket = connect({ port: world.gateway.port, host: '127.0.0.1' });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined); // 'close' follows
  socket.write(requestText({ target, headers: [['Authorization', `Token ${world.token}`], ...headers] }));
  return socket;
}

/** Takes what there is to the end, of which it returns the last. */
async function endOf(socket: Socket): Promise<string> {
  let end = '';
  socket.on('data', (part) => (end = (end + part.toString('latin1')).slice(-100)));
  if (!socket.closed) await once(socket, 'close');
  return end;
}

const ask = (token = world.token) => world.ask('listNotifications', { token });

test.each([
  ['as they are', []],
  ['compressed', [['Accept-Encoding', 'gzip']]],
] as const)(
  'an account that takes none of its answers, %s, gets no more of them, and others do',
  async (_, headers) => {
    const [other, good] = [secret(), await ask()];
    expect(good.status).toBe(200);
    large = true;
    await world.call({ path: SUBSCRIPTION, token: world.token });
    const readers = Array.from({ length: MANY }, () => reader(headers, SUBSCRIPTION));
    let answer = good;
    await expect.poll(async () => (answer = await ask()).status, { timeout: 30_000 }).toBe(503);
    large = false;
    expect(expectProblem(answer, { status: 503, code: 'overloaded' })).toMatchObject({
      retry_after: 1,
      retryable: true,
    });
    const line = world.gateway.lines.find(({ request_id }) => request_id === answer.headers['x-request-id']);
    expect(line).toMatchObject({ status: 503, code: 'overloaded', account: expect.any(String) });
    const write = await world.ask('createApiKey', { key: 'told' }); // it has happened, so it is told
    expect([write.status, (await ask(other)).status]).toEqual([200, 200]);
    for (const one of readers) one.destroy();
    await expect.poll(async () => (await ask()).status).toBe(200);
  },
);

test('of streams that an account does not take those beyond its share are broken off', async () => {
  large = true;
  await world.call({ path: SUBSCRIPTION, token: world.token });
  const headers = [
    ['Accept', 'application/x-ndjson'],
    ['Connection', 'close'],
  ] as const;
  const written = () => world.gateway.lines.filter(({ route }) => route === OVERVIEW).length;
  const readers: Socket[] = [];
  while (readers.length < MANY) {
    readers.push(reader(headers, `${OVERVIEW}?sections=subscription`));
    await expect.poll(written, { timeout: 30_000 }).toBe(readers.length);
  }
  large = false;
  expect((await ask(secret())).status).toBe(200);
  const ends = await Promise.all(readers.map(endOf));
  const whole = ends.filter((end) => end.includes('{"complete":true')).length;
  expect(whole).toBeGreaterThan(0);
  expect(whole).toBeLessThan(MANY);
});

const NOTHING_UNSENT: Backlog = { note: () => undefined, isFull: () => false, metered: (_, body) => body };

test('every answer is noted for its account, that to a write and a problem too', async () => {
  const owners: string[] = [];
  const note = (_: object, owner: string) => void owners.push(owner);
  const gateway = await startGateway(world.upstream.url, { backlog: { ...NOTHING_UNSENT, note } });
  onTestFinished(() => gateway.close());
  const token = secret();
  const send = (method: string, path: string) => call(gateway.url, { method, path, token });
  await send('GET', SUBSCRIPTION); // accepted from here on
  await send('GET', SUBSCRIPTION);
  await send('POST', '/api/v2/proxy/list/refresh/');
  await send('GET', '/api/v2/unknown/');
  await send('GET', `${OVERVIEW}?sections=nothing`);
  const [, account, ofWrite, ofNobody, ofProblem] = owners;
  expect(owners).toHaveLength(5);
  expect([ofWrite, ofProblem]).toEqual([account, account]);
  expect(ofNobody).not.toBe(account);
});

test.each(['/livez', '/readyz'])('a probe is answered however much is unread: %s', async (path) => {
  const full = { ...NOTHING_UNSENT, isFull: () => true };
  const gateway = await startGateway(world.upstream.url, { backlog: full });
  onTestFinished(() => gateway.close());
  expect((await call(gateway.url, { path })).status).toBe(200);
  expect((await call(gateway.url, { path: '/problems' })).status).toBe(503);
});
