import { describe, expect, test } from 'vitest';
import { parseConfig } from '../../src/config.ts';
import { EXPOSED, LISTED, saidOf, varyOf } from '../http/cors.ts';
import { exampleRequest } from '../support/examples.ts';
import type { CallOptions, TextAnswer } from '../support/http.ts';
import { secret } from '../support/secrets.ts';
import { bodiedIds, isSocial } from '../support/table.ts';
import { METHODS, type Origin, ORIGINS, passes, type Site, SITES } from './origin-table.ts';
import {
  byCookie,
  CLEARED,
  expectOver,
  expectRefused,
  isCallOf,
  NAME,
  openSessions,
  overviewPaths,
  SESSION,
  type SessionWorld,
  WARM_CALLS,
} from './helpers.ts';
import { accountTable } from '../support/account-api.ts';

const FOREIGN = 'https://evil.example';
const PUBLIC = 'https://portico.example';
const OTHER_LISTED = 'http://localhost:5173';

const REQUESTS: Readonly<Record<(typeof METHODS)[number], CallOptions>> = {
  GET: exampleRequest('getApiKey'),
  HEAD: { ...exampleRequest('getApiKey'), method: 'HEAD' },
  POST: exampleRequest('createApiKey'),
  PATCH: exampleRequest('updateReferralConfig'),
  DELETE: exampleRequest('deletePaymentMethod'),
};

interface Setting {
  readonly env: Readonly<Record<string, string>>;
  /** Origins that are our own. */
  readonly own: (world: SessionWorld) => readonly string[];
  readonly foreign: (world: SessionWorld) => readonly string[];
}

const hostOf = ({ gateway }: SessionWorld) => `127.0.0.1:${gateway.port}`;

/** Where a page is foreign though it looks much like ours. */
const nearly = (origin: string) => [
  `${origin}.evil.example`,
  `${origin}/`,
  `${origin}@evil.example`,
  origin.replace('://', '://sub.'),
  `${FOREIGN}, ${origin}`,
  `${origin}, ${origin}`,
  `${origin}#`,
];

const SETTINGS: Readonly<Record<string, Setting>> = {
  'without PUBLIC_URL': {
    env: {},
    own: (world) => [`http://${hostOf(world)}`, `https://${hostOf(world)}`],
    foreign: (world) => [FOREIGN, PUBLIC, `http://127.0.0.1`, ...nearly(`http://${hostOf(world)}`)],
  },
  'with PUBLIC_URL': {
    env: { PUBLIC_URL: PUBLIC },
    own: () => [PUBLIC],
    foreign: (world) => [
      FOREIGN,
      `http://${hostOf(world)}`,
      'http://portico.example',
      `${PUBLIC}:443`,
      ...nearly(PUBLIC),
    ],
  },
};

const withOrigins = ({ env }: Setting) => openSessions({ ...env, ALLOWED_ORIGINS: `${LISTED},${OTHER_LISTED}` });

function valuesOf(origin: Origin, world: SessionWorld, { own, foreign }: Setting): readonly (string | undefined)[] {
  if (origin === 'absent') return [undefined];
  if (origin === 'own') return own(world);
  if (origin === 'listed') return [LISTED];
  if (origin === 'other listed') return [OTHER_LISTED];
  return origin === 'null' ? ['null'] : foreign(world);
}

const headersOf = (site: Site, origin: string | undefined) => ({
  ...(site !== undefined && { 'Sec-Fetch-Site': site }),
  ...(origin !== undefined && { Origin: origin }),
});

interface Combination {
  readonly site: Site;
  readonly origin: Origin;
  readonly value: string | undefined;
}

function combinations(world: SessionWorld, setting: Setting): readonly Combination[] {
  return SITES.flatMap((site) =>
    ORIGINS.filter((origin) => site !== 'anything' || !origin.includes('listed')).flatMap((origin) =>
      valuesOf(origin, world, setting).map((value) => ({ site, origin, value })),
    ),
  );
}

const named = ({ site, value }: Combination) => `${site ?? 'no site'}, ${value ?? 'no origin'}`;

/** What passes of all combinations, each asked for with `ask`; the others are whole problems. */
async function passing(
  all: readonly Combination[],
  ask: (headers: Record<string, string>, one: Combination) => Promise<TextAnswer>,
  isHead = false,
): Promise<string[]> {
  const passed: string[] = [];
  for (const one of all) {
    const answer = await ask(headersOf(one.site, one.value), one);
    if (answer.status < 300) passed.push(named(one));
    else if (isHead) expect([answer.status, answer.cookies]).toEqual([403, []]);
    else expectRejected(answer);
  }
  return passed;
}

function expectRejected(answer: TextAnswer): void {
  const headers = Object.entries(answer.headers).filter(([name]) => !/^(access-control|timing-allow)-/.test(name));
  expectRefused(
    { ...answer, headers: Object.fromEntries(headers) },
    { status: 403, code: 'origin_rejected', isCleared: false },
  );
}

describe.each(Object.entries(SETTINGS))('a request by cookie, %s,', (_, setting) => {
  test.for(METHODS)(
    'that is a %s passes from the origins of the contract, and others cost the upstream nothing',
    async (method) => {
      const world = await withOrigins(setting);
      const cookie = await world.signIn();
      const all = combinations(world, setting);
      const wanted = all.filter(({ site, origin }) => passes(method, site, origin));
      const calls = await world.sent(async () => {
        const ask = (headers: Record<string, string>) =>
          world.call({ ...REQUESTS[method], headers: { Cookie: cookie, ...headers } });
        expect(await passing(all, ask, method === 'HEAD')).toEqual(wanted.map(named));
      });
      expect(calls).toHaveLength(wanted.length);
    },
  );

  test('that is an overview, a batch or a look at the session passes from the same', async () => {
    const world = await withOrigins(setting);
    const cookie = await world.signIn();
    const all = combinations(world, setting);
    const wanted = (method: string) => all.filter(({ site, origin }) => passes(method, site, origin)).map(named);
    const requests: readonly [string, CallOptions][] = [
      ...[...overviewPaths, SESSION].map((path) => ['GET', { path }] as [string, CallOptions]),
      ['POST', { path: '/bff/v1/batch', body: { requests: [{ id: 'a', path: '/api/v2/subscription/' }] } }],
    ];
    for (const [method, request] of requests) {
      const ask = (headers: Record<string, string>) =>
        world.call({ ...request, headers: { Cookie: cookie, ...headers } });
      expect(await passing(all, ask)).toEqual(wanted(method));
    }
  });
});

describe.each(Object.entries(SETTINGS))('without a cookie, %s,', (_, setting) => {
  const open = () => withOrigins(setting);

  test('a session begins from the origins of the contract, and others cost the upstream nothing', async () => {
    const world = await open();
    const all = combinations(world, setting);
    const wanted = all.filter(({ site, origin }) => passes('POST', site, origin));
    const ask = async (headers: Record<string, string>) => {
      const token = secret();
      const answer = await world.call({ path: SESSION, body: { token }, headers });
      if (answer.status === 201) await world.upstream.waitForCalls(WARM_CALLS, isCallOf(token));
      return answer;
    };
    const calls = await world.sent(async () => {
      expect(await passing(all, ask)).toEqual(wanted.map(named));
    });
    expect(calls).toHaveLength(wanted.length * WARM_CALLS);
  });

  test.for(['login', 'register'])('the same goes for %s', async (way) => {
    const world = await open();
    const operation = way === 'login' ? 'loginSocial' : 'registerSocial';
    const { path, body } = exampleRequest(operation);
    const all = combinations(world, setting);
    const wanted = all.filter(({ site, origin }) => passes('POST', site, origin));
    const ask = (headers: Record<string, string>) => world.call({ path: `${SESSION}/${way}`, body, headers });
    expect(await passing(all, ask)).toEqual(wanted.map(named));
    expect(world.upstream.callsTo(`POST ${path}`)).toHaveLength(wanted.length);
  });

  test('a sign-out is one from the origins of the contract', async () => {
    const world = await open();
    const all = combinations(world, setting);
    const wanted = all.filter(({ site, origin }) => passes('DELETE', site, origin));
    const ask = (headers: Record<string, string>) => world.call({ method: 'DELETE', path: SESSION, headers });
    expect(await passing(all, ask)).toEqual(wanted.map(named));
  });

  test('and with `Authorization` session calls are checked for it too', async () => {
    const world = await open();
    const headers = { Origin: FOREIGN };
    for (const request of [
      { path: SESSION, body: { token: secret() } },
      { path: SESSION, method: 'DELETE' },
      { path: `${SESSION}/login`, body: exampleRequest('loginSocial').body },
    ])
      expectRejected(await world.call({ ...request, token: world.token, headers }));
  });

  test('a look at the session says `false` to every origin', async () => {
    const world = await open();
    for (const { site, value } of combinations(world, setting))
      expect((await world.call({ path: SESSION, headers: headersOf(site, value) })).json).toEqual({
        authenticated: false,
      });
  });
});

test('the host of a request is compared without regard to case, and another host is foreign', async () => {
  const { raw, signIn } = await openSessions();
  const cookie = await signIn();
  const status = async (host: string, origin: string) =>
    (
      await raw(
        `POST /api/v2/apikey/ HTTP/1.1\r\nHost: ${host}\r\nOrigin: ${origin}\r\nCookie: ${cookie}\r\n` +
          'Content-Type: application/json\r\nContent-Length: 13\r\n\r\n{"label":"x"}',
      )
    ).status;
  expect(await status('App.Example', 'https://app.example')).toBeLessThan(300);
  expect(await status('app.example:8443', 'https://app.example:8443')).toBeLessThan(300);
  expect(await status('app.example', 'https://app.example:8443')).toBe(403);
  expect(await status('app.example:8443', 'https://app.example')).toBe(403);
  expect(await status('evil.example', 'https://app.example')).toBe(403);
});

describe('the order of the checks', () => {
  const TYPES = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json; charset=latin1',
    'text/json',
    '',
  ];
  const bodied = [
    ...bodiedIds.filter((id) => !isSocial(id)),
    'updateReferralConfig',
    'refreshSubuser',
    'deletePaymentMethod',
  ] as const;

  test.for(bodied)('a body of %s that is no JSON is 415 before the seal is looked at', async (id) => {
    const { by, signIn, sent } = await openSessions();
    const good = await signIn();
    const calls = await sent(async () => {
      for (const cookie of [good, `${NAME}=bad`])
        for (const type of TYPES) {
          const headers = { 'content-type': type };
          const answer = await by(cookie, { ...exampleRequest(id), body: '{"label":"x"}', headers });
          expectRefused(answer, { status: 415, code: 'unsupported_media_type', isCleared: false });
        }
    });
    expect(calls).toEqual([]);
  });

  test('a body that is compressed is 415', async () => {
    const { askBy, signIn } = await openSessions();
    const answer = await askBy(await signIn(), 'createApiKey', { headers: { 'content-encoding': 'gzip' } });
    expectRefused(answer, { status: 415, code: 'unsupported_media_type', isCleared: false });
  });

  test('two cookies come before the origin, the origin before the body, the body before the seal', async () => {
    const { call, signIn } = await openSessions();
    const good = await signIn();
    const ask = (cookie: string, headers: Record<string, string>) =>
      call({ ...REQUESTS.POST, body: 'x', headers: { Cookie: cookie, ...headers } });
    const bad = { Origin: FOREIGN, 'content-type': 'text/plain' };
    expectOver(await ask(`${good}; ${good}`, bad));
    expectRejected(await ask(`${NAME}=bad`, bad));
    const answer = await ask(`${NAME}=bad`, { 'Sec-Fetch-Site': 'same-origin', 'content-type': 'text/plain' });
    expect(answer.status).toBe(415);
    expectOver(await ask(`${NAME}=bad`, { 'Sec-Fetch-Site': 'same-origin' }));
  });
});

describe('a preflight', () => {
  const preflight = { 'access-control-request-method': 'POST', 'Sec-Fetch-Site': 'cross-site' };

  test('reads no cookie, and sets none', async () => {
    const { call, signIn, sent } = await openSessions({ ALLOWED_ORIGINS: LISTED });
    const good = await signIn();
    const calls = await sent(async () => {
      for (const path of ['/api/v2/apikey/', SESSION, `${SESSION}/login`, ...overviewPaths])
        for (const Cookie of [good, `${NAME}=bad`, `${good}; ${good}`])
          for (const Origin of [LISTED, FOREIGN, 'null']) {
            const answer = await call({ method: 'OPTIONS', path, headers: { ...preflight, Cookie, Origin } });
            expect([answer.status, answer.cookies]).toEqual([204, []]);
            expect(answer.headers['access-control-allow-credentials']).toBe(Origin === LISTED ? 'true' : undefined);
          }
    });
    expect(calls).toEqual([]);
  });

  test('of the session is told its methods and headers', async () => {
    const { call } = await openSessions({ ALLOWED_ORIGINS: LISTED });
    const headers = { ...preflight, Origin: LISTED };
    expect(saidOf(await call({ method: 'OPTIONS', path: SESSION, headers }))).toMatchObject({
      'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE',
      'access-control-allow-headers': expect.stringContaining('Content-Type, Idempotency-Key'),
    });
  });
});

const said = (origin: string) => ({
  'access-control-allow-origin': origin,
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers': EXPOSED,
  'timing-allow-origin': origin,
});

describe('`Access-Control-Allow-Credentials`', () => {
  const REQUEST: readonly CallOptions[] = [
    { path: '/api/v2/subscription/' },
    { path: '/api/v2/subscription/', headers: { 'if-none-match': '*' } },
    { path: overviewPaths[0]! },
    { path: SESSION },
    { path: '/nothing' },
    { path: '/api/v2/apikey%2f1/' },
    { path: '/api/v2/subscription/', method: 'DELETE' },
    { path: '/api/v2/apikey/', body: 'x'.repeat(70_000) },
    { path: '/api/v2/subscription/', headers: { cookie: `${NAME}=bad` } },
  ];

  test('is on every answer to an origin that is listed, and on none to another', async () => {
    const world = await openSessions({ ALLOWED_ORIGINS: LISTED });
    const cookie = await world.signIn();
    for (const request of REQUEST)
      for (const [origin, expected] of [
        [LISTED, said(LISTED)],
        [FOREIGN, {}],
        ['null', {}],
        [world.gateway.url, {}],
        [LISTED.toUpperCase(), {}],
      ] as const) {
        const answer = await world.by(cookie, { ...request, headers: { ...request.headers, origin } });
        expect(saidOf(answer)).toEqual(expected);
        expect(varyOf(answer)).toContain('Origin');
      }
  });

  test('is on none without sessions, nor without origins', async () => {
    for (const env of [
      { SESSIONS: 'false', ALLOWED_ORIGINS: LISTED },
      { SESSIONS: 'false', ALLOWED_ORIGINS: '*' },
      {},
    ]) {
      const { call, token } = await openSessions(env);
      for (const request of REQUEST) {
        const { headers } = await call({ token, ...request, headers: { ...request.headers, origin: LISTED } });
        expect(headers).not.toHaveProperty('access-control-allow-credentials');
      }
    }
  });
});

const problems = (env: Record<string, string>) => {
  const parsed = parseConfig({ UPSTREAM_BASE_URL: 'http://upstream.test', ...env }, accountTable);
  return 'problems' in parsed ? parsed.problems : [];
};

describe('the start', () => {
  const SECRETS = secret('of-the-gateway-itself');

  test('fails with sessions for every origin', () => {
    expect(problems({ SESSIONS: 'true', SECRETS, ALLOWED_ORIGINS: '*' })).not.toEqual([]);
    expect(problems({ SESSIONS: 'true', SECRETS, ALLOWED_ORIGINS: `${LISTED},*` })).not.toEqual([]);
    expect(problems({ SESSIONS: 'true', SECRETS, ALLOWED_ORIGINS: 'null' })).not.toEqual([]);
    expect(problems({ SESSIONS: 'false', SECRETS, ALLOWED_ORIGINS: '*' })).toEqual([]);
    expect(problems({ SESSIONS: 'true', SECRETS, ALLOWED_ORIGINS: LISTED })).toEqual([]);
  });

  test('fails with sessions without secrets, or with short ones', () => {
    expect(JSON.stringify(problems({ SESSIONS: 'true' }))).toMatch(/SECRETS/);
    for (const secrets of ['', 'x'.repeat(31), `${SECRETS},short`])
      expect(problems({ SESSIONS: 'true', SECRETS: secrets })).not.toEqual([]);
  });

  test('fails with anything that is neither true nor false', () => {
    for (const SESSIONS of ['yes', 'on', '2', 'TRUE ']) expect(problems({ SESSIONS, SECRETS })).not.toEqual([]);
  });
});

test('a refused origin keeps its session', async () => {
  const { call, by, signIn } = await openSessions();
  const cookie = await signIn();
  const out = await call({ method: 'DELETE', path: SESSION, headers: { Cookie: cookie, Origin: FOREIGN } });
  expectRejected(out);
  expect((await by(cookie, { path: SESSION })).json).toMatchObject({ authenticated: true });
  expect((await by(cookie, { method: 'DELETE', path: SESSION })).cookies).toEqual([CLEARED]);
  expectOver(await by(cookie, { path: SESSION }));
  expectOver(await call(byCookie(cookie, { path: SESSION })));
});
