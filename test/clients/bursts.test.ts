import { afterEach, beforeEach, expect, test } from 'vitest';
import { killAll, type NodeGateway, startNode } from '../runtime/node-gateway.ts';
import { exampleBody } from '../support/examples.ts';
import { openSocket } from '../support/raw-client.ts';
import { json, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

let upstream: ScriptedUpstream;
let gateway: NodeGateway;

beforeEach(async () => {
  upstream = await startUpstream();
  upstream.on('GET /api/v2/subscription/', json(200, exampleBody('getSubscription')));
  upstream.on('GET /api/v2/payment/method/', json(200, exampleBody('listPaymentMethods')));
  upstream.on('GET /api/v2/referral/config/', json(200, exampleBody('getReferralConfig')));
  upstream.on('GET /api/v2/notification/', json(200, exampleBody('listNotifications')));
  upstream.on(({ path }) => /method\/\d+\/$/.test(path), json(200, exampleBody('getPaymentMethod')));
  gateway = await startNode({
    UPSTREAM_BASE_URL: upstream.url,
    ADMIN_PORT: '0',
    RATE_LIMIT_PER_MINUTE: '0',
    UPSTREAM_MAX_CONNECTIONS: '4000', // it is not the waiting for the upstream that is under test
  });
});

afterEach(async () => {
  await killAll();
  await upstream.close();
});

/** Each on a connection of its own, all of them open before the first sends anything. */
async function allAtOnce(count: number, request: (index: number) => string): Promise<Record<number, number>> {
  const sockets = await Promise.all(Array.from({ length: count }, () => openSocket(gateway.port)));
  const counts: Record<number, number> = {};
  const ask = async (socket: (typeof sockets)[number], index: number) => {
    await socket.write(request(index));
    const { status } = await socket.readResponse();
    counts[status] = (counts[status] ?? 0) + 1;
    socket.destroy();
  };
  await Promise.all(sockets.map(ask));
  return counts;
}

const get = (path: string, token: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Token ${token}\r\n\r\n`;

test('a thousand equal reads at the same moment are all answered, from one call', async () => {
  const token = secret();
  expect(await allAtOnce(1_000, () => get('/api/v2/subscription/', token))).toEqual({ 200: 1_000 });
  expect(upstream.calls).toHaveLength(1);
});

test('so are a hundred and fifty overviews of as many accounts', async () => {
  expect(await allAtOnce(150, () => get('/bff/v1/account-overview', secret()))).toEqual({ 200: 150 });
});
