import { describe, expect, it } from 'vitest';
import { type ConfigProblem, parseConfig } from '../../src/config.ts';
import { storeAddressOf } from '../../src/core/store-address.ts';
import { accountTable, operations } from '../support/account-api.ts';
import { configOf } from '../support/gateway.ts';
import { LEAK_MARK } from '../support/secrets.ts';

function problemsOf(record: Readonly<Record<string, unknown>>): readonly ConfigProblem[] {
  const parsed = parseConfig(record, accountTable);
  return 'problems' in parsed ? parsed.problems : [];
}

const badNames = (record: Readonly<Record<string, unknown>>) => problemsOf(record).map(({ variable }) => variable);

describe('without variables', () => {
  it('everything has the documented default', () => {
    const { policyOf, ...values } = configOf({});
    expect(policyOf).toBeTypeOf('function');
    expect(values).toMatchObject({
      host: '127.0.0.1',
      port: 8787,
      adminHost: '127.0.0.1',
      adminPort: 8788,
      upstreamTimeoutMs: 5000,
      requestTimeoutMs: 10_000,
      upstreamMaxConnections: 256,
      upstreamMaxBodyBytes: 5_242_880,
      maxBodyBytes: 65_536,
      cacheMaxBytes: 134_217_728,
      rateLimitPerMinute: 600,
      upstreamBudgetPerMinute: 0,
      trustedProxies: [],
      logLevel: 'info',
      shutdownGraceMs: 10_000,
    });
    expect([values.upstreamBaseUrl, values.publicUrl]).toEqual([undefined, undefined]);
  });
});

describe('variables', () => {
  it('are read as what they mean', () => {
    const config = configOf({
      NODE_ENV: 'production',
      HOST: '::1',
      PORT: '0',
      ADMIN_HOST: 'admin.internal',
      ADMIN_PORT: '65535',
      UPSTREAM_BASE_URL: 'https://api.example/base/',
      UPSTREAM_TIMEOUT_MS: '1',
      REQUEST_TIMEOUT_MS: '600000',
      UPSTREAM_MAX_CONNECTIONS: '1',
      UPSTREAM_MAX_BODY_BYTES: '1',
      MAX_BODY_BYTES: '2',
      PUBLIC_URL: 'https://gateway.example:8443/api/',
      CACHE_MAX_BYTES: '0',
      RATE_LIMIT_PER_MINUTE: '0',
      UPSTREAM_BUDGET_PER_MINUTE: '240',
      TRUSTED_PROXIES: '10.0.0.0/8, 192.0.2.7,2001:db8::/32 ,::1',
      LOG_LEVEL: 'silent',
      SHUTDOWN_GRACE_MS: '0',
    });
    expect(config).toMatchObject({
      host: '::1',
      port: 0,
      adminHost: 'admin.internal',
      adminPort: 65_535,
      upstreamTimeoutMs: 1,
      requestTimeoutMs: 600_000,
      upstreamMaxConnections: 1,
      upstreamMaxBodyBytes: 1,
      maxBodyBytes: 2,
      publicUrl: 'https://gateway.example:8443/api',
      cacheMaxBytes: 0,
      rateLimitPerMinute: 0,
      upstreamBudgetPerMinute: 240,
      trustedProxies: ['10.0.0.0/8', '192.0.2.7', '2001:db8::/32', '::1'],
      logLevel: 'silent',
      shutdownGraceMs: 0,
    });
    expect(config.upstreamBaseUrl?.href).toBe('https://api.example/base');
  });

  it('that are empty count as not set', () => {
    const names = ['HOST', 'PORT', 'ADMIN_PORT', 'UPSTREAM_BASE_URL', 'CACHE_POLICY', 'PUBLIC_URL', 'LOG_LEVEL'];
    names.push('RATE_LIMIT_PER_MINUTE', 'UPSTREAM_BUDGET_PER_MINUTE', 'TRUSTED_PROXIES', 'ALLOWED_ORIGINS');
    const { policyOf: _, ...empty } = configOf(Object.fromEntries(names.map((name) => [name, ''])));
    const { policyOf: __, ...unset } = configOf({});
    expect(empty).toEqual(unset);
  });

  it('that nobody has documented are passed over, bindings of another kind included', () => {
    expect(problemsOf({ SANDBOX: 'true', ASSETS: { fetch: () => null }, PATH: '/bin' })).toEqual([]);
  });
});

const NOT_INTEGERS = ['x', '1.5', '-1', '1e3', '0x10', ' 1', '1 ', '99999999999999999999'];
const NOT_URLS = ['x', 'ftp://upstream.example', 'https://', '//upstream.example', 'https://user:key@upstream.example'];

const BAD: Readonly<Record<string, readonly string[]>> = {
  PORT: [...NOT_INTEGERS, '65536'],
  ADMIN_PORT: [...NOT_INTEGERS, '65536'],
  UPSTREAM_BASE_URL: [...NOT_URLS, 'https://upstream.example/?key=1', 'https://upstream.example/#x'],
  UPSTREAM_TIMEOUT_MS: [...NOT_INTEGERS, '0'],
  REQUEST_TIMEOUT_MS: [...NOT_INTEGERS, '0'],
  UPSTREAM_MAX_CONNECTIONS: [...NOT_INTEGERS, '0'],
  UPSTREAM_MAX_BODY_BYTES: [...NOT_INTEGERS, '0'],
  MAX_BODY_BYTES: [...NOT_INTEGERS, '0'],
  PUBLIC_URL: [...NOT_URLS, 'https://gateway.example?x', 'https://gateway.example/#x'],
  CACHE_MAX_BYTES: NOT_INTEGERS,
  CACHE_POLICY: [
    'x',
    '[]',
    'null',
    '1',
    '{"getSubscription":true}',
    '{"getSubscription":null}',
    '{"getSubscription":{"fresh":-1}}',
    '{"getSubscription":{"fresh":"1"}}',
    '{"getSubscription":{"frehs":1}}',
    '{"getNothing":{"fresh":1}}',
    '{"getApiKey":{"fresh":1}}',
    '{"updateReferralConfig":false}',
  ],
  RATE_LIMIT_PER_MINUTE: [...NOT_INTEGERS, '1000000001'],
  UPSTREAM_BUDGET_PER_MINUTE: [...NOT_INTEGERS, '1000000001'],
  TRUSTED_PROXIES: [
    'x',
    'proxy.internal',
    '*',
    ',',
    '10.0.0.1,',
    '10.0.0.1 10.0.0.2',
    '10.0.0.1;10.0.0.2',
    '10.0.0',
    '10.0.0.256',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/',
    '10.0.0.1:80',
    '2001:db8::/129',
    '[::1]',
    '10.0.0.1,proxy.internal',
  ],
  LOG_LEVEL: ['x', 'INFO', 'verbose'],
  SHUTDOWN_GRACE_MS: NOT_INTEGERS,
};

describe.each(Object.entries(BAD))('%s', (name, values) => {
  it.each(values)('is refused as %s', (value) => {
    expect(badNames({ [name]: value })).toEqual([name]);
  });
});

describe('problems', () => {
  it('name every bad variable and leave out the good ones', () => {
    const record = Object.fromEntries(Object.entries(BAD).map(([name, [value]]) => [name, value]));
    expect(badNames({ ...record, HOST: 'fine' }).toSorted()).toEqual(Object.keys(BAD).toSorted());
  });

  it.each(Object.entries(BAD).flatMap(([name, values]) => values.map((value) => [name, value] as const)))(
    'of %s=%s say what was expected, in words for an operator',
    (name, value) => {
      const [{ expected } = { expected: '' }] = problemsOf({ [name]: value });
      expect(expected).toMatch(/\w/);
      expect(expected).not.toMatch(/Invalid input|received/);
    },
  );

  it('never hold a value', () => {
    const values = [
      LEAK_MARK,
      `https://user:${LEAK_MARK}@x.example`,
      `https://x.example/?${LEAK_MARK}`,
      `{${LEAK_MARK}`,
    ];
    const policies = [
      `"${LEAK_MARK}"`,
      `{"getSubscription":"${LEAK_MARK}"}`,
      `{"getSubscription":{"fresh":"${LEAK_MARK}"}}`,
    ];
    for (const name of Object.keys(BAD)) {
      for (const value of [...values, ...policies]) {
        expect(JSON.stringify(problemsOf({ [name]: value }))).not.toContain(LEAK_MARK);
      }
    }
  });
});

const policyWith = (policy: unknown) => configOf({ CACHE_POLICY: JSON.stringify(policy) }).policyOf;

describe('CACHE_POLICY', () => {
  it('replaces what it names, fractions included, and leaves the rest', () => {
    const policyOf = policyWith({ getSubscription: { fresh: 0.5 }, getSubuser: { fresh: 1, stale: 2, on_error: 3 } });
    expect(policyOf(operations.getSubscription)).toEqual({ fresh: 0.5, stale: 300, onError: 3600 });
    expect(policyOf(operations.getSubuser)).toEqual({ fresh: 1, stale: 2, onError: 3 });
    expect(policyOf(operations.getReferralConfig)).toEqual({ fresh: 30, stale: 300, onError: 3600 });
  });

  it('turns caching of an operation off with false', () => {
    const policyOf = policyWith({ getSubscription: false });
    expect(policyOf(operations.getSubscription)).toBeUndefined();
    expect(policyOf(operations.getReferralConfig)).toBeDefined();
  });

  it('changes nothing when it names nothing', () => {
    expect(policyWith({})(operations.getSubscription)).toEqual({ fresh: 30, stale: 300, onError: 3600 });
  });
});

it('takes the vars of a Worker, which may be numbers, booleans and objects', () => {
  const parsed = parseConfig(
    {
      UPSTREAM_TIMEOUT_MS: 250,
      CACHE_POLICY: { getSubscription: false },
      ASSETS: { fetch() {} },
    },
    accountTable,
  );
  const config = 'config' in parsed ? parsed.config : undefined;
  expect(config?.upstreamTimeoutMs).toBe(250);
  expect(config?.policyOf(operations.getSubscription)).toBeUndefined();
});

describe('allowed origins', () => {
  it('are those of this machine only while nothing else is named and the upstream is the sandbox', () => {
    expect(configOf({})).toMatchObject({ allowedOrigins: [], allowsLocalOrigins: true });
    const upstream = { UPSTREAM_BASE_URL: 'http://127.0.0.1:8789' };
    for (const real of [upstream, { ...upstream, NODE_ENV: 'production' }, { ALLOWED_ORIGINS: 'https://app.example' }])
      expect(configOf(real).allowsLocalOrigins).toBe(false);
    expect(badNames({ NODE_ENV: 'production' })).toEqual(['UPSTREAM_BASE_URL']);
  });

  it.each([
    ['https://app.example', ['https://app.example']],
    [
      'https://app.example:8443 ,http://localhost:5173,capacitor://localhost, ionic://localhost',
      ['https://app.example:8443', 'http://localhost:5173', 'capacitor://localhost', 'ionic://localhost'],
    ],
    ['http://127.0.0.1:3000,http://[::1]:3000', ['http://127.0.0.1:3000', 'http://[::1]:3000']],
    ['https://xn--bcher-kva.example', ['https://xn--bcher-kva.example']],
    ['https://app.example,https://app.example', ['https://app.example', 'https://app.example']],
    ['chrome-extension://abcdefghijklmnop', ['chrome-extension://abcdefghijklmnop']],
    [' * ', ['*']],
  ])('are taken apart: %s', (given, origins) => {
    expect(configOf({ ALLOWED_ORIGINS: given }).allowsLocalOrigins).toBe(false);
    expect(configOf({ ALLOWED_ORIGINS: given }).allowedOrigins).toEqual(origins);
  });

  it.each([
    'app.example',
    'https://',
    'https://app.example/',
    'https://app.example/path',
    'https://app.example?x',
    'https://app.example#x',
    'https://user@app.example',
    'https://App.example',
    'HTTPS://app.example',
    'https://app.example:443',
    'http://app.example:80',
    'https://app.example:',
    'https://app.example:0443',
    'https://app.example:99999',
    'https://bücher.example',
    'https://*.app.example',
    'https://app.example *',
    'http://1',
    'capacitor://localhost/',
    'capacitor://LOCALHOST',
    'null',
    'ftp://app.example',
    'ws://app.example',
    'wss://app.example',
    'file://app.example',
    '*,https://app.example',
    'https://app.example,*',
    '*,*',
    'https://app.example,',
    'https://app.example,,https://b.example',
    'https://app.example;https://b.example',
  ])('that no browser sends are bad: %s', (given) => {
    expect(problemsOf({ ALLOWED_ORIGINS: given })).toEqual([
      { variable: 'ALLOWED_ORIGINS', expected: expect.stringMatching(/^entry [12] to be \S+:\/\/\S/) },
    ]);
  });

  it.each([
    ['https://a.example,https://b.example/', 'entry 2 to be https://b.example'],
    ['HTTPS://App.example:443,x', 'entry 1 to be https://app.example'],
    [`https://${LEAK_MARK}@app.example/${LEAK_MARK}`, 'entry 1 to be https://app.example'],
    ['https://a.example,*', 'entry 2 to be scheme://host[:port] of a page, as browsers send it'],
    [LEAK_MARK, 'entry 1 to be scheme://host[:port] of a page, as browsers send it'],
  ])('are named by their place, with what they should be: %s', (given, expected) => {
    const problem = JSON.stringify(problemsOf({ ALLOWED_ORIGINS: given }));
    expect(problem).toContain(expected);
    expect(problem).not.toContain(LEAK_MARK);
  });

  it('are listed one by one where there are sessions', () => {
    const SECRETS = 's'.repeat(32);
    expect(badNames({ ALLOWED_ORIGINS: ' *', SESSIONS: 'true', SECRETS })).toEqual(['ALLOWED_ORIGINS']);
    expect(badNames({ ALLOWED_ORIGINS: '*', SESSIONS: true, SECRETS })).toEqual(['ALLOWED_ORIGINS']);
    expect(badNames({ ALLOWED_ORIGINS: '*', SESSIONS: 'false' })).toEqual([]);
    expect(badNames({ ALLOWED_ORIGINS: 'https://app.example', SESSIONS: 'true', SECRETS })).toEqual([]);
  });
});

describe('a store that instances share', () => {
  const SECRET = 'x'.repeat(32);

  it('takes secrets apart, without the blanks round them', () => {
    const { storeUrl, secrets } = configOf({
      STORE_URL: 'rediss://u:p@store:6380/1',
      SECRETS: `${SECRET}, ${SECRET}y`,
    });
    expect([storeUrl, secrets]).toEqual([storeAddressOf('rediss://u:p@store:6380/1'), [SECRET, `${SECRET}y`]]);
    expect(configOf({}).secrets).toEqual([]);
  });

  it('keeps secrets in their order, also one that is there twice', () => {
    const [old, next] = [SECRET, `${SECRET}y`];
    expect(configOf({ SECRETS: [old, next, old].join() }).secrets).toEqual([old, next, old]);
  });

  it('needs secrets', () => {
    const parsed = parseConfig({ STORE_URL: 'redis://store' }, accountTable);
    expect(parsed).toEqual({
      problems: [{ variable: 'SECRETS', expected: 'a secret of 32 characters or more, since STORE_URL is set' }],
    });
  });

  it.each([
    'redis://store',
    'redis://:p%40ss@[::1]:6380/3',
    'rediss://user:pass@store',
    'redis-sentinel://one:26379,two/primary',
    'rediss-sentinel://user:pass@one,two/primary/2',
    'redis-cluster://:pass@one:7000,two:7001',
    'rediss-cluster://one/',
  ])('is found at %s', (url) => {
    expect(configOf({ STORE_URL: url, SECRETS: SECRET }).storeUrl).toEqual(storeAddressOf(url) ?? 'an address');
  });

  it('is asked for in words when it is at no address', () => {
    const parsed = parseConfig({ STORE_URL: 'redis-sentinel://one,two', SECRETS: SECRET }, accountTable);
    expect(parsed).toEqual({
      problems: [
        { variable: 'STORE_URL', expected: expect.stringContaining('redis-sentinel://[…@]host[:port],…/master') },
      ],
    });
  });

  it.each([
    ['STORE_URL', `http://${LEAK_MARK}`],
    ['STORE_URL', `redis://one,${LEAK_MARK}`],
    ['STORE_URL', `redis://${LEAK_MARK}/primary`],
    ['STORE_URL', `redis://one:65536/${LEAK_MARK}`],
    ['STORE_URL', `redis-cluster://one/${LEAK_MARK}`],
    ['STORE_URL', `redis-sentinel://${LEAK_MARK}`],
    ['STORE_URL', `redis://store?password=${LEAK_MARK}`],
    ['STORE_URL', `${LEAK_MARK}:6379`],
    ['STORE_URL', LEAK_MARK],
    ['STORE_URL', `redis://user:100%${LEAK_MARK}@store`],
    ['SECRETS', 'x'.repeat(31)],
    ['SECRETS', `${SECRET},`],
    ['SECRETS', `${SECRET},${LEAK_MARK}`],
  ])('is refused for a bad %s without its value', (variable, value) => {
    const parsed = parseConfig({ SECRETS: SECRET, STORE_URL: 'redis://store', [variable]: value }, accountTable);
    expect(parsed).toMatchObject({ problems: [{ variable }] });
    expect(JSON.stringify(parsed)).not.toContain(value.slice(-6));
  });
});
