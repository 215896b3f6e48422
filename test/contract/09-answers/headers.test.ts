import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { KNOWN_METHODS } from '../../../src/app.ts';
import { says } from '../../support/contract.ts';
import { type Asked, type Asking, type Env, openGateway } from '../../support/gateway.ts';
import { expectCommonHeaders } from '../../support/problem.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';

const PATH = '/api/v2/subscription/';
const OVERVIEW = '/bff/v1/account-overview';
const KEY = '/api/v2/apikey/';

/** One of each kind of answer. */
const KINDS = (
  [
    [200, PATH],
    [304, PATH, { headers: { 'if-none-match': '*' } }],
    [200, PATH, { method: 'HEAD' }],
    [200, KEY, { body: { label: 'x' } }],
    [204, '/api/v2/payment/method/', { method: 'DELETE' }],
    [200, OVERVIEW],
    [200, OVERVIEW, { headers: { accept: 'application/x-ndjson' } }],
    [200, '/bff/v1/batch', { body: { requests: [{ id: 'a', path: PATH }] } }],
    [401, PATH, { token: null }],
    [404, '/nothing'],
    [405, PATH, { method: 'PUT' }],
    [413, KEY, { body: 'x'.repeat(70_000) }],
    [405, PATH, { method: 'OPTIONS' }],
    [200, '/openapi.json'],
    [200, '/docs'],
    [200, '/livez'],
  ] as readonly (readonly [number, string, Asking?])[]
).map(([status, path, asking = {}]) => ({ status, path, asking }));

const idsFor = async (stage: Asked, id: string) => {
  const headers = { 'x-request-id': id };
  const answers = [await stage.ask('getApiKey', { headers }), await stage.call('/nothing', { headers })];
  return {
    ids: answers.map((got) => got.headers.get('x-request-id')),
    sent: stage.upstream.callsOf(stage.me).at(-1)?.headers['x-request-id'],
  };
};

everywhere(says("`X-Request-Id` (the client's if 1 to 128 of `[A-Za-z0-9._-]`)"), async (stage) => {
  for (const id of ['a', 'A-z_0.9', 'x'.repeat(128)])
    expect(await idsFor(stage, id)).toEqual({ ids: [id, id], sent: id });
  for (const id of ['', 'a b', 'a,b', 'a/b', 'a"b', '<script>', 'x'.repeat(129)]) {
    const { ids, sent } = await idsFor(stage, id);
    for (const one of ids) expect(one).toMatch(/^[A-Za-z0-9._-]{8,128}$/);
    expect([new Set([id, ...ids]).size, sent]).toEqual([3, ids[0]]);
  }
});

test(`${says("the client's if 1 to 128 of")}: what is renewed behind an answer is asked for with its id`, async () => {
  const { ask, upstream, pass, idle } = openGateway();
  await ask('getSubuser');
  await pass(20);
  expect((await ask('getSubuser', { headers: { 'x-request-id': 'mine' } })).cache).toMatch(/^portico; hit; ttl=-/);
  await idle();
  expect(upstream.calls.map(({ headers }) => headers['x-request-id'] === 'mine')).toEqual([false, true]);
});

everywhere(says('`Server-Timing`, where a limit applies `RateLimit`'), async ({ call }) => {
  for (const { path, asking } of KINDS)
    expect((await call(path, asking)).headers.get('server-timing')).toMatch(/total;dur=\d/);
});

everywhere(says('`X-Content-Type-Options`, `Cross-Origin-Resource-Policy`'), async ({ call }) => {
  for (const { path, asking } of KINDS) expectCommonHeaders(await call(path, asking));
});

everywhere(says('on pages `Content-Security-Policy` and the like.'), async ({ call }) => {
  const { headers } = await call('/docs');
  expect(headers.get('content-type')).toContain('text/html');
  expect(headers.get('content-security-policy')).toContain("default-src 'none'");
  expect([headers.get('x-frame-options'), headers.get('referrer-policy')]).toEqual(['DENY', 'no-referrer']);
});

const HSTS = says('by https `Strict-Transport-Security`');

const hstsOf = async ({ call }: Pick<Asked, 'call'>, headers: Record<string, string> = {}) => {
  const paths = ['/api/v2/subscription/', '/nothing', '/problems'];
  const all = await Promise.all(
    paths.map(async (path) => (await call(path, { headers })).headers.get('strict-transport-security')),
  );
  expect(new Set(all).size).toBe(1);
  return all[0];
};

everywhere(HSTS, async (stage) => expect(await hstsOf(stage)).toBe('max-age=31536000'), {
  env: { PUBLIC_URL: 'https://api.example' },
});

const saidBy = (proto: string, env: Env) => {
  const gateway = openGateway(env);
  const call: Asked['call'] = (path, asking) => gateway.call(path, { address: '192.0.2.1', ...asking });
  return hstsOf({ call }, { 'x-forwarded-proto': proto });
};

test(`${HSTS}: or where a trusted proxy says so`, async () => {
  const trusting = { TRUSTED_PROXIES: '192.0.2.1' };
  const said = [await saidBy('https', trusting), await saidBy('http', trusting), await saidBy('https', {})];
  expect(said).toEqual(['max-age=31536000', null, null]);
});

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const SPAN_ID = 'b7ad6b7169203331';
const parent = (flags = '01') => `00-${TRACE_ID}-${SPAN_ID}-${flags}`;

everywhere(says('`traceparent` is continued.'), async ({ call, ask, upstream, me }) => {
  await call('/bff/v1/billing-overview', { headers: { traceparent: parent('00'), tracestate: 'vendor=a,other=b' } });
  const sent = upstream.callsOf(me).map(({ headers }) => headers['traceparent']!.split('-'));
  expect(sent.map(([version, trace, , flags]) => [version, trace, flags])).toEqual(
    sent.map(() => ['00', TRACE_ID, '00']),
  );
  expect(new Set([SPAN_ID, ...sent.map(([, , span]) => span)]).size).toBe(5); // each call has a span of its own
  expect(upstream.callsOf(me).map(({ headers }) => headers['tracestate'])).toEqual(Array(4).fill('vendor=a,other=b'));
  await ask('getApiKey', { headers: { traceparent: 'none', tracestate: 'vendor=a' } });
  const anew = upstream.callsOf(me).at(-1)!.headers;
  expect(anew['traceparent']).toMatch(/^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-0[01]$/);
  expect([anew['traceparent']?.includes(TRACE_ID), anew['tracestate']]).toEqual([false, undefined]);
});

test(`${says('`traceparent` is continued')}: in the log too, of a later version too, and no malformed one`, async () => {
  const { ask, upstream, lines } = openGateway();
  const sentFor = async (traceparent: string) => {
    await ask('getApiKey', { token: secret(), headers: { traceparent, tracestate: 'vendor=a' } });
    return upstream.calls.at(-1)!.headers;
  };
  for (const one of [parent(), `01-${TRACE_ID}-${SPAN_ID}-01-what-comes-then`]) {
    expect((await sentFor(one))['traceparent']).toContain(`00-${TRACE_ID}-`);
    expect(lines.at(-1)?.['trace_id']).toBe(TRACE_ID);
  }
  const zeros = [`00-${'0'.repeat(32)}-${SPAN_ID}-01`, `00-${TRACE_ID}-${'0'.repeat(16)}-01`];
  const bad = [`00-${TRACE_ID.slice(1)}-${SPAN_ID}-01`, `00-${TRACE_ID}-${SPAN_ID}`, `ff-${TRACE_ID}-${SPAN_ID}-01`];
  for (const one of ['', ...zeros, ...bad, parent().toUpperCase(), `${parent()}-more`, `${parent()}, ${parent()}`]) {
    const sent = await sentFor(one);
    expect([sent['traceparent']?.includes(TRACE_ID), sent['tracestate']]).toEqual([false, undefined]);
  }
});

const LISTED = 'https://app.example';
const NATIVE = 'capacitor://localhost';
const OTHER = 'https://other.example';
const ORIGINS = { ALLOWED_ORIGINS: `${LISTED}, ${NATIVE}` };

const SHOWN = says(
  '`Timing-Allow-Origin`, and exposed `ETag, Age, Cache-Status, Retry-After, RateLimit, RateLimit-Policy, Server-Timing, X-Request-Id, Idempotency-Replayed, Preference-Applied`.',
);
const [, EXPOSED = ''] = /exposed `(.*)`/.exec(SHOWN) ?? [];

type Said = { readonly headers: Headers };

/** All that an answer says to a browser about other origins. */
const saidOf = ({ headers }: Said) =>
  Object.fromEntries([...headers].filter(([name]) => /^(access-control|timing-allow)-/.test(name)));

const shownTo = (origin: string) => ({
  'access-control-allow-origin': origin,
  'access-control-expose-headers': EXPOSED,
  'timing-allow-origin': origin,
});

const PREFLIGHT = {
  'access-control-max-age': '7200',
  'access-control-allow-methods': [...KNOWN_METHODS].filter((method) => method !== 'OPTIONS').join(', '),
  'access-control-allow-headers':
    'Authorization, Cache-Control, Content-Type, Idempotency-Key, If-None-Match, Prefer, X-Request-Id, ' +
    'traceparent, tracestate, baggage, sentry-trace',
};

/** Headers that browsers and proxies set, that need no permission, or of which nothing but the absence is taken. */
const NOT_ASKED_FOR =
  /^(accept|access-control-|cf-|content-encoding|content-length|cookie|host|origin|sec-|transfer-|user-agent|via|x-forwarded)/;

test(`${says('A preflight is 204 before authentication and limits')}: it allows each header that anything reads`, () => {
  const files = globSync('src/**/*.ts').map((file) => readFileSync(file, 'utf8'));
  const read = files.flatMap((text) => Array.from(text.matchAll(/\bheader\('([\w-]+)'\)/g), ([, name = '']) => name));
  const allowed = PREFLIGHT['access-control-allow-headers'].split(', ');
  expect(new Set(['baggage', 'sentry-trace', ...read.filter((name) => !NOT_ASKED_FOR.test(name))])).toEqual(
    new Set(allowed.map((one) => one.toLowerCase())),
  );
  const page = readFileSync('docs/browser.md', 'utf8');
  for (const one of [...allowed, ...PREFLIGHT['access-control-allow-methods'].split(', ')]) expect(page).toContain(one);
});

function expectSaid(got: Said, expected: Readonly<Record<string, string>>): void {
  expect(saidOf(got)).toEqual(expected);
  expect(got.headers.get('vary')?.split(/, */)).toContain('Origin');
}

everywhere(
  says('**CORS** for `ALLOWED_ORIGINS`, on problems and 304s too: the origin echoed, `Vary: Origin`'),
  async ({ ask, call, upstream }) => {
    for (const { status, path, asking } of KINDS) {
      const from = (origin: object) => call(path, { ...asking, headers: { ...asking.headers, ...origin } });
      const shown = await from({ origin: LISTED });
      expect([path, shown.status]).toEqual([path, status]);
      expectSaid(shown, shownTo(LISTED));
      for (const origin of [{ origin: OTHER }, {}]) expectSaid(await from(origin), {});
    }
    upstream.next('getApiKey', answer(403, { detail: 'no' }));
    expectSaid(await ask('getApiKey', { headers: { origin: LISTED } }), shownTo(LISTED));
  },
  { env: ORIGINS },
);

everywhere(
  SHOWN,
  async ({ ask }) => {
    const order = { key: 'once', headers: { origin: NATIVE } };
    await ask('purchasePlan', order);
    const again = await ask('purchasePlan', order);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expectSaid(again, shownTo(NATIVE));
  },
  { env: ORIGINS },
);

const SESSIONS = { SESSIONS: 'true', SECRETS: 'for-development-only-and-known-to-all' };

test(says('credentials only with `SESSIONS`'), async () => {
  const withCookies = { ...shownTo(LISTED), 'access-control-allow-credentials': 'true' };
  const { ask } = openGateway({ ...ORIGINS, ...SESSIONS });
  expectSaid(await ask('getSubscription', { headers: { origin: LISTED } }), withCookies);
  expectSaid(await ask('getSubscription', { headers: { origin: OTHER } }), {});
});

const preflight = ({ call }: Pick<Asked, 'call'>, path: string, origin: string, asked = 'GET') =>
  call(path, {
    method: 'OPTIONS',
    token: null,
    headers: {
      origin,
      'access-control-request-method': asked,
      'access-control-request-headers': 'authorization,x-evil',
    },
  });

const PATHS = [PATH.slice(0, -1), `${PATH}?page=2`, OVERVIEW, '/bff/v1/batch', '/docs', '/livez', '/nothing'];

everywhere(
  says('A preflight is 204 before authentication and limits, for two hours;'),
  async (stage) => {
    for (const path of PATHS) {
      const got = await preflight(stage, path, LISTED);
      expect([got.status, got.text, got.headers.has('ratelimit')]).toEqual([204, '', false]);
      expectSaid(got, { ...shownTo(LISTED), ...PREFLIGHT });
    }
    expect(stage.upstream.callsOf('')).toEqual([]);
  },
  { env: ORIGINS },
);

everywhere(
  says('from another origin 204 without any of these headers.'),
  async (stage) => {
    for (const path of PATHS) {
      const got = await preflight(stage, path, OTHER);
      expect(got.status).toBe(204);
      expectSaid(got, {});
    }
  },
  { env: ORIGINS },
);

const listed = openGateway(ORIGINS);

test(`${says('from another origin 204 without any of these headers')}, however close it looks`, async () => {
  const near = [
    'http://app.example',
    `${LISTED}:8443`,
    `${LISTED}.evil.example`,
    'https://x.app.example',
    `${LISTED}/`,
  ];
  for (const origin of [...near, 'https://app.exampl', LISTED.toUpperCase(), `${LISTED}, ${LISTED}`, 'null', '*', '']) {
    for (const path of [PATH, '/nothing']) expectSaid(await preflight(listed, path, origin), {});
    expectSaid(await listed.call('/nothing', { headers: { origin } }), {});
  }
});

test(`${says('A preflight is 204 before authentication and limits')}, whatever it asks for, and has its line`, async () => {
  const gateway = openGateway({ ...ORIGINS, RATE_LIMIT_PER_MINUTE: '1' });
  for (const asked of ['PUT', 'get', ''])
    expectSaid(await preflight(gateway, PATH, LISTED, asked), { ...shownTo(LISTED), ...PREFLIGHT });
  expect((await gateway.ask('getSubscription')).headers.get('ratelimit')).toContain('r=0');
  const preflights = gateway.lines.slice(0, 3).map(({ method, status }) => `${method} ${status}`);
  expect(preflights).toEqual(Array(3).fill('OPTIONS 204'));
  expect(gateway.lines[0]).not.toHaveProperty('operation');
});

describe(says('**CORS** for `ALLOWED_ORIGINS`'), () => {
  test.each([OTHER, 'null', NATIVE])('with all of them allowed: %s', async (origin) => {
    const gateway = openGateway({ ALLOWED_ORIGINS: '*' });
    expectSaid(await gateway.ask('getSubscription', { headers: { origin } }), shownTo('*'));
    expectSaid(await preflight(gateway, PATH, origin), { ...shownTo('*'), ...PREFLIGHT });
    expectSaid(await gateway.ask('getSubscription'), {});
  });

  test('without any nothing is said, and a preflight is an OPTIONS like any other', async () => {
    const gateway = openGateway();
    const read = await gateway.ask('getSubscription', { headers: { origin: LISTED } });
    expect([read.status, saidOf(read), read.headers.get('vary')]).toEqual([200, {}, 'Authorization']);
    for (const path of [PATH, OVERVIEW, '/bff/v1/batch', '/docs']) {
      const got = await preflight(gateway, path, LISTED);
      expect([got.status, saidOf(got)]).toEqual([405, {}]);
      expect(got.headers.get('allow')).toMatch(/GET, HEAD|POST/);
    }
    expect((await preflight(gateway, '/nothing', LISTED)).status).toBe(404);
  });
});
