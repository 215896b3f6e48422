import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { everywhere } from '../../support/stages.ts';
import { secret } from '../../support/secrets.ts';
import { answer, hang } from '../../support/upstream.ts';

const READ = 'getSubscription';

describe(says('one attempt; one request with all attempts and sections'), () => {
  test.each([
    [{ UPSTREAM_TIMEOUT_MS: '2000' }, 2],
    [{ UPSTREAM_TIMEOUT_MS: '600000', REQUEST_TIMEOUT_MS: '3000' }, 3],
  ])('%o', async (env, seconds) => {
    const { ask, upstream, pass } = openGateway(env);
    upstream.next(READ, hang());
    let isOver = false;
    const asked = ask(READ).finally(() => (isOver = true));
    await pass(seconds - 0.001);
    expect(isOver).toBe(false);
    await pass(0.001);
    expect(await asked).toMatchObject({ status: 504, code: 'upstream_timeout' });
  });
});

test(says('calls of the upstream at once'), async () => {
  const { ask, upstream, pass } = openGateway({ UPSTREAM_MAX_CONNECTIONS: '4' });
  const known = Array.from({ length: 5 }, () => secret());
  for (const token of known) await ask('getReferralConfig', { token });
  const held = Array.from({ length: 4 }, () => upstream.hold(READ));
  const asked = known.map((token) => ask(READ, { token }));
  await Promise.all(held.map(({ call }) => call));
  await pass(0);
  expect(upstream.callsTo(READ)).toHaveLength(4);
  held[0]!.release();
  await upstream.arrived(READ, 5);
  for (const one of held) one.release();
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(Array(5).fill(200));
});

const PAGE = { count: 30, next: 'http://upstream.test/api/v2/notification/?page=2', previous: null, results: [] };

/** One set for all, since each is one more worker. */
const EVERYWHERE = {
  UPSTREAM_MAX_BODY_BYTES: '4000',
  MAX_BODY_BYTES: '100',
  PUBLIC_URL: 'https://public.example/below',
  CACHE_POLICY: '{"getSubscription":{"fresh":0.5,"stale":2,"on_error":4},"listNotifications":false}',
  ALLOWED_ORIGINS: 'http://a.example, https://app.example',
};

everywhere(
  says('a larger answer is a bad one; a larger request is a 413'),
  async ({ ask, upstream }) => {
    upstream.next(READ, answer(200, { text: 'x'.repeat(5_000) }));
    expect(await ask(READ)).toMatchObject({ status: 502, code: 'upstream_bad_response' });
    expect((await ask('getReferralConfig')).status).toBe(200);
    const large = await ask('createApiKey', { body: { label: 'x'.repeat(200) } });
    expect(large).toMatchObject({ status: 413, code: 'payload_too_large' });
    expect(upstream.callsTo('createApiKey')).toEqual([]);
  },
  { env: EVERYWHERE },
);

everywhere(
  `${says('what clients call the gateway by, a path allowed')}; ${says('seconds, fractions allowed')}; false: not cached`,
  async ({ ask, upstream, pass }) => {
    upstream.next('listNotifications', answer(200, PAGE));
    const { json } = await ask('listNotifications');
    expect(json).toMatchObject({ next: 'https://public.example/below/api/v2/notification/?page=2' });
    expect((await ask('listNotifications')).cache).not.toMatch(/hit|stored/);
    expect((await ask(READ)).version).toBe(1);
    await pass(8);
    upstream.next(READ, answer(500), answer(500));
    expect((await ask(READ)).status).toBe(502); // it is not given for an hour, as by default
    upstream.clear();
  },
  { env: EVERYWHERE, time: true },
);

everywhere(
  says('exact origins for CORS and cookies'),
  async ({ ask }) => {
    const allowed = async (origin: string) =>
      (await ask(READ, { headers: { origin } })).headers.get('access-control-allow-origin');
    for (const origin of ['http://a.example', 'https://app.example']) expect(await allowed(origin)).toBe(origin);
    for (const other of ['https://app.example:8443', 'http://app.example', 'https://a.app.example'])
      expect([other, await allowed(other)]).toEqual([other, null]);
  },
  { env: EVERYWHERE },
);

/** Scheme and host of a link that the gateway writes. */
async function linkOf(env: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> = {}) {
  const { ask, upstream } = openGateway(env);
  upstream.next('listNotifications', answer(200, PAGE));
  const { json } = await ask('listNotifications', { address: '10.0.0.1', headers: { Host: 'a.example', ...headers } });
  const { next } = json as { readonly next: string };
  return next.slice(0, next.indexOf('/api'));
}

test(says("unset: scheme (of a trusted proxy's `X-Forwarded-Proto`), host and mount path of the request"), async () => {
  const trusted = { TRUSTED_PROXIES: '10.0.0.0/8' };
  const [https, other] = [{ 'X-Forwarded-Proto': 'https' }, { TRUSTED_PROXIES: '192.0.2.0/24' }];
  expect(await linkOf(trusted)).toMatch(/^http:/);
  expect(await linkOf(trusted, https)).toMatch(/^https:/);
  expect(await linkOf(other, https)).toMatch(/^http:/);
  expect(await linkOf(trusted, { Forwarded: 'for=198.51.100.7;proto=https' })).toMatch(/^http:/);
  expect(await linkOf(trusted, { 'X-Forwarded-Proto': 'https://evil.example/#' })).toMatch(/^http:\/\/(?!evil)/);
  const named = { ...trusted, PUBLIC_URL: 'http://public.example' };
  expect(await linkOf(named, https)).toBe('http://public.example');
});

test(says('CIDRs whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed'), async () => {
  const { ask, lines } = openGateway({ TRUSTED_PROXIES: '10.0.0.0/8' });
  const from = async (address: string, claimed: string) => {
    await ask(READ, { address, headers: { 'X-Forwarded-For': claimed } });
    return lines.at(-1)?.['client'];
  };
  const client = await from('198.51.100.7', '203.0.113.9');
  expect(client).toMatch(/^[\w-]{16}$/);
  expect(await from('10.0.0.1', '203.0.113.9, 198.51.100.7, 10.1.2.3')).toBe(client);
  expect(await from('10.0.0.1', '203.0.113.9')).not.toBe(client);
});

test(says('bound of the cache of this process'), async () => {
  const { ask } = openGateway({ CACHE_MAX_BYTES: '0' });
  for (let times = 0; times < 2; times++) expect((await ask(READ)).cache).not.toContain('hit');
});

describe(says('JSON by operation id'), () => {
  test(says('`stale` and `on_error` both count from the moment freshness ends'), async () => {
    const { ask, upstream, pass } = openGateway(EVERYWHERE);
    const read = async () => (await ask(READ)).cache;
    await ask(READ);
    await pass(0.4);
    expect(await read()).toMatch(/^portico; hit/);
    const refresh = upstream.hold(READ);
    await pass(2);
    expect(await read()).toMatch(/^portico; hit; ttl=-\d/);
    refresh.release(answer(500));
    await pass(2);
    upstream.next(READ, answer(500));
    expect(await read()).toMatch(/^portico; hit; ttl=-\d/);
    await pass(0.2);
    upstream.next(READ, answer(500));
    expect((await ask(READ)).status).toBe(502);
  });
});

test(says('requests of an account; 0: no limit'), async () => {
  const { ask } = openGateway({ RATE_LIMIT_PER_MINUTE: '2' });
  const statuses = [];
  for (let times = 0; times < 3; times++) statuses.push((await ask(READ)).status);
  expect([statuses, (await ask(READ, { token: secret() })).status]).toEqual([[200, 200, 429], 200]);
  const free = openGateway({ RATE_LIMIT_PER_MINUTE: '0' });
  for (let times = 0; times < 700; times++) expect((await free.ask(READ)).status).toBe(200);
});

test(says('cookie sessions'), async () => {
  const { call } = openGateway({ SECRETS: secret('of-the-gateway-and-its-sessions') });
  expect(await call('/bff/v1/session')).toMatchObject({ status: 404, code: 'unknown_endpoint' });
});
