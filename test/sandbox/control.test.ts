import { describe, expect, it, onTestFinished } from 'vitest';
import { startSandbox } from '../../sandbox/src/node.ts';
import { type Client, createClient, DAY_SECONDS, ORIGIN } from './client.ts';

const SUBSCRIPTION = '/api/v2/subscription/';
const METHODS = '/api/v2/payment/method/';

const fault = ({ call }: Client, body: object) => call('POST', '/_sandbox/faults', { body });
const read = ({ call }: Client) => call('GET', SUBSCRIPTION, { as: 'paid' });
const remove = ({ call }: Client) => call('DELETE', METHODS, { as: 'lapsed' });
const cardOf = async ({ get }: Client) => (await get(SUBSCRIPTION, 'lapsed'))['payment_method'];

describe('faults', () => {
  it('replace so many answers of an operation, and are then used up', async () => {
    const client = createClient();
    await fault(client, { operation: 'getSubscription', status: 503, headers: { 'Retry-After': '7' }, times: 2 });
    for (let time = 0; time < 2; time += 1) {
      const { headers, status, text } = await read(client);
      expect([status, headers.get('Retry-After'), text]).toEqual([503, '7', '']);
    }
    expect(await client.call('GET', '/api/v2/notification/', { as: 'paid' })).toMatchObject({ status: 200 });
    expect(await read(client)).toMatchObject({ status: 200 });
  });

  it('can match every operation, send a text as it is, and add headers to the true answer', async () => {
    const client = createClient();
    await fault(client, { operation: '*', status: 429, body: { detail: 'Slow down.' } });
    expect(await read(client)).toMatchObject({ status: 429, json: { detail: 'Slow down.' } });
    await fault(client, { operation: 'getSubscription', body: '<h1>Back soon</h1>' });
    const { headers, status, text } = await read(client);
    expect([status, headers.get('Content-Type'), text]).toEqual([
      200,
      'text/html; charset=utf-8',
      '<h1>Back soon</h1>',
    ]);
    await fault(client, { operation: 'getSubscription', headers: { ETag: '"v1"' } });
    const tagged = await read(client);
    expect([tagged.headers.get('ETag'), tagged.json]).toMatchObject(['"v1"', { id: 1005 }]);
  });

  it('cut JSON off', async () => {
    const client = createClient();
    await fault(client, { operation: 'getSubscription', malformed: true });
    const cut = await client.sandbox.app.request(ORIGIN + SUBSCRIPTION);
    expect([cut.status, cut.headers.get('Content-Type')]).toEqual([200, 'application/json']);
    await expect(cut.json()).rejects.toThrow(SyntaxError);
  });

  it('delay the true answer, or another fault', async () => {
    const slept: number[] = [];
    const client = createClient({ sleep: async (ms) => void slept.push(ms) });
    await fault(client, { operation: 'getSubscription', delayMs: 1500 });
    await fault(client, { operation: 'getSubscription', delayMs: 20, status: 504 });
    expect([(await read(client)).status, (await read(client)).status, slept]).toEqual([200, 504, [1500, 20]]);
  });

  it.each([
    [true, null],
    [false, 8071],
  ])('strike after the work is done: %s', async (afterWork, card) => {
    const client = createClient();
    await fault(client, { operation: 'deletePaymentMethod', status: 504, afterWork });
    expect([(await remove(client)).status, await cardOf(client)]).toEqual([504, card]);
  });

  it('are checked', async () => {
    for (const body of [{}, { operation: 'getNothing' }, { operation: '*', status: 99 }, { operation: '*', typo: 1 }])
      expect(await fault(createClient(), body)).toMatchObject({ status: 400, json: { error: expect.any(String) } });
  });
});

it('the clock is moved on, or set, and ages what was there before the first call', async () => {
  const { call, get } = createClient();
  const move = (body: object) => call('POST', '/_sandbox/clock', { body });
  expect((await move({ advanceSeconds: 60 })).json).toEqual({ now: '2026-06-09T18:51:08.101Z' });
  await move({ advanceSeconds: 8 * DAY_SECONDS });
  expect(await get(SUBSCRIPTION, 'paused')).toMatchObject({ paused: false });
  expect((await move({ now: '2027-01-01T00:00:00+01:00' })).json).toEqual({ now: '2026-12-31T23:00:00.000Z' });
  expect(await move({})).toMatchObject({ status: 400 });
});

it('the record tells of each call, with its credential masked, until it is cleared', async () => {
  const { call, sandbox } = createClient();
  await call('GET', `${SUBSCRIPTION}?a=1`, { as: 'paid', headers: { 'X-Request-Id': 'r1' } });
  await call('GET', '/nowhere');
  const { json, text } = await call('GET', '/_sandbox/calls');
  const headers = { authorization: 'Token ***', 'x-request-id': 'r1' };
  expect(json).toMatchObject([
    { operation: 'getSubscription', method: 'GET', path: `${SUBSCRIPTION}?a=1`, headers, account: 'paid', status: 200 },
    { operation: null, method: 'GET', path: '/nowhere', account: null, status: 404 },
  ]);
  expect(text).not.toContain('sandbox-paid-key');
  expect(await call('DELETE', '/_sandbox/calls')).toMatchObject({ status: 204 });
  expect(sandbox.calls()).toEqual([]);
});

it('reset brings back the accounts as they were, and takes away faults, calls and the moved clock', async () => {
  const client = createClient();
  const credits = () => client.call('GET', '/api/v2/referral/credit/', { as: 'affiliate' });
  const before = await credits();
  await remove(client);
  await fault(client, { operation: '*', status: 500, times: 9 });
  client.sandbox.advanceClock(60);
  expect(await client.call('POST', '/_sandbox/reset')).toMatchObject({ status: 204 });
  expect(client.sandbox.calls()).toEqual([]);
  expect([(await credits()).text, await cardOf(client)]).toEqual([before.text, 8071]);
});

const readFrom = (url: string) =>
  fetch(`${url}/api/v2/payment/transaction/`, { headers: { Authorization: 'Token sandbox-paid-key' } });

it('on Node it listens on a free port, with its own address in the pages, and cuts the connection for a reset', async () => {
  const running = await startSandbox();
  const { url, sandbox } = running;
  onTestFinished(() => running.close());
  const page = (await (await readFrom(url)).json()) as { next: string };
  expect(page.next).toBe(`${url}/api/v2/payment/transaction/?page=2`);
  sandbox.addFault({ operation: 'listTransactions', reset: true });
  await expect(readFrom(url)).rejects.toThrow('fetch failed');
  expect(await readFrom(url)).toMatchObject({ status: 200 });
  await expect(startSandbox({ port: Number(new URL(url).port) })).rejects.toThrow('EADDRINUSE');
});
