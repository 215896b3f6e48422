import { describe, expect, it } from 'vitest';
import { type Client, createClient, DAY_SECONDS, type Page, START } from './client.ts';

const SUBSCRIPTION = '/api/v2/subscription/';
const METHODS = '/api/v2/payment/method/';
const PENDING = '/api/v2/payment/pending/';
const TRANSACTIONS = '/api/v2/payment/transaction/';

interface Bought {
  readonly plan: number;
  readonly pending_payment: number;
}

const buy = async ({ call }: Client, body: object, as: 'paid' | 'nocard' = 'paid') => {
  const { status, json } = await call('POST', '/api/v2/subscription/checkout/purchase/', { as, body });
  return { status, json: json as Bought };
};

/** Five dollars: the ten dollars of credits cover it. */
const SMALL = { proxy_countries: { US: 5 }, bandwidth_limit: 250, on_demand_refreshes_total: 0, term: 'monthly' };
/** Fifty dollars: they do not. */
const LARGE = { proxy_countries: { US: 80, FR: 20 }, recaptcha: 'token' };

const termOf = ({ end_date: end, start_date: start }: Record<string, unknown>) =>
  (Date.parse(String(end)) - Date.parse(String(start))) / 1000 / DAY_SECONDS;

it('keeps the saved card while a paid plan is active; without one it goes, and need not be there', async () => {
  const { call, get } = createClient();
  const kept = await call('DELETE', METHODS, { as: 'paid' });
  expect(kept).toMatchObject({ status: 400, json: [{ code: 'paid_plan_active' }] });
  expect(await get(SUBSCRIPTION)).toMatchObject({ payment_method: 1071 });
  expect(await get<Page>(METHODS, 'lapsed')).toMatchObject({ count: 1 });
  for (let time = 0; time < 2; time += 1) {
    expect(await call('DELETE', METHODS, { as: 'lapsed' })).toMatchObject({ status: 204, text: '' });
    expect(await get(SUBSCRIPTION, 'lapsed')).toMatchObject({ payment_method: null });
    expect(await get<Page>(METHODS, 'lapsed')).toMatchObject({ count: 0, results: [] });
  }
});

it('a purchase that credits cover takes them, replaces the plan, and begins a term of thirty days', async () => {
  const client = createClient();
  const before = await client.get(SUBSCRIPTION);
  const { json } = await buy(client, SMALL);
  expect(json).toEqual({ payment_required: false, plan: expect.any(Number) as number });
  const after = await client.get(SUBSCRIPTION);
  expect(after).toMatchObject({ id: before['id'], free_credits: 5, plan: json.plan });
  expect([after['plan'] === before['plan'], termOf(after)]).toEqual([false, 30]);
  expect(Date.parse(String(after['start_date']))).toBe(START);
  const { count, results } = await client.get<Page>(TRANSACTIONS);
  expect([count, results[0]]).toMatchObject([31, { amount: 0, credits_used: 5, status: 'completed' }]);
  expect(await client.get<Page>(PENDING)).toMatchObject({ count: 3 });
  expect(await client.get(`/api/v2/subuser/1081/?plan_id=${json.plan}`)).toMatchObject({ id: 1081 }); // moved with it
});

it('a purchase that needs a payment leaves a pending one, and is paid half a minute later, less the credits', async () => {
  const client = createClient();
  const { json } = await buy(client, LARGE);
  const payment = () => client.get(`${PENDING}${json.pending_payment}/`);
  expect(json).toMatchObject({ payment_required: true, processor_client_secret: expect.any(String) as string });
  expect(await payment()).toMatchObject({
    status: 'pending',
    plan: json.plan,
    payment_method: 1071,
    transaction: null,
  });
  client.sandbox.advanceClock(30);
  const { status, transaction } = await payment();
  expect(status).toBe('completed');
  const paid = await client.get(`${TRANSACTIONS}${String(transaction)}/`);
  expect(paid).toMatchObject({ amount: 40, credits_used: 10, payment_method: { id: 1071, last4: '4242' } });
});

const said = (message: string) => [expect.objectContaining({ message }) as object];

it.each([
  [{ ...LARGE, recaptcha: undefined }, { recaptcha: [expect.objectContaining({ code: 'required' })] }],
  [{ ...SMALL, bandwidth_limit: 'much' }, { bandwidth_limit: said('expected a number') }],
  [{ ...SMALL, payment_method: '2071' }, { payment_method: ['there is none with this id'] }],
  [{}, { proxy_countries: said('is missing') }],
  [{ proxy_countries: {} }, { proxy_countries: said('expected at least one proxy') }],
  [{ proxy_countries: { US: -1 } }, { 'proxy_countries.US': said('expected 0 or more') }],
  [{ proxy_countries: { us: 5 } }, { proxy_countries: said('expected two-letter country codes') }],
  [{ ...SMALL, proxy_type: 'x' }, { proxy_type: said('expected shared, semidedicated or dedicated') }],
  [{ ...SMALL, term: 'weekly' }, { term: said('expected monthly or yearly') }],
])('a purchase of %j is refused, and then nothing has changed', async (body, errors) => {
  const client = createClient();
  const before = await client.get(SUBSCRIPTION);
  expect(await buy(client, body)).toEqual({ status: 400, json: errors });
  expect(await client.get(SUBSCRIPTION)).toEqual(before);
});

describe('the subscription as time passes', () => {
  it('resumes at its reactivation date with the period that was left', async () => {
    const { get, sandbox } = createClient();
    sandbox.advanceClock(7 * DAY_SECONDS - 1);
    const left = { paused: true, reactivation_period_left: '12 00:00:00' };
    expect(await get(SUBSCRIPTION, 'paused')).toMatchObject(left);
    sandbox.advanceClock(1);
    const resumed = await get(SUBSCRIPTION, 'paused');
    expect(resumed).toMatchObject({ paused: false, reactivation_date: null, reactivation_period_left: null });
    expect(Date.parse(String(resumed['end_date']))).toBe(START + 19 * DAY_SECONDS * 1000);
  });

  it('is renewed at the end of its term, unless renewals are off', async () => {
    const { get, sandbox } = createClient();
    const lapsed = await get(SUBSCRIPTION, 'lapsed');
    sandbox.advanceClock(18 * DAY_SECONDS);
    const renewed = await get(SUBSCRIPTION);
    expect([renewed, termOf(renewed)]).toMatchObject([{ renewals_paid: 8, plan: 1003 }, 30]);
    const { results } = await get<Page>(TRANSACTIONS);
    expect(results[0]).toMatchObject({ reason: 'Renewal of a plan', payment_method: { id: 1071 } });
    expect(await get<Page>(`${PENDING}?is_renewal=true&status=completed`)).toMatchObject({ count: 1 });
    expect(await get(SUBSCRIPTION, 'lapsed')).toEqual(lapsed);
  });
});
