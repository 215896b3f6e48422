import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { type Asked, openGateway } from '../../support/gateway.ts';
import { expectProblem } from '../../support/problem.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';

/** Of the connection, and the one that Cloudflare puts on what a worker sends. */
const OF_THE_RUNTIME = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'cf-worker']);

const TRACE = '0af7651916cd43dd8448eb211c80319c';

const sentOf = ({ upstream, me }: Asked) =>
  Object.fromEntries(
    Object.entries(upstream.callsOf(me).at(-1)!.headers).filter(([name]) => !OF_THE_RUNTIME.has(name)),
  );

everywhere(
  says(
    'To the upstream: `Authorization`, `Accept: application/json`, `Content-Type` with a body, `User-Agent`, `X-Request-Id`, `traceparent`, `tracestate`, `Idempotency-Key`, `Via`.',
  ),
  async (stage) => {
    const headers = {
      'user-agent': 'app/1.0',
      'x-request-id': 'mine',
      traceparent: `00-${TRACE}-b7ad6b7169203331-01`,
      tracestate: 'vendor=1',
    };
    await stage.ask('createApiKey', { key: 'a-key-of-the-client', headers });
    const expected = {
      authorization: `Token ${stage.me}`,
      accept: 'application/json',
      ...headers,
      traceparent: expect.stringMatching(new RegExp(`^00-${TRACE}-(?!b7ad)[0-9a-f]{16}-01$`)),
      via: expect.stringMatching(/^1\.1 portico-[\w-]{12}$/),
    };
    expect(sentOf(stage)).toEqual({
      ...expected,
      'content-type': 'application/json',
      'idempotency-key': 'a-key-of-the-client',
    });
    await stage.ask('getSubscription', { headers });
    expect(sentOf(stage)).toEqual(expected);
  },
);

everywhere(says('No cookie, no forwarded header, no hop-by-hop header.'), async (stage) => {
  const headers = {
    cookie: 'session=x',
    'x-forwarded-for': '203.0.113.250',
    'x-forwarded-host': 'elsewhere.example',
    forwarded: 'for=203.0.113.9',
    'x-real-ip': '203.0.113.9',
    te: 'trailers',
    'proxy-authorization': 'Basic x',
    'x-subuser': '1081',
    'accept-language': 'de',
  };
  await stage.ask('getSubscription', { headers });
  await stage.ask('createApiKey', { headers });
  expect(Object.keys(sentOf(stage)).filter((name) => name in headers)).toEqual([]);
});

/** What no client may see of an upstream. */
const OWN = {
  constructor: 'of a prototype',
  'set-cookie': 'sessionid=x; HttpOnly',
  server: 'nginx/1.0',
  'access-control-allow-origin': '*',
  'content-security-policy': 'default-src *',
  'cache-control': 'public, max-age=9999',
  etag: '"upstream"',
  location: 'https://internal.example/',
  'content-type': 'text/html; charset=latin1',
  'x-request-id': 'of-the-upstream',
  'www-authenticate': 'Basic realm="internal"',
  link: '<https://internal.example/>; rel=preload',
  allow: 'BREW',
  'x-ratelimit-remaining': '3000',
};

everywhere(says('**Headers** by allow-lists both ways.'), async ({ ask, upstream }) => {
  for (const status of [200, 204, 400, 404, 500]) {
    upstream.next('getSubscription', answer(status, status === 204 ? '' : '{}', OWN));
    const got = await ask('getSubscription', { token: secret() });
    expect(got.status).toBe(status === 500 ? 502 : status);
    expect(got.headers.get('content-type') ?? 'none').toMatch(
      status === 204 ? /^none$/ : /^application\/(problem\+)?json$/,
    );
    const values = Array.from(got.headers.values()).join('\n');
    expect(Object.values(OWN).filter((value) => value.length > 1 && values.includes(value))).toEqual([]);
    expect(got.headers.get('set-cookie')).toBeNull();
  }
});

everywhere(
  says("An upstream's redirect is never followed: 502 `upstream_bad_response`."),
  async ({ ask, upstream, me }) => {
    for (const status of [300, 301, 302, 303, 304, 307, 308]) {
      upstream.next('createApiKey', answer(status, '{}', { location: '/api/v2/referral/config/' }));
      const got = await ask('createApiKey');
      expect(expectProblem(got, { status: 502, code: 'upstream_bad_response' }).outcome).toBe('unknown');
    }
    upstream.next('getSubscription', answer(307, '{}', { location: '/api/v2/referral/config/' }));
    expectProblem(await ask('getSubscription'), { status: 502, code: 'upstream_bad_response' });
    expect(new Set(upstream.callsOf(me).map(({ id }) => id))).toEqual(new Set(['createApiKey', 'getSubscription']));
  },
);

everywhere(says('What a client names as host is never used to reach the upstream.'), async ({ ask, upstream, me }) => {
  const headers = { 'x-forwarded-host': 'elsewhere.example', 'x-original-url': '/api/v2/apikey/1/' };
  const { json } = await ask('getSubscription', { headers });
  expect(json).toMatchObject({ x_version: 1 });
  const [{ path, headers: sent } = expect.fail()] = upstream.callsOf(me);
  expect([path, sent['host']?.includes('elsewhere') ?? false]).toEqual(['/api/v2/subscription/', false]);
});

const { ask, call, upstream } = openGateway();

test(`${says('What a client names as host is never used')}: where it is another than ours`, async () => {
  const got = await call('http://elsewhere.example/api/v2/subscription/', { token: secret() });
  expect([got.status, upstream.calls.map(({ headers }) => headers['host'])]).toEqual([200, [undefined]]);
});

describe(says('**Headers** by allow-lists both ways'), () => {
  test.each(['', 'a b', 'k'.repeat(256)])('of an Idempotency-Key that is none: %j', async (key) => {
    const { errors } = expectProblem(await ask('createApiKey', { key }), { status: 400, code: 'validation_failed' });
    expect(errors).toMatchObject([{ field: 'Idempotency-Key' }]);
    expect(upstream.calls).toEqual([]);
  });

  /** An expression that looks at pairs of so many characters is still at it when the time of a test is over. */
  test.each([
    ['authorization', `Token${' '.repeat(400_000)}a b`],
    ['accept-encoding', 'gzip;q='.repeat(60_000)],
    ['content-type', `application/json${' '.repeat(400_000)}!`],
    ['if-none-match', `"a"${' '.repeat(400_000)}a`],
    ['if-none-match', 'W/'.repeat(200_000)],
    ['prefer', `${'"'.repeat(400_000)}\\`],
    ['traceparent', `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00${'-'.repeat(400_000)}.`],
    ['via', 'portico-01234567890 '.repeat(20_000)],
    ['origin', `http://${'a'.repeat(400_000)}!`],
  ])('of many characters each is read once: %s', async (name, value) => {
    const asking = { headers: { [name]: value }, ...(name === 'content-type' && { method: 'POST' }) };
    for (const path of ['/api/v2/subscription/', '/bff/v1/account-overview', '/bff/v1/batch'])
      expect((await call(path, asking)).status).toBeLessThan(500);
  });
});
