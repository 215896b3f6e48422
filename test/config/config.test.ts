import { describe, expect, it } from 'vitest';
import { parseConfig, type Variables } from '../../src/config.ts';
import { NODE_VARIABLES } from '../../src/entry/node/variables.ts';
import { accountTable, operations } from '../support/account-api.ts';
import { configOf } from '../support/gateway.ts';
import { LEAK_MARK } from '../support/secrets.ts';
import { linesOf, readAll } from './read.ts';

const SECRETS = 'of this test and no other: a quick brown fox';

describe('without variables', () => {
  it('everything has the documented default', () => {
    const { policyOf, upstreamBaseUrl, publicUrl, ...values } = readAll({});
    expect(policyOf).toBeTypeOf('function');
    expect([upstreamBaseUrl, publicUrl, values.storeUrl, values.sandboxPort]).toEqual(Array(4).fill(undefined));
    expect(values).toMatchObject({
      host: '127.0.0.1',
      port: 8787,
      adminHost: '127.0.0.1',
      adminPort: 8788,
      workers: 1,
      upstreamTimeoutMs: 5000,
      requestTimeoutMs: 10_000,
      upstreamMaxConnections: 256,
      upstreamMaxBodyBytes: 5_242_880,
      maxBodyBytes: 65_536,
      cacheMaxBytes: 134_217_728,
      secrets: [],
      sessions: false,
      allowedOrigins: [],
      rateLimitPerMinute: 600,
      trustedProxies: [],
      logLevel: 'info',
      logRequests: { from: 0, share: 0 },
      slowMs: 1000,
      shutdownGraceMs: 10_000,
      shutdownDelayMs: 0,
    });
  });
});

it('variables that nobody has documented are passed over, bindings of another kind included', () => {
  expect(linesOf({ SANDBOX: 'true', ASSETS: { fetch: () => null }, PATH: '/bin' })).toEqual([]);
});

const around = (mark: string) => [
  mark,
  `https://user:${mark}@x.example`,
  `https://x.example:${mark}`,
  `https://x.example/?${mark}`,
  `https://x.example/${mark}#${mark}`,
  `{${mark}`,
  `"${mark}"`,
  `{"getSubscription":"${mark}"}`,
  `{"getSubscription":{"fresh":"${mark}"}}`,
  `x,${mark}`,
  `redis://user:100%${mark}@store`,
  `redis://user:${mark}@store/${mark}`,
  `redis://one:65536/${mark}`,
  `redis-sentinel://one/${mark}/x`,
  `redis-sentinel://one,${mark}`,
  `redis://store?password=${mark}`,
  `redis://one,${mark}`,
  `${mark}:6379`,
];

describe('problems', () => {
  it('name every bad variable and leave out the good ones', () => {
    const bad = Object.fromEntries(['PORT', 'LOG_LEVEL', 'SECRETS', 'STORE_URL', 'WORKERS'].map((name) => [name, 'x']));
    const named = linesOf({ ...bad, HOST: 'fine' }).map((line) => line.split(':')[0]);
    expect(named).toHaveLength(5);
    expect(new Set(named)).toEqual(new Set(Object.keys(bad)));
  });

  it('of one policy are all named, each in its place', () => {
    const CACHE_POLICY = '{"getSubscription":{"fresh":-1,"stale":"x"},"getSubuser":1}';
    expect(linesOf({ CACHE_POLICY })).toEqual([
      'CACHE_POLICY: expected getSubscription.fresh to be a number of seconds from 0 to 31536000',
      'CACHE_POLICY: expected getSubscription.stale to be a number of seconds from 0 to 31536000',
      'CACHE_POLICY: expected getSubuser to be false, or an object with fresh, stale or on_error',
    ]);
  });

  it.each(NODE_VARIABLES.filter((name) => !/HOST$|^NO_PROXY$/.test(name)))('of %s never hold a value', (name) => {
    const values = around(LEAK_MARK);
    const said = values.flatMap((value) => linesOf({ SECRETS, STORE_URL: 'redis://store', [name]: value }));
    expect(said.length).toBeGreaterThan(0);
    expect(said.join('\n')).not.toContain(LEAK_MARK);
  });
});

describe('two variables that do not go together', () => {
  const UPSTREAM = 'UPSTREAM_BASE_URL: expected a URL, since NODE_ENV is production';
  const NO_SECRET = 'SECRETS: expected a secret of 32 characters or more, since';
  const cases: (readonly [Variables, readonly string[]])[] = [
    [{ NODE_ENV: 'production' }, [UPSTREAM]],
    [{ NODE_ENV: 'development' }, []],
    [{ STORE_URL: 'redis://store' }, [`${NO_SECRET} STORE_URL is set`]],
    [{ STORE_URL: 'redis://store', SECRETS }, []],
    [{ SESSIONS: 'true' }, [`${NO_SECRET} SESSIONS is true`]],
    [{ SESSIONS: true, SECRETS }, []],
    [
      { SESSIONS: 'true', SECRETS, ALLOWED_ORIGINS: ' *' },
      ['ALLOWED_ORIGINS: expected origins and no *, since SESSIONS is true'],
    ],
    [{ SESSIONS: 'false', ALLOWED_ORIGINS: '*' }, []],
    [{ SESSIONS: 'true', SECRETS, ALLOWED_ORIGINS: 'https://app.example' }, []],
  ];

  it.each(cases)('%o', (given, lines) => expect(linesOf(given)).toEqual(lines));
});

const inProduction = (secrets: string) =>
  linesOf({ NODE_ENV: 'production', UPSTREAM_BASE_URL: 'https://upstream.example', SECRETS: secrets });

describe('a secret in production', () => {
  const PUBLIC = 'for-this-machine-only-0123456789abcdef';
  const SINCE = 'since NODE_ENV is production';

  it.each([
    [PUBLIC, `entry 1 to be a secret of your own, ${SINCE}: this one is public`],
    [`${SECRETS}, ${PUBLIC}`, `entry 2 to be a secret of your own, ${SINCE}: this one is public`],
    ['short', 'entry 1 to be a secret of 32 characters or more'],
  ])('is not %s', (secrets, expected) => expect(inProduction(secrets)).toEqual([`SECRETS: expected ${expected}`]));

  it.each([SECRETS, `${PUBLIC}!`])('is %s', (secrets) => {
    expect(inProduction(secrets)).toEqual([]);
  });

  it('that its file does not give is all that is said to be wrong', () => {
    const given = { NODE_ENV: 'production', UPSTREAM_BASE_URL: 'https://upstream.example', SESSIONS: 'true' };
    expect(linesOf({ ...given, SECRETS_FILE: '/nothing' })).toEqual(['SECRETS_FILE: expected a file that is there']);
  });

  it('may be public elsewhere', () => {
    expect(linesOf({ SECRETS: PUBLIC })).toEqual([]);
  });
});

const policyWith = (policy: unknown) => configOf({ CACHE_POLICY: JSON.stringify(policy) }).policyOf;

describe('CACHE_POLICY', () => {
  it('replaces what it names, and leaves the rest', () => {
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
});

describe('the vars of a Worker', () => {
  it('may be numbers, booleans and objects', () => {
    const vars = {
      UPSTREAM_TIMEOUT_MS: 250,
      SESSIONS: false,
      CACHE_POLICY: { getSubscription: false },
      ASSETS: { fetch() {} },
    };
    const parsed = parseConfig(vars, accountTable);
    const config = 'config' in parsed ? parsed.config : undefined;
    expect([config?.upstreamTimeoutMs, config?.sessions]).toEqual([250, false]);
    expect(config?.policyOf(operations.getSubscription)).toBeUndefined();
  });

  it('that are numbers out of bounds, objects in place of numbers, or bindings are refused in words', () => {
    const vars = {
      UPSTREAM_TIMEOUT_MS: 0.5,
      SLOW_MS: { ms: 5 },
      PUBLIC_URL: ['https://a.example'],
      SESSIONS: new Map(),
    };
    expect(linesOf(vars)).toEqual([
      'UPSTREAM_TIMEOUT_MS: expected an integer from 1 to 600000',
      'PUBLIC_URL: expected a text, not a list, null or a binding of another kind',
      'SLOW_MS: expected an integer from 0 to 600000',
      'SESSIONS: expected a text, not a list, null or a binding of another kind',
    ]);
  });
});

describe('pages of this machine', () => {
  it('are allowed only while no origin is named and the upstream is the sandbox', () => {
    expect(configOf({})).toMatchObject({ allowedOrigins: [], allowsLocalOrigins: true });
    const upstream = { UPSTREAM_BASE_URL: 'http://127.0.0.1:8789' };
    for (const real of [upstream, { ...upstream, NODE_ENV: 'production' }, { ALLOWED_ORIGINS: 'https://app.example' }])
      expect(configOf(real).allowsLocalOrigins).toBe(false);
  });
});
