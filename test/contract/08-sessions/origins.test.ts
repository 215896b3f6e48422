import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { exampleRequest } from '../../support/examples.ts';
import { type Answer, type Asked, type Asking, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { answer } from '../../support/upstream.ts';
import {
  browserOf,
  CLEARED,
  cookiesOf,
  env,
  expectOver,
  LISTED,
  NAME,
  OVERVIEW,
  SESSION,
  WARM,
  everywhere,
} from './browser.ts';

const FOREIGN = 'https://evil.example';
const PUBLIC = 'https://portico.example';

type Passes = 'all' | 'reads' | 'none';
/** What passes from a page of which origin. */
type Row = Readonly<Record<'absent' | 'own' | 'listed' | 'foreign' | 'null', Passes>>;

const LISTED_ONLY: Row = { absent: 'none', own: 'none', listed: 'all', foreign: 'none', null: 'none' };

/** By `Sec-Fetch-Site`, as the contract says it. */
const TABLE = {
  'same-origin': { absent: 'all', own: 'all', listed: 'all', foreign: 'all', null: 'none' },
  'same-site': LISTED_ONLY,
  'cross-site': LISTED_ONLY,
  none: { absent: 'reads', own: 'reads', listed: 'reads', foreign: 'reads', null: 'none' },
  absent: { absent: 'reads', own: 'all', listed: 'all', foreign: 'none', null: 'none' },
  'Same-Origin': { absent: 'none', own: 'none', listed: 'none', foreign: 'none', null: 'none' },
  '': { absent: 'none', own: 'none', listed: 'none', foreign: 'none', null: 'none' },
} as const satisfies Record<string, Row>;
type Site = keyof typeof TABLE;
type Page = keyof Row;

const headersOf = (site: Site, origin: string | undefined) => ({
  host: 'localhost',
  ...(site !== 'absent' && { 'sec-fetch-site': site }),
  ...(origin !== undefined && { origin }),
});

const BY_COOKIE = ['getApiKey', 'createApiKey', 'updateReferralConfig', 'deletePaymentMethod'] as const;

function expectRejected(refused: Answer): void {
  expect([refused.status, refused.code, cookiesOf(refused)]).toEqual([403, 'origin_rejected', []]);
}

const ORIGINS: Readonly<Record<Page, readonly (string | undefined)[]>> = {
  absent: [undefined],
  own: ['http://localhost', 'https://localhost'],
  listed: [LISTED],
  foreign: [FOREIGN, PUBLIC],
  null: ['null'],
};

/** What a site may do by cookie, from every origin; what is refused costs the upstream nothing. */
const bySite =
  (...sites: Site[]) =>
  async (stage: Asked, { signIn } = browserOf(stage), origins = ORIGINS) => {
    const cookie = await signIn();
    for (const site of sites)
      for (const [page, passes] of Object.entries(TABLE[site]) as [Page, Passes][])
        for (const origin of origins[page])
          for (const id of BY_COOKIE) {
            const before = stage.upstream.callsTo(id).length;
            const headers = { cookie, ...headersOf(site, origin) };
            const got = await stage.call(exampleRequest(id).path, { token: null, ...exampleRequest(id), headers });
            const isGood = passes === 'all' || (passes === 'reads' && id === 'getApiKey');
            expect([site, origin, id, got.status]).toEqual([site, origin, id, isGood ? expect.closeTo(200, -1) : 403]);
            if (!isGood) expectRejected(got);
            expect(stage.upstream.callsTo(id)).toHaveLength(before + (isGood ? 1 : 0));
          }
  };

everywhere(says('the origin (`Sec-Fetch-Site: same-origin` passes;'), bySite('same-origin'));
everywhere(
  says('`same-site` and `cross-site` only with an `Origin` in `ALLOWED_ORIGINS`'),
  bySite('same-site', 'cross-site'),
);
everywhere(says('`none` for GET and HEAD; without that header'), bySite('none', 'Same-Origin'));
everywhere(
  says('without that header an `Origin` that is ours or listed, or none for GET and HEAD; `null` never'),
  bySite('absent'),
);

const near = (origin: string) =>
  ['.evil.example', '/', '@evil.example', '#', `, ${origin}`]
    .map((more) => origin + more)
    .concat(origin.replace('://', '://sub.'), `${FOREIGN}, ${origin}`);

describe(says("ours is `PUBLIC_URL`, or the request's host"), () => {
  const hosted = openGateway(env);
  const known = openGateway({ ...env, PUBLIC_URL: PUBLIC });

  test.each(Object.keys(TABLE) as Site[])('from %j', async (site) => {
    const foreign = [FOREIGN, PUBLIC, 'http://localhost:8080', ...near('http://localhost')];
    await bySite(site)({ ...hosted, me: secret() }, undefined, { ...ORIGINS, foreign });
    const others = ['http://localhost', PUBLIC.replace('https', 'http'), `${PUBLIC}:443`, ...near(PUBLIC)];
    await bySite(site)({ ...known, me: secret() }, undefined, { ...ORIGINS, own: [PUBLIC], foreign: others });
  });

  test('overviews and batches are reads and writes too', async () => {
    const cookie = await browserOf(hosted).signIn();
    const batch = { body: { requests: [{ id: 'a', path: '/api/v2/subscription/' }] } };
    const all: (readonly [string, Asking?])[] = [[OVERVIEW], [SESSION], ['/bff/v1/batch', batch]];
    for (const [path, asking] of all)
      for (const origin of [FOREIGN, LISTED, undefined]) {
        const headers = { cookie, ...headersOf('absent', origin) };
        const isGood = origin === LISTED || (origin === undefined && path !== '/bff/v1/batch');
        const { status } = await hosted.call(path, { token: null, ...asking, headers });
        expect([path, origin, status]).toEqual([path, origin, isGood ? 200 : 403]);
      }
  });
});

everywhere(
  says("or the request's host), else 403"),
  async (stage) => {
    const cookie = await browserOf(stage).signIn();
    const at = async (host: string, origin: string) => {
      const headers = { cookie, host, origin };
      return (await stage.call('/api/v2/apikey/', { token: null, ...exampleRequest('createApiKey'), headers })).status;
    };
    expect(await at('App.Example', 'https://app2.example')).toBe(403);
    expect(await at('App.Example:8443', 'https://app.example:8443')).toBe(200);
    expect(await at('other.example', 'http://other.example')).toBe(200);
    expect(await at('other.example', 'https://other.example:8443')).toBe(403);
    expect(await at('other.example:8443', 'https://other.example')).toBe(403);
    expect(await at('other.example:443', 'https://other.example')).toBe(200);
    expect(await at('other.example:443', 'http://other.example')).toBe(403);
  },
  { not: ['process', 'fleet'] }, // the host of a request is that of a socket
);

everywhere(
  says('The POST and DELETE calls above are checked for their origin with or without a cookie.'),
  async (stage) => {
    const cookie = await browserOf(stage).signIn();
    const login = exampleRequest('loginSocial').body;
    const calls: (readonly [string, Asking])[] = [
      [SESSION, { body: { token: secret() } }],
      ...['login', 'register'].map((way) => [`${SESSION}/${way}`, { body: login }] as const),
      [SESSION, { method: 'DELETE' }],
    ];
    const before = stage.upstream.calls.length;
    for (const [path, asking] of calls)
      for (const more of [{}, { cookie }, { cookie: `${NAME}=bad` }])
        for (const token of [null, stage.me])
          for (const origin of [FOREIGN, undefined, 'null'])
            expectRejected(
              await stage.call(path, { ...asking, token, headers: { ...more, ...headersOf('absent', origin) } }),
            );
    for (const [path, asking] of calls)
      expectRejected(await stage.call(path, { ...asking, token: null, headers: headersOf('none', LISTED) }));
    expect(stage.upstream.calls).toHaveLength(before);
    expect((await browserOf(stage).look(cookie)).status).toBe(200);
    for (const headers of [headersOf('cross-site', LISTED), headersOf('same-origin', undefined)]) {
      const out = await stage.call(SESSION, { method: 'DELETE', token: null, headers });
      expect([out.status, cookiesOf(out)]).toEqual([204, [CLEARED]]);
    }
    const looked = await stage.call(SESSION, { token: null, headers: headersOf('cross-site', FOREIGN) });
    expect(looked.text).toBe('{"authenticated":false}');
  },
);

everywhere(says('Checked in this order: a preflight reads no cookie'), async (stage) => {
  const good = await browserOf(stage).signIn();
  const asked = { 'access-control-request-method': 'POST', 'sec-fetch-site': 'cross-site' };
  for (const path of ['/api/v2/apikey/', SESSION, `${SESSION}/login`, OVERVIEW])
    for (const cookie of [good, `${NAME}=bad`, `${good}; ${good}`])
      for (const origin of [LISTED, FOREIGN, 'null']) {
        const headers = { ...asked, cookie, origin };
        const got = await stage.call(path, { method: 'OPTIONS', token: null, headers });
        expect([got.status, cookiesOf(got)]).toEqual([204, []]);
        const allowed = got.headers.get('access-control-allow-credentials');
        expect(allowed).toBe(origin === LISTED ? 'true' : null);
      }
  expect(stage.upstream.callsOf(stage.me)).toHaveLength(WARM.length);
});

everywhere(says('a body is JSON; seal, expiry'), async (stage, { by, signIn }) => {
  const good = await signIn();
  const before = stage.upstream.calls.length;
  const ask = (cookie: string, headers: Record<string, string>) =>
    by(cookie, '/api/v2/apikey/', { body: 'x', headers });
  const [foreign, text] = [{ 'sec-fetch-site': 'cross-site', origin: FOREIGN }, { 'content-type': 'text/plain' }];
  expectOver(await ask(`${good}; ${good}`, { ...foreign, ...text }));
  expectRejected(await ask(`${NAME}=bad`, { ...foreign, ...text }));
  expect((await ask(`${NAME}=bad`, text)).code).toBe('unsupported_media_type');
  expectOver(await ask(`${NAME}=bad`, {}));
  expect((await ask(good, {})).code).toBe('malformed_json');
  expect(stage.upstream.calls).toHaveLength(before);
});

const TYPES = ['text/plain', 'multipart/form-data; boundary=x', 'application/json; charset=latin1', 'text/json', ''];

test(`${says('else 403; a body is JSON')}: one that is none is 415, whatever the seal`, async () => {
  const gateway = openGateway(env);
  const { by, signIn } = browserOf(gateway);
  const paths = (['createApiKey', 'refreshSubuser'] as const).map((id) => exampleRequest(id).path);
  for (const cookie of [await signIn(), `${NAME}=bad`])
    for (const path of [...paths, SESSION, `${SESSION}/login`])
      for (const headers of [...TYPES.map((type) => ({ 'content-type': type })), { 'content-encoding': 'gzip' }])
        expect((await by(cookie, path, { body: 'x', headers })).status).toBe(415);
  expect(gateway.upstream.callsOf(gateway.me)).toHaveLength(WARM.length);
});

everywhere(says('A 401 never clears a cookie.'), async (stage, { askBy, look, signIn, signOut }) => {
  const old = await signIn();
  const held = stage.upstream.hold('createApiKey');
  const late = askBy(old, 'createApiKey');
  await held.call;
  const cookie = await signIn(stage.me, old); // the browser has this one now
  held.release(answer(401, { detail: 'Invalid token.' }));
  for (const got of [await late, await look(old), await signOut(old, `${SESSION}?everywhere=true`)]) expectOver(got);
  expect((await look(cookie)).json).toMatchObject({ authenticated: true });
});
