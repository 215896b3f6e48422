import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import {
  expectOver,
  isCallOf,
  NAME,
  openSessions,
  overviewPaths,
  SESSION,
  type SessionWorld,
  WARM_CALLS,
} from '../sessions/helpers.ts';
import { LISTED } from '../http/cors.ts';
import { exampleRequest } from '../support/examples.ts';
import { callOf, tokenOf } from '../support/marked.ts';
import { json } from '../support/scripted-upstream.ts';
import { leaksIn, secret } from '../support/secrets.ts';
import { leave, openPage, run, textOf, withChromium } from './browser.ts';
import { type Exchange, type Got, openFront, openSite, PAGE } from './sites.ts';

const openContext = withChromium();

const NOTHING = {
  cookie: '',
  cookieStore: [],
  localStorage: {},
  sessionStorage: {},
  databases: [],
  caches: [],
  workers: 0,
  name: '',
  state: null,
};

const AUTHENTICATED = expect.stringContaining('"authenticated":true') as string;
const WITH_COOKIES = { credentials: 'include' } as const;
/** Nothing reads it in the background. */
const READ = exampleRequest('getApiKey').path;
const { path: PATCHED, ...PATCH } = exampleRequest('updateReferralConfig');
const { path: PURCHASE, body: PURCHASE_BODY } = exampleRequest('purchasePlan');
const LOGIN = `${SESSION}/login`;

/** A browser, and the gateway behind a site whose page it has open. */
async function open(allowed = LISTED) {
  const browser = await openContext();
  const world = await openSessions({ ALLOWED_ORIGINS: allowed });
  const front = await openFront(world.gateway.url);
  const tab = await openPage(browser, front.origin + PAGE);
  const at = (path: string) => front.origin + path;
  return {
    ...world,
    browser,
    front,
    tab,
    at,
    /** Of the gateway, from that page or the one that is open from the start. */
    request: (path: string, options = {}, from = tab) => run<Got>(from, 'ask', at(path), options),
    /** Resolves with what was asked of the gateway meanwhile, and of the upstream. */
    watched: async (act: () => Promise<unknown>) => {
      const before = front.exchanges.length;
      const calls = await world.sent(act);
      return { calls, exchanges: front.exchanges.slice(before) };
    },
  };
}

type Opened = Awaited<ReturnType<typeof open>>;

const keyBody = ({ token }: Pick<SessionWorld, 'token'>) => ({ body: JSON.stringify({ token }) });

/** Resolves once the upstream was asked for all that is read in the background. */
async function begin(world: Opened): Promise<Got> {
  const answer = await world.request(SESSION, keyBody(world));
  await world.upstream.waitForCalls(WARM_CALLS, isCallOf(world.token));
  return answer;
}

async function expectSignedOut({ browser, request }: Opened, from: Page) {
  expect(await browser.cookies()).toEqual([]);
  expect(await request(SESSION, {}, from)).toMatchObject({ status: 200, text: '{"authenticated":false}' });
  for (const path of [READ, ...overviewPaths]) expect((await request(path, {}, from)).status).toBe(401);
  expect((await request(PATCHED, { ...PATCH }, from)).status).toBe(401);
}

test('a page signs in with a key, reads, writes and signs out, and nothing of the key stays or comes back', async () => {
  const world = await open();
  const { browser, request, front, tab, upstream, token, by } = world;
  const begun = await begin(world);
  expect(begun).toMatchObject({ status: 201, text: AUTHENTICATED });
  const state = await request(SESSION);
  expect([state.status, state.text]).toEqual([200, begun.text]);
  const got = [begun, state];
  for (const path of [READ, ...overviewPaths]) got.push(await request(path));
  got.push(await request(PATCHED, PATCH));
  expect(got.slice(2).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(upstream.callsTo(callOf('updateReferralConfig'))).toHaveLength(1);
  expect(new Set(upstream.calls.map(tokenOf))).toEqual(new Set([token]));
  expect(front.exchanges.filter(({ headers }) => 'authorization' in headers)).toEqual([]);

  expect(await run(tab, 'kept')).toEqual(NOTHING);
  expect(got.flatMap(({ headers }) => Object.keys(headers)).filter((name) => name.includes('cookie'))).toEqual([]);
  expect(leaksIn(JSON.stringify(got))).toEqual([]);
  expect(leaksIn(JSON.stringify(front.exchanges.map(({ answered, text }) => [answered, text])))).toEqual([]);
  const [cookie, ...others] = await browser.cookies();
  expect(others).toEqual([]);
  expect(cookie).toMatchObject({
    name: NAME,
    domain: 'localhost',
    path: '/',
    httpOnly: true,
    secure: true,
    sameSite: 'Strict',
  });
  expect(cookie!.expires).toBeGreaterThan(0);

  await request(PAGE);
  expect(front.visits()).toBe(1); // the browser has a copy
  expect(await request(SESSION, { method: 'DELETE' })).toMatchObject({ status: 204, text: '' });
  expect(front.exchanges.at(-1)!.answered).toMatchObject({ 'clear-site-data': '"cache"' });
  await request(PAGE);
  expect(front.visits()).toBe(2); // which is gone
  await expectSignedOut(world, tab);
  expect(await run(tab, 'kept')).toEqual(NOTHING);
  expectOver(await by(`${NAME}=${cookie!.value}`, { path: READ }));
});

test('a page that signs in by a social login never has the key', async () => {
  const { browser, request, front, tab, upstream } = await open();
  const token = secret();
  upstream.on(callOf('loginSocial'), json(200, { token }));
  expect(await request(LOGIN, { body: exampleRequest('loginSocial').body })).toMatchObject({
    status: 201,
    text: AUTHENTICATED,
  });
  await upstream.waitForCalls(WARM_CALLS, isCallOf(token));
  expect((await request(READ)).status).toBe(200);
  expect(upstream.callsTo(callOf('getApiKey')).map(tokenOf)).toEqual([token]);
  expect(await run(tab, 'kept')).toEqual(NOTHING);
  expect(leaksIn(JSON.stringify([front.exchanges, await browser.cookies()]))).toEqual([]);
});

test('the session is that of all tabs, and over in all of them', async () => {
  const world = await open();
  const { at, browser, request, tab } = world;
  const begun = await begin(world);
  const other = await openPage(browser, at(PAGE));
  expect((await request(SESSION, {}, other)).text).toBe(begun.text);
  expect((await request(PATCHED, PATCH, other)).status).toBe(200);
  expect((await request(SESSION, { method: 'DELETE' }, other)).status).toBe(204);
  await expectSignedOut(world, tab);
});

test('who types an address or follows a link of the site reads by cookie', async () => {
  const world = await open();
  const { at, browser, tab, upstream } = world;
  await begin(world);
  const typed = await openPage(browser, at(READ));
  expect(await textOf(typed)).toContain('"x_mark"');
  expect(await leave(tab, 'follow', at(SESSION))).toEqual({ url: at(SESSION), text: AUTHENTICATED });
  expect(upstream.callsTo(callOf('getApiKey'))).toHaveLength(1);
});

test('a script sets no cookie of our name, before there is one and after', async () => {
  const world = await open();
  const { browser, request, tab } = world;
  expect(await run(tab, 'plant', NAME, 'planted')).toBe('');
  expect(await browser.cookies()).toEqual([]);
  const begun = await begin(world);
  const cookies = await browser.cookies();
  expect(await run(tab, 'plant', NAME, 'planted')).toBe('');
  expect(await browser.cookies()).toEqual(cookies);
  expect((await request(SESSION)).text).toBe(begun.text);
});

/** JSON as a form can send it: the one `=` is in a text. */
const fieldOf = (body: string) => ({ [`${body.slice(0, -1)},"x":"`]: '"}' });

/** All ways in which a page elsewhere makes a browser send something. Resolves with what the page has of it. */
async function attack({ at, request }: Opened, page: Page, elsewhere: string) {
  const isPlain = { headers: {} };
  const got: Got[] = [];
  for (const mode of ['cors', 'no-cors']) {
    const options = { ...WITH_COOKIES, mode };
    for (const path of [READ, SESSION]) got.push(await request(path, options, page));
    got.push(await request(PURCHASE, { ...options, ...isPlain, body: PURCHASE_BODY }, page));
    for (const path of [SESSION, LOGIN])
      got.push(await request(path, { ...options, ...isPlain, body: '{"token":"x"}' }, page));
  }
  for (const [path, options] of [
    [PURCHASE, { body: PURCHASE_BODY }],
    [SESSION, { body: '{"token":"x"}' }],
    [SESSION, { method: 'DELETE' }],
    [PATCHED, PATCH],
  ] as const)
    got.push(await request(path, { ...WITH_COOKIES, ...options }, page));
  const embedded: unknown[] = [];
  for (const tag of ['img', 'script']) embedded.push(await run(page, 'embed', tag, at(READ)));
  const framed = await run(page, 'frame', at(READ));
  const led: string[] = [];
  const lead = async (name: string, ...args: readonly unknown[]) => {
    const { url, text } = await leave(page, name, ...args);
    led.push(`${url} ${String((JSON.parse(text) as { code: unknown }).code)}`);
    await page.goto(elsewhere + PAGE);
  };
  await lead('follow', at(READ));
  for (const enctype of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data'])
    for (const [path, body] of [
      [PURCHASE, PURCHASE_BODY ?? ''],
      [SESSION, '{"token":"x"}'],
    ] as const)
      await lead('submit', at(path), enctype, fieldOf(body));
  return { got, embedded, framed, led };
}

const PREFLIGHTS = [PURCHASE, SESSION, PATCHED].map((path) => `OPTIONS ${path} 204`);

/** What the browser has sent, each kind once. */
const kindsOf = (exchanges: readonly Exchange[]) =>
  new Set(
    exchanges.map(({ method, path, headers: { cookie }, status }) =>
      [method, path, ...(cookie?.startsWith(`${NAME}=`) ? ['by cookie'] : []), status].join(' '),
    ),
  );

const OF_ANOTHER_SITE = {
  host: '127.0.0.1',
  code: 'unauthenticated',
  kinds: [
    `GET ${READ} 401`,
    `GET ${SESSION} 200`, // says that there is none
    `POST ${PURCHASE} 401`,
    `POST ${SESSION} 403`,
    `POST ${LOGIN} 403`,
    ...PREFLIGHTS,
  ],
} as const;

const ON_ANOTHER_PORT = {
  host: 'localhost',
  code: 'origin_rejected',
  kinds: [
    `GET ${READ} by cookie 403`,
    `GET ${SESSION} by cookie 403`,
    `POST ${PURCHASE} by cookie 403`,
    `POST ${SESSION} by cookie 403`,
    `POST ${LOGIN} by cookie 403`,
    ...PREFLIGHTS,
  ],
} as const;

test.for([
  ['of another site', OF_ANOTHER_SITE],
  ['on another port', ON_ANOTHER_PORT],
] as const)('a page %s gets nothing, changes nothing and costs nothing', async ([, { host, code, kinds }]) => {
  const world = await open();
  const { at, browser, request, sent, watched } = world;
  const { origin } = await openSite(host);
  const begun = await begin(world);
  const cookies = await browser.cookies();
  const page = await openPage(browser, origin + PAGE);
  const { calls, exchanges } = await watched(async () => {
    const { got, embedded, framed, led } = await attack(world, page, origin);
    expect(got.filter(({ blocked }) => blocked !== 'TypeError')).toEqual([]);
    expect(embedded).toEqual(['error', 'error']);
    expect(framed).toEqual({ blocked: 'SecurityError' });
    expect(new Set(led)).toEqual(
      new Set([`${at(READ)} ${code}`, `${at(PURCHASE)} ${code}`, `${at(SESSION)} origin_rejected`]),
    );
  });
  expect(calls).toEqual([]);
  expect(kindsOf(exchanges)).toEqual(new Set(kinds));
  const names = exchanges.flatMap(({ answered }) => Object.keys(answered));
  expect(names.filter((name) => /^(access-control-|set-cookie)/.test(name))).toEqual([]);

  // The session is what it was, and the same requests of a page of ours are worth something.
  expect(await browser.cookies()).toEqual(cookies);
  expect((await request(SESSION)).text).toBe(begun.text);
  const own = await sent(async () => {
    expect((await request(READ)).status).toBe(200);
    expect((await request(PURCHASE, { body: PURCHASE_BODY })).status).toBe(200);
  });
  expect(own).toEqual([callOf('getApiKey'), callOf('purchasePlan')]);
});

test.for(['127.0.0.1', 'localhost'] as const)(
  'a picture of ours that %s leads back to us is not read, though the browser sends the cookie',
  async (host) => {
    const world = await open();
    const { at, tab, watched } = world;
    const { origin } = await openSite(host);
    await begin(world);
    const image = `${origin}/to?${at(READ)}`;
    const { calls, exchanges } = await watched(() => run(tab, 'embed', 'img', image));
    expect(calls).toEqual([]);
    expect(kindsOf(exchanges)).toEqual(new Set([`GET ${READ} by cookie 403`]));
  },
);

test('a page on another port that is listed signs in, reads, writes and signs out', async () => {
  const { origin } = await openSite('localhost');
  const world = await open(origin);
  const { browser, request, upstream, token, watched } = world;
  const page = await openPage(browser, origin + PAGE);
  const ask = (path: string, options = {}) => request(path, { ...WITH_COOKIES, ...options }, page);
  const { exchanges } = await watched(async () => {
    expect(await ask(SESSION, keyBody(world))).toMatchObject({ status: 201, text: AUTHENTICATED });
    await upstream.waitForCalls(WARM_CALLS, isCallOf(token));
    expect(await ask(SESSION)).toMatchObject({ status: 200, text: AUTHENTICATED });
    for (const path of [READ, ...overviewPaths]) expect((await ask(path)).status).toBe(200);
    expect((await ask(PATCHED, PATCH)).status).toBe(200);
    expect((await request(READ, {}, page)).status).toBe(401); // which has no cookie
    // What has no `Origin` may be anybody's.
    expect(await run(page, 'embed', 'img', world.at(READ))).toBe('error');
    expect((await leave(page, 'follow', world.at(READ))).text).toContain('origin_rejected');
    await page.goto(origin + PAGE);
    expect((await ask(SESSION, { method: 'DELETE' })).status).toBe(204);
    expect((await ask(READ)).status).toBe(401);
  });
  expect(await browser.cookies()).toEqual([]);
  for (const { headers, answered } of exchanges) {
    const allows = [answered['access-control-allow-origin'], answered['access-control-allow-credentials']];
    expect(allows).toEqual(headers.origin === undefined ? [undefined, undefined] : [origin, 'true']);
  }
});

test('a page of another site that is listed never has a session, but its key', async () => {
  const { origin } = await openSite('127.0.0.1');
  const world = await open(origin);
  const { browser, request, token, watched } = world;
  const begun = await begin(world);
  const cookies = await browser.cookies();
  const page = await openPage(browser, origin + PAGE);
  const ask = (path: string, options = {}) => request(path, { ...WITH_COOKIES, ...options }, page);
  const { exchanges } = await watched(async () => {
    expect(await ask(SESSION)).toMatchObject({ status: 200, text: '{"authenticated":false}' });
    expect((await ask(READ)).status).toBe(401);
    expect((await ask(PATCHED, PATCH)).status).toBe(401);
    expect((await ask(SESSION, keyBody(world))).status).toBe(201); // whose cookie the browser does not take
    expect((await ask(READ)).status).toBe(401);
    expect((await ask(READ, { headers: { Authorization: `Token ${token}` } })).status).toBe(200);
    expect((await ask(SESSION, { method: 'DELETE' })).status).toBe(204); // of no session
  });
  expect(exchanges.filter(({ headers }) => headers.cookie !== undefined)).toEqual([]);
  expect(await browser.cookies()).toEqual(cookies);
  expect((await request(SESSION)).text).toBe(begun.text);
});
