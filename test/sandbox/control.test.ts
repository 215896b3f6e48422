import { describe, expect, it } from 'vitest';
import { createClient } from './client.ts';
import type { Client } from './client.ts';

const SUBSCRIPTION = '/api/v2/subscription/';

const fault = ({ call }: Client, body: object) => call('POST', '/_sandbox/faults', { body });

describe('faults', () => {
  it('replace so many answers of an operation, and are then used up', async () => {
    const client = createClient();
    await fault(client, { operation: 'getSubscription', status: 503, headers: { 'Retry-After': '7' }, times: 2 });
    for (let time = 0; time < 2; time += 1) {
      const { headers, status, text } = await client.call('GET', SUBSCRIPTION, { as: 'paid' });
      expect([status, headers.get('Retry-After'), text]).toEqual([503, '7', '']);
    }
    expect(await client.call('GET', '/api/v2/notification/', { as: 'paid' })).toMatchObject({ status: 200 });
    expect(await client.call('GET', SUBSCRIPTION, { as: 'paid' })).toMatchObject({ status: 200 });
  });

  it('can match every operation', async () => {
    const client = createClient();
    await fault(client, { operation: '*', status: 429, body: { detail: 'Request was throttled.' } });
    const { json, status } = await client.call('GET', '/api/v2/notification/', { as: 'paid' });
    expect([status, json]).toEqual([429, { detail: 'Request was throttled.' }]);
  });

  it('send a text as it is: HTML with status 200 is a maintenance page', async () => {
    const client = createClient();
    await fault(client, { operation: 'getSubscription', body: '<h1>Back soon</h1>' });
    const { headers, status, text } = await client.call('GET', SUBSCRIPTION, { as: 'paid' });
    expect([status, headers.get('Content-Type'), text]).toEqual([
      200,
      'text/html; charset=utf-8',
      '<h1>Back soon</h1>',
    ]);
  });

  it('cut JSON off', async () => {
    const client = createClient();
    await fault(client, { operation: 'getSubscription', malformed: true });
    const response = await client.sandbox.app.request(`http://upstream.test${SUBSCRIPTION}`);
    expect([response.status, response.headers.get('Content-Type')]).toEqual([200, 'application/json']);
    await expect(response.json()).rejects.toThrow(SyntaxError);
  });

  it('delay the true answer, or another fault', async () => {
    const slept: number[] = [];
    const client = createClient({ sleep: async (ms) => void slept.push(ms) });
    await fault(client, { operation: 'getSubscription', delayMs: 1500 });
    await fault(client, { operation: 'getSubscription', delayMs: 20, status: 504 });
    expect(await client.call('GET', SUBSCRIPTION, { as: 'paid' })).toMatchObject({ status: 200, json: { id: 1005 } });
    expect(await client.call('GET', SUBSCRIPTION, { as: 'paid' })).toMatchObject({ status: 504 });
    expect(slept).toEqual([1500, 20]);
  });

  it('add headers to the true answer', async () => {
    const client = createClient();
    await fault(client, { operation: 'getSubscription', headers: { ETag: '"v1"' } });
    const { headers, json } = await client.call('GET', SUBSCRIPTION, { as: 'paid' });
    expect([headers.get('ETag'), json]).toMatchObject(['"v1"', { id: 1005 }]);
  });

  it('break the body off where there is no connection to cut', async () => {
    const client = createClient();
    await fault(client, { operation: 'getSubscription', reset: true });
    const response = await client.sandbox.app.request(`http://upstream.test${SUBSCRIPTION}`);
    await expect(response.text()).rejects.toThrow('connection cut');
  });

  it('can strike after the work is done', async () => {
    const client = createClient();
    await fault(client, { operation: 'deletePaymentMethod', status: 504, afterWork: true });
    expect(await client.call('DELETE', '/api/v2/payment/method/', { as: 'lapsed' })).toMatchObject({ status: 504 });
    expect(await client.get(SUBSCRIPTION, 'lapsed')).toMatchObject({ payment_method: null });
  });

  it('otherwise strike before it', async () => {
    const client = createClient();
    await fault(client, { operation: 'deletePaymentMethod', status: 504 });
    expect(await client.call('DELETE', '/api/v2/payment/method/', { as: 'lapsed' })).toMatchObject({ status: 504 });
    expect(await client.get(SUBSCRIPTION, 'lapsed')).toMatchObject({ payment_method: 8071 });
  });

  it('are cleared by DELETE, and nothing else is', async () => {
    const client = createClient();
    await client.call('DELETE', '/api/v2/payment/method/', { as: 'lapsed' });
    await fault(client, { operation: '*', status: 500, times: 9 });
    expect(await client.call('DELETE', '/_sandbox/faults')).toMatchObject({ status: 204 });
    expect(await client.get(SUBSCRIPTION, 'lapsed')).toMatchObject({ payment_method: null });
    expect(client.sandbox.calls()).toHaveLength(2);
  });

  it.each([{}, { operation: 'getNothing' }, { operation: '*', status: 99 }, { operation: '*', typo: 1 }])(
    'are checked: %j',
    async (body) => {
      expect(await fault(createClient(), body)).toMatchObject({ status: 400, json: { error: expect.any(String) } });
    },
  );
});

describe('the clock', () => {
  it('is moved on, or set', async () => {
    const { call } = createClient();
    const move = (body: object) => call('POST', '/_sandbox/clock', { body });
    expect((await move({ advanceSeconds: 60 })).json).toEqual({ now: '2026-06-09T18:51:08.101Z' });
    expect((await move({ now: '2027-01-01T00:00:00+01:00' })).json).toEqual({ now: '2026-12-31T23:00:00.000Z' });
    expect(await move({})).toMatchObject({ status: 400 });
  });

  it('ages what was there before the first call', async () => {
    const { call, get } = createClient();
    await call('POST', '/_sandbox/clock', { body: { advanceSeconds: 8 * 24 * 3600 } });
    expect(await get(SUBSCRIPTION, 'paused')).toMatchObject({ paused: false });
  });
});

describe('the record of calls', () => {
  it('tells of each call, with its credential masked', async () => {
    const { call } = createClient();
    await call('GET', `${SUBSCRIPTION}?a=1`, { as: 'paid', headers: { 'X-Request-Id': 'r1' } });
    await call('GET', '/nowhere', {});
    const { json, text } = await call('GET', '/_sandbox/calls');
    expect(json).toMatchObject([
      {
        operation: 'getSubscription',
        method: 'GET',
        path: `${SUBSCRIPTION}?a=1`,
        headers: { authorization: 'Token ***', 'x-request-id': 'r1' },
        account: 'paid',
        status: 200,
      },
      { operation: null, method: 'GET', path: '/nowhere', account: null, status: 404 },
    ]);
    expect(text).not.toContain('sandbox-paid-key');
  });

  it('is cleared by DELETE', async () => {
    const { call, sandbox } = createClient();
    await call('GET', SUBSCRIPTION, { as: 'paid' });
    expect(await call('DELETE', '/_sandbox/calls')).toMatchObject({ status: 204 });
    expect(sandbox.calls()).toEqual([]);
  });
});

describe('reset', () => {
  it('brings back the accounts, and takes away faults, calls and the moved clock', async () => {
    const client = createClient();
    await client.call('DELETE', '/api/v2/payment/method/', { as: 'lapsed' });
    await fault(client, { operation: '*', status: 500, times: 9 });
    client.sandbox.advanceClock(60);
    expect(await client.call('POST', '/_sandbox/reset')).toMatchObject({ status: 204 });
    expect([client.sandbox.calls(), client.sandbox.now()]).toEqual([[], expect.any(Number)]);
    expect(await client.get(SUBSCRIPTION, 'lapsed')).toMatchObject({ payment_method: 8071 });
  });

  it('gives the same world again for the same time', async () => {
    const { call } = createClient();
    const before = await call('GET', '/api/v2/referral/credit/', { as: 'affiliate' });
    await call('POST', '/_sandbox/reset');
    expect((await call('GET', '/api/v2/referral/credit/', { as: 'affiliate' })).text).toBe(before.text);
  });
});
