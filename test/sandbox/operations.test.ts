import { describe, expect, it } from 'vitest';
import type { ZodMiniType } from 'zod/mini';
import type { AccountName } from '../../sandbox/src/accounts.ts';
import { type OperationId, allOperations } from '../support/account-api.ts';
import { exampleInput } from '../support/examples.ts';
import { createClient } from './client.ts';

interface Sample {
  readonly id?: string;
  readonly as?: AccountName;
  readonly body?: unknown;
  readonly status?: 201;
}

const authorization = { provider: 'sandbox', redirect_uri: 'https://app.example/callback' };

/** One good call of each documented operation; by the account `paid` unless it says otherwise. */
const samples: Readonly<Partial<Record<OperationId, Sample>>> = {
  getApiKey: { id: '1012' },
  createApiKey: { body: { label: 'server' }, status: 201 },
  listPaymentMethods: {},
  getPaymentMethod: { id: '1071' },
  deletePaymentMethod: { as: 'lapsed' },
  listTransactions: {},
  getTransaction: { id: '1201' },
  listPendingPayments: {},
  getPendingPayment: { id: '1303' },
  purchasePlan: { body: { proxy_countries: { US: 100 }, recaptcha: 'token' } },
  getSubscription: {},
  getReferralConfig: {},
  updateReferralConfig: { body: { mode: 'payout' } },
  listReferralCredits: { as: 'affiliate' },
  getReferralCredit: { id: '3501', as: 'affiliate' },
  listEarnOuts: { as: 'affiliate' },
  getEarnOut: { id: '3401', as: 'affiliate' },
  listReferralChannels: { as: 'affiliate' },
  getSubuser: { id: '1081' },
  refreshSubuser: { id: '1081' },
  getIpAuthorization: { id: '1091' },
  deleteIpAuthorization: { id: '1091' },
  refreshProxyList: {},
  listProxyActivity: {},
  listNotifications: {},
  startIdVerification: {},
  getVerificationFlow: { id: '1021' },
  registerSocial: { body: { ...authorization, code: 'sandbox-code-alice', tos_accepted: true } },
  loginSocial: { body: { ...authorization, code: 'sandbox-code-paid' } },
};

/** The example's item, where none is named. */
function pathOf({ id, path }: (typeof allOperations)[number]): string {
  const item = samples[id]?.id;
  return item === undefined ? exampleInput(id).path : path.replace('{id}', item);
}

/** Names of the documented fields of an answer, of the items where it is a list. */
function documentedFields(schema: ZodMiniType): string[] {
  const { def } = schema as unknown as { def: { element?: ZodMiniType; shape?: Record<string, ZodMiniType> } };
  if (def.element) return documentedFields(def.element);
  const shape = def.shape ?? {};
  return shape['results'] ? documentedFields(shape['results']) : Object.keys(shape).toSorted();
}

function answeredFields(json: unknown): string[] {
  const answer = json as object[] | { results?: object[] };
  const [item] = Array.isArray(answer) ? answer : (answer.results ?? [answer]);
  return Object.keys(item ?? {}).toSorted();
}

describe('the whole table', () => {
  it.each(allOperations.map((row) => [row.id, row] as const))('%s answers as its row says', async (operation, row) => {
    const { call } = createClient();
    const sample = samples[operation];
    const { as = 'paid', body }: Sample = sample ?? { body: exampleInput(operation).body };
    const { headers, json, status, text } = await call(row.method, pathOf(row), {
      ...(row.credential !== 'none' && { as }),
      ...(body !== undefined && { body }),
    });
    if (!sample && status >= 400 && status < 500) {
      // Nothing for the example, but what says so is the operation: a path that is none has a page.
      expect(headers.get('Content-Type')).toBe('application/json');
      return;
    }
    if (row.answer === null) {
      expect([status, text]).toEqual([204, '']);
      return;
    }
    expect(sample ? [sample.status ?? 200] : [200, 201]).toContain(status);
    expect(row.answer.safeParse(json).error?.issues ?? []).toEqual([]);
    const fields = answeredFields(json);
    // What has no sample may be a list of nothing.
    if (sample || fields.length > 0) expect(fields).toEqual(documentedFields(row.answer));
  });

  it('has the 29 documented operations, each with a sample here', () => {
    expect(allOperations.map(({ id }) => id)).toEqual(expect.arrayContaining(Object.keys(samples)));
    expect(Object.keys(samples)).toHaveLength(29);
  });

  it.each(allOperations.filter((row) => row.credential !== 'none').map((row) => [row.id, row] as const))(
    '%s needs a credential',
    async (_, row) => {
      const { call } = createClient();
      const path = pathOf(row);
      const without = await call(row.method, path);
      expect([without.status, without.headers.get('WWW-Authenticate')]).toEqual([401, 'Token']);
      expect(without.json).toMatchObject({ code: 'not_authenticated' });
      expect(await call(row.method, path, { key: 'nobody' })).toMatchObject({ status: 401 });
    },
  );

  it.each(allOperations.map((row) => [row.id, row] as const))(
    '%s is unknown without the trailing slash',
    async (_, row) => {
      const { call } = createClient();
      const { headers, status } = await call(row.method, pathOf(row).replace(/\/$/, ''), { as: 'paid' });
      expect([status, headers.get('Content-Type')]).toEqual([404, 'text/html; charset=utf-8']);
    },
  );
});

describe('what the table does not have', () => {
  it('refuses another method on a known path, the DELETE of one payment method included', async () => {
    const { call } = createClient();
    const { headers, json, status } = await call('DELETE', '/api/v2/payment/method/1071/', { as: 'paid' });
    expect([status, headers.get('Allow')]).toEqual([405, 'GET']);
    expect(json).toEqual({ detail: 'Method "DELETE" not allowed.' });
    expect((await call('PUT', '/api/v2/payment/method/', { as: 'paid' })).headers.get('Allow')).toBe('GET, DELETE');
  });

  it('answers 404 in JSON for an id that the account does not have', async () => {
    const { call } = createClient();
    for (const path of [
      'apikey/1',
      'payment/method/2071',
      'payment/transaction/3201',
      'subuser/1',
      'verification/flow/1',
    ]) {
      expect(await call('GET', `/api/v2/${path}/`, { as: 'paid' })).toMatchObject({
        status: 404,
        json: { detail: 'Not found.' },
      });
    }
  });
});

describe('how JSON is written', () => {
  it('prints floats with a point, integers without', async () => {
    const { call } = createClient();
    const subscription = await call('GET', '/api/v2/subscription/', { as: 'paid' });
    expect(subscription.text).toContain('"free_credits":10.0,');
    expect(subscription.text).toContain('"renewals_paid":7,');
    const config = await call('GET', '/api/v2/referral/config/', { as: 'affiliate' });
    expect(config.text).toContain('"payouts_earned":20.0,');
    expect(config.text).toContain('"referral_credit_ratio":0.25,');
    expect(config.text).toContain('"earn_out_frequency":"7 00:00:00"');
  });

  it('prints decimals of channels as text and money of theirs as floats', async () => {
    const { call } = createClient();
    const { text } = await call('GET', '/api/v2/referral/channel/', { as: 'affiliate' });
    expect(text).toContain('"promo_value":"0.20"');
    expect(text).toContain('"total_revenue":1610.0,');
  });

  it('prints an integer beyond 2^53 with all its digits', async () => {
    const { call } = createClient();
    const { text } = await call('GET', '/api/v2/referral/credit/3740/', { as: 'affiliate' });
    expect(text).toContain('"user_id":9007199254740993123,');
  });

  it('prints timestamps with microseconds and the offset of the season', async () => {
    const { get, sandbox } = createClient();
    const { end_date: summer } = await get('/api/v2/subscription/', 'nocard');
    expect(summer).toBe('2026-06-27T11:50:08.101337-07:00');
    sandbox.setClock(Date.parse('2026-12-01T00:00:00Z'));
    const { end_date: winter } = await get('/api/v2/subscription/', 'nocard');
    expect(winter).toBe('2026-12-24T10:50:08.101337-08:00');
  });
});
