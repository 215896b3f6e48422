import { describe, expect, it } from 'vitest';
import type { AccountName } from '../../sandbox/src/accounts.ts';
import { allOperations, type OperationId } from '../support/account-api.ts';
import { exampleInput } from '../support/examples.ts';
import { createClient } from './client.ts';

interface Sample {
  readonly id?: string;
  readonly as?: AccountName;
  readonly body?: unknown;
  readonly status?: 201;
}

const social = { provider: 'sandbox', redirect_uri: 'https://app.example/callback' };

/** One good call of each documented operation that needs something; by the account `paid` unless it says otherwise. */
const SAMPLES: Readonly<Partial<Record<OperationId, Sample>>> = {
  getApiKey: { id: '1012' },
  createApiKey: { body: { label: 'server' }, status: 201 },
  getPaymentMethod: { id: '1071' },
  deletePaymentMethod: { as: 'lapsed' },
  getTransaction: { id: '1201' },
  getPendingPayment: { id: '1303' },
  purchasePlan: { body: { proxy_countries: { US: 100 }, recaptcha: 'token' } },
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
  getVerificationFlow: { id: '1021' },
  registerSocial: { body: { ...social, code: 'sandbox-code-alice', tos_accepted: true } },
  loginSocial: { body: { ...social, code: 'sandbox-code-paid' } },
};

type Row = (typeof allOperations)[number];

const sampleOf = ({ id }: Row): Sample => SAMPLES[id] ?? {};
const pathOf = (row: Row) => {
  const { id } = sampleOf(row);
  return id === undefined ? exampleInput(row.id).path : row.path.replace('{id}', id);
};

describe.each(allOperations.map((row) => [row.id, row] as const))('%s', (_, row) => {
  it('answers as its row says', async () => {
    const { as = 'paid', body, status = row.answer === null ? 204 : 200 } = sampleOf(row);
    const who = row.credential !== 'none' && { as };
    const got = await createClient().call(row.method, pathOf(row), { ...who, body });
    expect(got.status).toBe(status);
    if (row.answer === null) return expect(got.text).toBe('');
    return expect(row.answer.safeParse(got.json).error?.issues ?? []).toEqual([]);
  });

  it('needs the trailing slash, and a credential if its row says so', async () => {
    const { call } = createClient();
    const without = await call(row.method, pathOf(row).replace(/\/$/, ''), { as: 'paid' });
    expect([without.status, without.headers.get('Content-Type')]).toEqual([404, 'text/html; charset=utf-8']);
    if (row.credential === 'none') return;
    const nobody = await call(row.method, pathOf(row));
    expect([nobody.status, nobody.headers.get('WWW-Authenticate')]).toEqual([401, 'Token']);
    expect(await call(row.method, pathOf(row), { key: 'nobody' })).toMatchObject({ status: 401 });
  });
});

it('refuses another method on a known path, the DELETE of one payment method included', async () => {
  const { call } = createClient();
  const { headers, json, status } = await call('DELETE', '/api/v2/payment/method/1071/', { as: 'paid' });
  expect([status, headers.get('Allow')]).toEqual([405, 'GET']);
  expect(json).toEqual({ detail: 'Method "DELETE" not allowed.' });
});

it('answers 404 in JSON for an id that the account does not have', async () => {
  const { call } = createClient();
  const ids = [
    'apikey/1',
    'payment/method/2071',
    'payment/transaction/3201',
    'subuser/1',
    'proxy/ipauthorization/an-id',
  ];
  for (const id of ids) {
    const answer = await call('GET', `/api/v2/${id}/`, { as: 'paid' });
    expect(answer).toMatchObject({ status: 404, json: { detail: 'Not found.' } });
  }
});

it('writes JSON as the upstream does: floats with a point, decimals as text, all digits, local time', async () => {
  const { call, get, sandbox } = createClient();
  const textAt = async (path: string) => (await call('GET', `/api/v2/${path}/`, { as: 'affiliate' })).text;
  expect(await textAt('referral/config')).toMatch(/"payouts_earned":20\.0,.*"earn_out_frequency":"7 00:00:00"/);
  expect(await textAt('referral/channel')).toMatch(/"promo_value":"0\.20"/);
  expect(await textAt('referral/credit/3740')).toContain('"user_id":9007199254740993123,');
  expect(await textAt('subscription')).toMatch(/"renewals_paid":\d+,/);
  const endsAt = async () => (await get('/api/v2/subscription/', 'nocard'))['end_date'];
  expect(await endsAt()).toBe('2026-06-27T11:50:08.101337-07:00');
  sandbox.setClock(Date.parse('2026-12-01T00:00:00Z'));
  expect(await endsAt()).toBe('2026-12-24T10:50:08.101337-08:00');
});
