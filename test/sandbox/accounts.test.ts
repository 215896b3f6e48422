import { describe, expect, it } from 'vitest';
import { sandboxAccounts } from '../../sandbox/src/accounts.ts';
import { createClient } from './client.ts';
import type { Client } from './client.ts';

const authorization = { provider: 'sandbox', redirect_uri: 'https://app.example/callback' };
const alice = { ...authorization, code: 'sandbox-code-alice' };

const register = ({ call }: Client, body: object) =>
  call('POST', '/api/v2/register/social/', { body: { ...alice, tos_accepted: true, ...body } });

const login = ({ call }: Client, body: object) =>
  call('POST', '/api/v2/login/social/', { body: { ...alice, ...body } });

describe('named accounts', () => {
  it('work with their keys, each in its own way', async () => {
    const { call, sandbox } = createClient();
    expect(sandbox.accounts).toBe(sandboxAccounts);
    const statuses = sandboxAccounts.map(async ({ key, name }) => [
      name,
      (await call('GET', '/api/v2/subscription/', { key })).status,
    ]);
    expect(Object.fromEntries(await Promise.all(statuses))).toEqual({
      paid: 200,
      nocard: 200,
      affiliate: 200,
      unverified: 200,
      suspended: 403,
      twofactor: 403,
      paused: 200,
      lapsed: 200,
    });
  });

  it('are refused everything when suspended or in want of a second factor', async () => {
    const { call } = createClient();
    for (const path of ['/api/v2/subscription/', '/api/v2/notification/', '/api/v2/proxy/activity/']) {
      const suspended = await call('GET', path, { as: 'suspended' });
      expect(suspended).toMatchObject({ status: 403, json: { code: 'account_suspended' } });
      const twofactor = await call('GET', path, { as: 'twofactor' });
      expect(twofactor).toMatchObject({ status: 403, json: { code: '2fa_needed' } });
    }
  });

  it('do not see what belongs to another', async () => {
    const { call } = createClient();
    expect(await call('GET', '/api/v2/payment/method/1071/', { as: 'lapsed' })).toMatchObject({ status: 404 });
  });
});

describe('API keys', () => {
  it('are credentials from the moment they are made', async () => {
    const { call } = createClient();
    const made = await call('POST', '/api/v2/apikey/', { as: 'paid', body: { label: 'server' } });
    const { id, key } = made.json as { id: number; key: string };
    const subscription = await call('GET', '/api/v2/subscription/', { key });
    expect(subscription.json).toMatchObject({ id: 1005 });
    expect((await call('GET', `/api/v2/apikey/${id}/`, { key })).json).toEqual(made.json);
  });

  it('may share a label or have none', async () => {
    const { call } = createClient();
    for (const body of [{ label: 'dashboard' }, { label: 'dashboard' }, {}]) {
      expect(await call('POST', '/api/v2/apikey/', { as: 'paid', body })).toMatchObject({ status: 201 });
    }
  });

  it('are refused for a label that is no text, and otherwise for one that is too long', async () => {
    const { call } = createClient();
    const wrong = await call('POST', '/api/v2/apikey/', { as: 'paid', body: { label: 7 } });
    expect(wrong).toMatchObject({ status: 400, json: { label: [{ message: 'expected a text' }] } });
    const long = await call('POST', '/api/v2/apikey/', { as: 'paid', body: { label: 'x'.repeat(256) } });
    expect(long).toMatchObject({ status: 400, json: { label: [{ message: 'expected at most 255 characters' }] } });
  });

  it('do not do for what a person has to do', async () => {
    const { call } = createClient();
    const made = await call('POST', '/api/v2/apikey/', { as: 'paid', body: {} });
    const { key } = made.json as { key: string };
    const { json, status } = await call('POST', '/api/v2/idverification/start/', { key });
    expect([status, json]).toEqual([403, expect.objectContaining({ code: 'api_key_not_allowed' })]);
  });
});

describe('bodies', () => {
  it('are refused when they are not JSON, not an object or of another type', async () => {
    const { call } = createClient();
    const post = (body: unknown, headers = {}) => call('POST', '/api/v2/apikey/', { as: 'paid', body, headers });
    expect(await post('{"label":')).toMatchObject({
      status: 400,
      json: { detail: expect.stringMatching(/^JSON parse/) },
    });
    expect(await post([])).toMatchObject({ status: 400, json: { non_field_errors: [expect.any(String)] } });
    expect(await post('label=x', { 'Content-Type': 'text/plain' })).toMatchObject({ status: 415 });
  });
});

describe('social registration and login', () => {
  it('give a fresh account a token that works', async () => {
    const client = createClient();
    const { json, status } = await register(client, {});
    expect(status).toBe(200);
    const { token } = json as { token: string };
    const subscription = await client.call('GET', '/api/v2/subscription/', { key: token });
    expect(subscription.json).toMatchObject({ free_credits: 0, payment_method: null, renewals_paid: 0 });
    const again = await login(client, {});
    const { token: other } = again.json as { token: string };
    expect(other).not.toBe(token);
    const same = await client.call('GET', '/api/v2/subscription/', { key: other });
    expect(same.json).toEqual(subscription.json);
  });

  it('log named accounts in, and leave their refusals to what comes after', async () => {
    const client = createClient();
    const { json } = await login(client, { code: 'sandbox-code-twofactor' });
    const { token } = json as { token: string };
    expect(await client.call('GET', '/api/v2/subscription/', { key: token })).toMatchObject({ status: 403 });
  });

  it('need the terms of service accepted', async () => {
    const client = createClient();
    for (const tos of [false, undefined, 'true']) {
      const { json, status } = await register(client, { tos_accepted: tos });
      expect([status, json]).toMatchObject([400, { tos_accepted: [{ message: 'expected true' }] }]);
    }
    expect(await login(client, {})).toMatchObject({ status: 400 });
  });

  it('refuse an unknown code under a field that is called code', async () => {
    const client = createClient();
    const refusal = { status: 400, json: { code: ['Invalid authorization code.'] } };
    expect(await login(client, { code: 'stolen' })).toMatchObject(refusal);
    expect(await login(client, { code: 'sandbox-code-nobody' })).toMatchObject(refusal);
    expect(await register(client, { code: 'stolen' })).toMatchObject(refusal);
  });

  it('refuse another provider, a bad redirect URI, a second registration and missing fields', async () => {
    const client = createClient();
    expect((await login(client, { provider: 'other' })).json).toMatchObject({ provider: [{ code: 'invalid_value' }] });
    expect((await login(client, { redirect_uri: 'nowhere' })).json).toEqual({ non_field_errors: [expect.any(String)] });
    await register(client, {});
    expect((await register(client, {})).json).toMatchObject({ non_field_errors: [{ code: 'already_registered' }] });
    expect((await login(client, { code: undefined })).json).toMatchObject({ code: [{ message: 'is missing' }] });
  });
});

const start = ({ call }: Client, as: 'paid' | 'nocard' | 'unverified') =>
  call('POST', '/api/v2/idverification/start/', { as });

describe('ID verification', () => {
  it('goes from requested to pending once, and is verified a minute later', async () => {
    const client = createClient();
    const started = await start(client, 'paid');
    expect(started.json).toMatchObject({ state: 'pending', client_secret: expect.stringMatching(/^sandbox_/) });
    expect(await start(client, 'paid')).toMatchObject({ status: 400 });
    client.sandbox.advanceClock(60);
    expect(await start(client, 'paid')).toMatchObject({ status: 400 });
  });

  it('may be started again after a failure until the limit is reached', async () => {
    const client = createClient();
    const again = await start(client, 'unverified');
    expect(again.json).toMatchObject({
      state: 'pending',
      verification_failure_times: 2,
      max_verification_failure_times: 3,
    });
    client.sandbox.advanceClock(60);
    const { json, status } = await start(client, 'unverified');
    expect([status, json]).toMatchObject([400, [{ code: 'id_verification_not_permitted' }]]);
  });

  it('is not permitted once verified', async () => {
    expect(await start(createClient(), 'nocard')).toMatchObject({ status: 400 });
  });

  it('takes an empty JSON object as well as no body', async () => {
    const { call } = createClient();
    expect(await call('POST', '/api/v2/idverification/start/', { as: 'paid', body: {} })).toMatchObject({
      status: 200,
    });
  });
});
