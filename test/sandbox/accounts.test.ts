import { describe, expect, it } from 'vitest';
import { sandboxAccounts } from '../../sandbox/src/accounts.ts';
import { type Client, createClient } from './client.ts';

const SUBSCRIPTION = '/api/v2/subscription/';
const KEYS = '/api/v2/apikey/';
const social = { provider: 'sandbox', redirect_uri: 'https://app.example/callback', code: 'sandbox-code-alice' };

const register = ({ call }: Client, body: object = {}) =>
  call('POST', '/api/v2/register/social/', { body: { ...social, tos_accepted: true, ...body } });
const login = ({ call }: Client, body: object = {}) =>
  call('POST', '/api/v2/login/social/', { body: { ...social, ...body } });

describe('named accounts', () => {
  it('work with their keys, each in its own way', async () => {
    const { call } = createClient();
    const answers = sandboxAccounts.map(async ({ key, name }) => {
      const { status, json } = await call('GET', SUBSCRIPTION, { key });
      return [name, status === 200 ? 200 : (json as { code: string }).code];
    });
    const refused = { suspended: 'account_suspended', twofactor: '2fa_needed' };
    const good = { paid: 200, nocard: 200, affiliate: 200, unverified: 200, paused: 200, lapsed: 200 };
    expect(Object.fromEntries(await Promise.all(answers))).toEqual({ ...good, ...refused });
  });
});

describe('API keys', () => {
  it('are credentials from the moment they are made, but not for what a person has to do', async () => {
    const { call } = createClient();
    const made = await call('POST', KEYS, { as: 'paid', body: {} });
    const { id, key } = made.json as { id: number; key: string };
    expect((await call('GET', SUBSCRIPTION, { key })).json).toMatchObject({ id: 1005 });
    expect((await call('GET', `${KEYS}${id}/`, { key })).json).toEqual(made.json);
    const { json, status } = await call('POST', '/api/v2/idverification/start/', { key });
    expect([status, json]).toEqual([403, expect.objectContaining({ code: 'api_key_not_allowed' })]);
  });

  it.each([
    [{ label: 7 }, 400, { label: [{ message: 'expected a text' }] }],
    [[], 400, { non_field_errors: [expect.any(String)] }],
    ['{"label":', 400, { detail: expect.stringMatching(/^JSON parse/) as string }],
  ])('are refused for the body %j', async (body, status, json) => {
    expect(await createClient().call('POST', KEYS, { as: 'paid', body })).toMatchObject({ status, json });
  });
});

describe('social registration and login', () => {
  it('give a fresh account a token that works, a new one each time', async () => {
    const client = createClient();
    const tokens = [await register(client), await login(client)].map(({ json }) => (json as { token: string }).token);
    expect(new Set(tokens).size).toBe(2);
    for (const key of tokens) {
      const { json } = await client.call('GET', SUBSCRIPTION, { key });
      expect(json).toMatchObject({ free_credits: 0, payment_method: null, renewals_paid: 0 });
    }
    expect((await register(client)).json).toMatchObject({ non_field_errors: [{ code: 'already_registered' }] });
  });

  it.each([
    ['register', { tos_accepted: false }, { tos_accepted: [{ message: 'expected true' }] }],
    ['register', { code: 'stolen' }, { code: ['Invalid authorization code.'] }],
    ['login', { code: 'sandbox-code-nobody' }, { code: ['Invalid authorization code.'] }],
    ['login', { code: undefined }, { code: [{ message: 'is missing' }] }],
    ['login', { provider: 'other' }, { provider: [{ code: 'invalid_value' }] }],
  ] as const)('%s is refused with %j', async (what, body, json) => {
    const answer = await { register, login }[what](createClient(), body);
    expect(answer).toMatchObject({ status: 400, json });
  });
});
