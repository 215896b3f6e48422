import { describe, expect, it } from 'vitest';
import { createClient, DAY_SECONDS, START } from './client.ts';
import type { Client, Page } from './client.ts';

const buy = ({ call }: Client, body: object, as: 'paid' | 'nocard' = 'paid') =>
  call('POST', '/api/v2/subscription/checkout/purchase/', { as, body });

/** Five dollars: the ten dollars of credits cover it. */
const SMALL = { proxy_countries: { US: 5 }, bandwidth_limit: 250, on_demand_refreshes_total: 0, term: 'monthly' };
/** Fifty dollars: they do not. */
const LARGE = { proxy_countries: { US: 80, FR: 20 }, recaptcha: 'token' };

const termOf = ({ end_date: end, start_date: start }: Record<string, unknown>) =>
  (Date.parse(String(end)) - Date.parse(String(start))) / 1000 / DAY_SECONDS;

describe('the saved card', () => {
  it('stays while a paid plan is active', async () => {
    const { call, get } = createClient();
    const { json, status } = await call('DELETE', '/api/v2/payment/method/', { as: 'paid' });
    expect([status, json]).toEqual([400, [{ message: expect.stringContaining('renewal'), code: 'paid_plan_active' }]]);
    expect(await get('/api/v2/subscription/')).toMatchObject({ payment_method: 1071 });
  });

  it('goes when no paid plan is active, and a second time nothing happens', async () => {
    const { call, get } = createClient();
    expect(await get<Page>('/api/v2/payment/method/', 'lapsed')).toMatchObject({ count: 1 });
    for (let time = 0; time < 2; time += 1) {
      expect(await call('DELETE', '/api/v2/payment/method/', { as: 'lapsed' })).toMatchObject({
        status: 204,
        text: '',
      });
      expect(await get('/api/v2/subscription/', 'lapsed')).toMatchObject({ payment_method: null });
      expect(await get<Page>('/api/v2/payment/method/', 'lapsed')).toMatchObject({ count: 0, results: [] });
    }
  });

  it('need not be there', async () => {
    const { call } = createClient();
    expect(await call('DELETE', '/api/v2/payment/method/', { as: 'nocard' })).toMatchObject({ status: 204 });
  });
});

describe('a purchase that credits cover', () => {
  it('takes the credits, replaces the plan and begins a term of thirty days', async () => {
    const client = createClient();
    const before = await client.get('/api/v2/subscription/');
    const { json, status } = await buy(client, SMALL);
    expect([status, json]).toEqual([200, { payment_required: false, plan: expect.any(Number) }]);
    const after = await client.get('/api/v2/subscription/');
    expect(after).toMatchObject({ id: before['id'], free_credits: 5, plan: (json as { plan: number }).plan });
    expect(after['plan']).not.toBe(before['plan']);
    expect(Date.parse(String(after['start_date']))).toBe(START);
    expect(termOf(after)).toBe(30);
  });

  it('leaves a transaction with the credits used and no pending payment', async () => {
    const client = createClient();
    await buy(client, SMALL);
    const { count, results } = await client.get<Page>('/api/v2/payment/transaction/');
    expect([count, results[0]]).toMatchObject([31, { amount: 0, credits_used: 5, status: 'completed' }]);
    expect(await client.get<Page>('/api/v2/payment/pending/')).toMatchObject({ count: 3 });
  });
});

describe('a purchase that needs a payment', () => {
  it('is refused without a recaptcha, and then nothing has changed', async () => {
    const client = createClient();
    const before = await client.get('/api/v2/subscription/');
    const { json, status } = await buy(client, { ...LARGE, recaptcha: undefined });
    expect([status, json]).toEqual([400, { recaptcha: [{ message: expect.any(String), code: 'required' }] }]);
    expect(await client.get('/api/v2/subscription/')).toEqual(before);
  });

  it('answers with what the processor needs and leaves a pending payment', async () => {
    const client = createClient();
    const { json } = await buy(client, LARGE);
    const bought = json as { pending_payment: number; plan: number };
    expect(bought).toEqual({
      payment_required: true,
      plan: expect.any(Number),
      pending_payment: expect.any(Number),
      processor_client_secret: expect.any(String),
      processor_payment_intent: expect.any(String),
      processor_payment_method: expect.any(String),
    });
    expect(await client.get(`/api/v2/payment/pending/${bought.pending_payment}/`)).toMatchObject({
      status: 'pending',
      plan: bought.plan,
      payment_method: 1071,
      transaction: null,
      completed_at: null,
    });
  });

  it('is paid half a minute later, for what credits did not cover', async () => {
    const client = createClient();
    const { json } = await buy(client, LARGE);
    client.sandbox.advanceClock(30);
    const payment = await client.get(
      `/api/v2/payment/pending/${(json as { pending_payment: number }).pending_payment}/`,
    );
    expect(payment).toMatchObject({ status: 'completed', completed_at: expect.any(String) });
    const transaction = await client.get(`/api/v2/payment/transaction/${String(payment['transaction'])}/`);
    expect(transaction).toMatchObject({ amount: 40, credits_used: 10, payment_method: { id: 1071, last4: '4242' } });
  });

  it('fails with a card that declines', async () => {
    const client = createClient();
    const { json } = await buy(client, { ...LARGE, payment_method: 1073 });
    client.sandbox.advanceClock(30);
    const { pending_payment: id } = json as { pending_payment: number };
    expect(await client.get(`/api/v2/payment/pending/${id}/`)).toMatchObject({
      status: 'failed',
      failure_reason: 'card_declined',
      transaction: null,
    });
  });

  it('is refused where there is no card', async () => {
    const { json, status } = await buy(createClient(), LARGE, 'nocard');
    expect([status, json]).toEqual([400, { non_field_errors: [expect.any(String)] }]);
  });

  it('charges twelve months of a yearly term, whose terms are thirty days too', async () => {
    const client = createClient();
    await buy(client, { ...LARGE, term: 'yearly' });
    client.sandbox.advanceClock(30);
    const { results } = await client.get<Page>('/api/v2/payment/transaction/');
    expect(results[0]).toMatchObject({ amount: 590, credits_used: 10 });
    const subscription = await client.get('/api/v2/subscription/');
    expect([subscription['term'], termOf(subscription)]).toEqual(['yearly', 30]);
  });
});

describe('any purchase', () => {
  it('moves what belonged to the plan to the new one', async () => {
    const client = createClient();
    const { json } = await buy(client, SMALL);
    const { plan } = json as { plan: number };
    const path = '/api/v2/subuser/1081/';
    expect(await client.get(`${path}?plan_id=${plan}`)).toMatchObject({ id: 1081 });
    expect(await client.call('GET', `${path}?plan_id=1003`, { as: 'paid' })).toMatchObject({ status: 404 });
  });

  it('is refused for fields of a wrong type and for a card that is not there', async () => {
    const client = createClient();
    const wrong = await buy(client, { ...SMALL, bandwidth_limit: 'much', is_high_concurrency: 1 });
    expect(wrong).toMatchObject({
      status: 400,
      json: {
        bandwidth_limit: [{ message: 'expected a number' }],
        is_high_concurrency: [{ message: 'expected true or false' }],
      },
    });
    const card = await buy(client, { ...SMALL, payment_method: '2071' });
    expect(card).toMatchObject({
      status: 400,
      json: { payment_method: ['there is none with this id'] },
    });
  });
});

describe('the subscription as time passes', () => {
  it('resumes at its reactivation date with the period that was left', async () => {
    const { get, sandbox } = createClient();
    sandbox.advanceClock(7 * DAY_SECONDS - 1);
    expect(await get('/api/v2/subscription/', 'paused')).toMatchObject({
      paused: true,
      reactivation_period_left: '12 00:00:00',
    });
    sandbox.advanceClock(1);
    const resumed = await get('/api/v2/subscription/', 'paused');
    expect(resumed).toMatchObject({ paused: false, reactivation_date: null, reactivation_period_left: null });
    expect(Date.parse(String(resumed['end_date']))).toBe(START + 19 * DAY_SECONDS * 1000);
    expect(termOf(resumed)).toBe(30);
  });

  it('is renewed at the end of its term, from credits first', async () => {
    const { get, sandbox } = createClient();
    sandbox.advanceClock(18 * DAY_SECONDS);
    const subscription = await get('/api/v2/subscription/');
    expect(subscription).toMatchObject({ renewals_paid: 8, plan: 1003 });
    expect(termOf(subscription)).toBe(30);
    const { results } = await get<Page>('/api/v2/payment/transaction/');
    expect(results[0]).toMatchObject({ reason: 'Renewal of a plan', payment_method: { id: 1071 } });
    expect(await get<Page>('/api/v2/payment/pending/?is_renewal=true&status=completed')).toMatchObject({ count: 1 });
  });

  it('is not renewed when renewals are off', async () => {
    const { get, sandbox } = createClient();
    const before = await get('/api/v2/subscription/', 'lapsed');
    sandbox.advanceClock(60 * DAY_SECONDS);
    expect(await get('/api/v2/subscription/', 'lapsed')).toEqual(before);
  });
});
