import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exampleRequest } from '../support/examples.ts';
import type { OperationId } from '../support/account-api.ts';
import { openSocket } from '../support/raw-client.ts';
import { secret } from '../support/secrets.ts';
import { Upstream } from '../support/upstream.ts';
import { complaintsIn, startWorkerd, type Workerd } from '../support/workerd.ts';

const LIMIT = 65_536;
const LONG = { UPSTREAM_TIMEOUT_MS: '60000', REQUEST_TIMEOUT_MS: '60000', RATE_LIMIT_PER_MINUTE: '0' };
const upstream = new Upstream();
let behind: Awaited<ReturnType<Upstream['listen']>>;
let workerd: Workerd;

beforeAll(async () => {
  behind = await upstream.listen();
  workerd = await startWorkerd({ ...LONG, UPSTREAM_BASE_URL: behind.url });
});
afterAll(async () => {
  await workerd.kill();
  await behind.close();
});

/** A client on a connection of its own, who has asked. */
async function ask(id: OperationId, asking: Partial<Record<'token' | 'method' | 'path' | 'rest', string>> = {}) {
  const { token, method, path, rest } = { ...exampleRequest(id), token: secret(), rest: '\r\n', ...asking };
  const socket = await openSocket(Number(new URL(workerd.url).port));
  await socket.write(`${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Token ${token}\r\n${rest}`);
  return socket;
}

const withBody = (id: OperationId) => {
  const body = String(exampleRequest(id).body);
  return `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
};

/** What was sent before has been taken in: of the account another request, and one of another who has left, are over. */
async function heardOf(token: string): Promise<void> {
  const held = upstream.hold('getApiKey');
  const leaver = await ask('getApiKey');
  const { left } = await held.call;
  leaver.reset();
  await left;
  held.release();
  const beside = await ask('getReferralConfig', { token });
  await beside.readResponse();
  beside.destroy();
}

/** To workerd a FIN is only the end of what a client says. */
describe('a client who leaves by an RST', () => {
  test('ends the call of the upstream that only it waited for, of an overview each', async () => {
    const held = upstream.hold('getReferralConfig');
    const one = await ask('getReferralConfig');
    const { left } = await held.call;
    one.reset();
    await left;
    held.release();
    const ids = ['getSubscription', 'listNotifications', 'getReferralConfig'] as const;
    const all = ids.map((id) => upstream.hold(id));
    const overview = await ask('getSubscription', { path: '/bff/v1/account-overview' });
    const calls = await Promise.all(all.map(({ call }) => call));
    overview.reset();
    await Promise.all(calls.map((call) => call.left));
    for (const each of all) each.release();
  });

  test('takes nothing from another who waits for the same', async () => {
    const token = secret();
    const held = upstream.hold('getSubscription');
    const first = await ask('getSubscription', { token });
    await held.call;
    const last = await ask('getSubscription', { token });
    await heardOf(token);
    first.reset();
    await heardOf(token);
    held.release();
    const { status, headers } = await last.readResponse();
    expect([status, headers['cache-status']]).toEqual([200, 'portico; fwd=miss; stored; collapsed']);
    last.destroy();
    expect(upstream.callsOf(token, 'getSubscription')).toHaveLength(1);
  });

  test('ends no write that was sent: its answer is kept', async () => {
    const token = secret();
    const key = `Idempotency-Key: ${secret()}\r\n`;
    const held = upstream.hold('purchasePlan');
    const one = await ask('purchasePlan', { token, rest: key + withBody('purchasePlan') });
    await held.call;
    one.reset();
    await heardOf(token);
    held.release();
    let replay = { status: 409, headers: {} as Record<string, unknown> };
    while (replay.status === 409) {
      const again = await ask('purchasePlan', { token, rest: key + withBody('purchasePlan') });
      replay = await again.readResponse();
      again.destroy();
    }
    expect([replay.status, replay.headers['idempotency-replayed']]).toEqual([200, 'true']);
    expect(upstream.callsOf(token, 'purchasePlan')).toHaveLength(1);
  });
});

const FRAMED = [
  ['with a length', (size: number) => `Content-Length: ${size}\r\n\r\n${'x'.repeat(size)}`],
  [
    'in chunks',
    (size: number) => `Transfer-Encoding: chunked\r\n\r\n${size.toString(16)}\r\n${'x'.repeat(size)}\r\n0\r\n\r\n`,
  ],
] as const;

describe.each(FRAMED)('a body that nobody takes, %s,', (_, framed) => {
  const sending = async (id: OperationId, method: string, size: number) => {
    const socket = await ask(id, { method, rest: framed(size) });
    const { status } = await socket.readResponse({ head: method === 'HEAD' });
    socket.destroy();
    return status;
  };

  test.each(['GET', 'HEAD'] as const)('of a %s is not looked at', async (method) => {
    for (const size of [LIMIT, LIMIT + 1]) expect(await sending('getSubscription', method, size)).toBe(200);
    expect(upstream.calls.at(-1)?.body).toBe('');
  });

  test('of a DELETE is passed over up to the limit, and too large above it', async () => {
    const calls = upstream.calls.length;
    expect(await sending('deletePaymentMethod', 'DELETE', LIMIT + 1)).toBe(413);
    expect(upstream.calls).toHaveLength(calls);
    expect(await sending('deletePaymentMethod', 'DELETE', LIMIT)).toBe(204);
    expect(upstream.calls.at(-1)?.body).toBe('');
  });
});

test('workerd has complained of nothing', () => expect(complaintsIn(workerd)).toEqual([]));
