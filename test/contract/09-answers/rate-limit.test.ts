import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { exampleRequest } from '../../support/examples.ts';
import { type Answer, type Asking, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';

const PLAIN = 'getPendingPayment';
const FIVE = { env: { RATE_LIMIT_PER_MINUTE: '5' } };
const limited = (perMinute: number) => openGateway({ RATE_LIMIT_PER_MINUTE: `${perMinute}` });

/** What an answer says of a limit: how many are left, until when; of how many in a minute. */
const limitOf = ({ headers }: Answer) => [headers.get('ratelimit'), headers.get('ratelimit-policy')];
const account = (left: number, of: number, t = 60) => [`"account";r=${left};t=${t}`, `"account";q=${of};w=60`];
const NONE = [null, null];
/** Seconds to wait, of one who has reached a limit. */
const waitOf = ({ code, headers, json, status }: Answer) => {
  const { retryable, retry_after: seconds } = json as { readonly retryable: boolean; readonly retry_after: number };
  expect([status, code, retryable, headers.get('retry-after')]).toEqual([429, 'rate_limited', true, `${seconds}`]);
  return seconds;
};

everywhere(
  says('where a limit applies `RateLimit`, and `RateLimit-Policy` except on a 304'),
  async ({ ask, call }) => {
    const first = await ask('getSubscription');
    const etag = first.headers.get('etag') ?? '';
    const answers = [
      first,
      await ask('getSubscription', { headers: { 'if-none-match': etag } }),
      await call('/bff/v1/account-overview'),
      await ask('updateReferralConfig', { body: '{' }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 304, 200, 400]);
    for (const [used, { headers, status }] of answers.entries()) {
      expect(headers.get('ratelimit')).toMatch(new RegExp(`^"account";r=${4 - used};t=(60|[1-5]?\\d)$`));
      expect(headers.get('ratelimit-policy')).toBe(status === 304 ? null : '"account";q=5;w=60');
    }
    expect(limitOf(await call('/livez'))).toEqual(NONE);
  },
  FIVE,
);

everywhere(
  says('requests of an account; 0: no limit'),
  async ({ ask, call, pass, upstream }) => {
    for (let asked = 0; asked < 5; asked++) expect((await ask(PLAIN)).status).toBe(200);
    const beyond = [
      await ask(PLAIN),
      await ask('purchasePlan', { key: 'one' }),
      await call('/bff/v1/account-overview'),
      await call('/bff/v1/batch', { body: { requests: [{ id: 'a', path: '/api/v2/subscription/' }] } }),
    ];
    for (const one of beyond) expect(waitOf(one)).toBeLessThanOrEqual(60);
    expect(upstream.calls).toHaveLength(5);
    expect((await ask(PLAIN, { token: secret() })).status).toBe(200);
    await pass(61);
    const later = await ask('purchasePlan', { key: 'one' });
    expect([later.status, later.headers.get('idempotency-replayed')]).toEqual([200, null]);
  },
  { ...FIVE, time: true },
);

describe(says('where a limit applies'), () => {
  test('the minute is counted from the first request', async () => {
    const { ask, pass } = limited(3);
    await pass(45);
    const limits = [];
    for (const seconds of [7, 7, 45.5, 0.5, 0]) {
      limits.push(limitOf(await ask(PLAIN)));
      await pass(seconds);
    }
    expect(limits).toEqual([account(2, 3), account(1, 3, 53), account(0, 3, 46), account(0, 3, 1), account(2, 3)]);
  });

  test('no more are let through when all come at once', async () => {
    const { ask, upstream } = limited(5);
    const asked = Array.from({ length: 30 }, () => ask(PLAIN, { headers: { 'cache-control': 'no-store' } }));
    expect((await Promise.all(asked)).filter(({ status }) => status === 200)).toHaveLength(5);
    expect(upstream.calls).toHaveLength(5);
  });

  const requests = ['subscription', 'notification'].map((name) => ({ id: name, path: `/api/v2/${name}/` }));
  test.each<[string, string, Asking, status: number]>([
    ['a write', '/api/v2/proxy/list/refresh/', { method: 'POST' }, 204],
    ['a batch', '/bff/v1/batch', { body: { requests } }, 200],
    ['a body too large', '/api/v2/apikey/', { body: 'x'.repeat(70_000) }, 413],
    ['an overview in lines', '/bff/v1/account-overview', { headers: { accept: 'application/x-ndjson' } }, 200],
    ['a bad selection', '/bff/v1/account-overview?sections=nothing', {}, 400],
    ['HEAD', '/api/v2/subscription/', { method: 'HEAD' }, 200],
  ])('%s counts once, and says so', async (_, path, asking, status) => {
    const { call, ask } = limited(2);
    const one = await call(path, asking);
    expect([one.status, ...limitOf(one)]).toEqual([status, ...account(1, 2)]);
    await call(path, asking);
    expect(waitOf(await ask(PLAIN))).toBe(60);
  });

  test('what the upstream refuses or fails with says what is left', async () => {
    for (const status of [401, 404, 429, 503]) {
      const { ask, upstream } = limited(9);
      upstream.next(PLAIN, ...Array.from({ length: status === 503 ? 3 : 1 }, () => answer(status)));
      const problem = await ask(PLAIN);
      expect([problem.status, ...limitOf(problem)]).toEqual([status, ...account(8, 9)]);
    }
  });

  test('it applies to no unknown path, other method, page and probe, and where a credential is missing', async () => {
    const { ask, call } = limited(1);
    const open = ['/nothing', '/api/v2/payment/transaction/x/', '/readyz', '/openapi.json', '/problems/rate_limited'];
    const answers = await Promise.all(open.map((path) => call(path)));
    answers.push(await call('/api/v2/subscription/', { method: 'PUT' }), await ask(PLAIN, { token: null }));
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 200, 200, 200, 405, 401]);
    for (const one of answers) expect(limitOf(one)).toEqual(NONE);
    expect((await ask(PLAIN)).status).toBe(200);
  });

  test('0 is no limit, for calls without a credential too; unset it is 600', async () => {
    const { ask } = limited(0);
    for (const id of Array.from({ length: 25 }, () => [PLAIN, 'loginSocial'] as const).flat()) {
      const one = await ask(id);
      expect([one.status, limitOf(one)]).toEqual([200, NONE]);
    }
    const unset = openGateway({ RATE_LIMIT_PER_MINUTE: '' });
    expect(limitOf(await unset.ask(PLAIN))).toEqual(account(599, 600));
  });
});

describe(`${says('where a limit applies')}: calls without a credential`, () => {
  const login = exampleRequest('loginSocial');
  const from = (address: string, list?: string): Asking => ({
    ...login,
    token: null,
    address,
    headers: list === undefined ? {} : { 'X-Forwarded-For': list },
  });
  const open = (env = {}) => {
    const gateway = openGateway({ RATE_LIMIT_PER_MINUTE: '1', ...env });
    const logIn = (asking: Asking) => gateway.call(login.path, asking);
    const useUp = async (asking: Asking) => {
      for (let asked = 0; asked < 20; asked++) expect((await logIn(asking)).status).toBe(200);
    };
    return { ...gateway, logIn, useUp };
  };

  test('are 20 a minute of one address, which say nothing about accounts', async () => {
    const { ask, logIn, useUp, pass, lines } = open();
    expect(limitOf(await logIn(from('192.0.2.1')))).toEqual(['"address";r=19;t=60', '"address";q=20;w=60']);
    await pass(60);
    await useUp(from('192.0.2.1'));
    await pass(20);
    expect(waitOf(await logIn({ ...from('192.0.2.1'), token: secret() }))).toBe(40);
    expect(lines.at(-1)).not.toHaveProperty('account');
    expect((await logIn(from('192.0.2.2'))).status).toBe(200);
    expect(limitOf(await ask(PLAIN, { address: '192.0.2.1' }))).toEqual(account(0, 1));
    await pass(40);
    expect((await logIn(from('192.0.2.1'))).status).toBe(200);
  });

  test('are of the address that a trusted proxy names last', async () => {
    const { logIn, useUp } = open({ TRUSTED_PROXIES: '127.0.0.0/8' });
    await useUp(from('127.0.0.1', '203.0.113.7'));
    for (const list of ['198.51.100.1, 203.0.113.7', 'x, 203.0.113.7', '203.0.113.7, 127.0.0.9'])
      expect(waitOf(await logIn(from('127.0.0.2', list)))).toBe(60);
    expect((await logIn(from('127.0.0.1', '203.0.113.8, 127.0.0.9'))).status).toBe(200);
    await useUp(from('192.0.2.9', '203.0.113.9')); // who comes by another way is who they are
    expect(waitOf(await logIn(from('192.0.2.9', '203.0.113.10')))).toBe(60);
  });
});
