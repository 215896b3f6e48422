import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { exampleRequest } from '../../support/examples.ts';
import { call } from '../../support/http.ts';
import { leaksIn, secret } from '../../support/secrets.ts';
import {
  type Exchange,
  type Got,
  leave,
  openFront,
  openGateway,
  openPage,
  openSite,
  PAGE,
  run,
  withChromium,
} from './browser.ts';

const NAME = '__Host-Http-portico';
const SESSION = '/bff/v1/session';
const overviewPaths = ['account', 'billing', 'referral'].map((name) => `/bff/v1/${name}-overview`);
const openContext = withChromium();

const AUTHENTICATED = expect.stringContaining('"authenticated":true') as string;
const WITH_COOKIES = { credentials: 'include' } as const;
/** Nothing reads it in the background. */
const READ = exampleRequest('getApiKey').path;
const { path: PATCHED, ...PATCH } = exampleRequest('updateReferralConfig');
const { path: PURCHASE, body: PURCHASE_BODY } = exampleRequest('purchasePlan');
const LOGIN = `${SESSION}/login`;

/** A browser, and the gateway behind a site whose page it has open. */
async function open(allowed = 'https://app.example') {
  const browser = await openContext();
  const env = { SESSIONS: 'true', SECRETS: secret('of-the-gateway-itself'), ALLOWED_ORIGINS: allowed };
  const world = await openGateway(env);
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
      const [exchanged, called] = [front.exchanges.length, world.upstream.calls.length];
      await act();
      const calls = world.upstream.calls.slice(called).map(({ id }) => id);
      return { calls, exchanges: front.exchanges.slice(exchanged) };
    },
  };
}

type Opened = Awaited<ReturnType<typeof open>>;

const keyBody = ({ token }: Opened) => ({ body: JSON.stringify({ token }) });

/** Resolves once the upstream was asked for all that is read in the background. */
async function begin(world: Opened): Promise<Got> {
  const begun = await world.request(SESSION, keyBody(world));
  await world.gateway.idle();
  return begun;
}

test('a page signs in with a key, reads, writes and signs out, and nothing of the key stays or comes back', async () => {
  const world = await open();
  const { browser, request, front, tab, upstream, token, gateway } = world;
  const begun = await begin(world);
  expect(begun).toMatchObject({ status: 201, text: AUTHENTICATED });
  const state = await request(SESSION);
  expect([state.status, state.text]).toEqual([200, begun.text]);
  const got = [begun, state];
  for (const path of [READ, ...overviewPaths]) got.push(await request(path));
  got.push(await request(PATCHED, PATCH));
  expect(got.slice(2).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(upstream.callsTo('updateReferralConfig')).toHaveLength(1);
  expect(new Set(upstream.calls.map((one) => one.token))).toEqual(new Set([token]));
  expect(front.exchanges.filter(({ headers }) => 'authorization' in headers)).toEqual([]);

  expect(await run(tab, 'kept')).toEqual([]);
  expect(got.flatMap(({ headers }) => Object.keys(headers)).filter((name) => name.includes('cookie'))).toEqual([]);
  expect(leaksIn(JSON.stringify(got))).toEqual([]);
  expect(leaksIn(JSON.stringify(front.exchanges.map(({ answered, text }) => [answered, text])))).toEqual([]);
  const [cookie, ...others] = await browser.cookies();
  expect(others).toEqual([]);
  const attributes = { domain: 'localhost', path: '/', httpOnly: true, secure: true, sameSite: 'Strict' };
  expect(cookie).toMatchObject({ name: NAME, ...attributes });
  expect(cookie!.expires).toBeGreaterThan(0);

  await request(PAGE);
  expect(front.visits()).toBe(1); // the browser has a copy
  expect(await request(SESSION, { method: 'DELETE' })).toMatchObject({ status: 204, text: '' });
  expect(front.exchanges.at(-1)!.answered).toMatchObject({ 'clear-site-data': '"cache"' });
  await request(PAGE);
  expect(front.visits()).toBe(2); // which is gone
  expect(await browser.cookies()).toEqual([]);
  expect(await request(SESSION)).toMatchObject({ status: 200, text: '{"authenticated":false}' });
  for (const path of [READ, ...overviewPaths]) expect((await request(path)).status).toBe(401);
  expect(await run(tab, 'kept')).toEqual([]);
  const headers = { 'sec-fetch-site': 'same-origin', cookie: `${NAME}=${cookie!.value}` };
  expect((await call(gateway.url, { path: READ, headers })).status).toBe(401);
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

/** What the browser has sent, each kind once. */
const kindsOf = (exchanges: readonly Exchange[]) =>
  new Set(
    exchanges.map(({ method, path, headers: { cookie }, status }) =>
      [method, path, ...(cookie?.startsWith(`${NAME}=`) ? ['by cookie'] : []), status].join(' '),
    ),
  );

/** Of a page elsewhere: how it asks, and what a read, and the question who is signed in, get. */
const kindsBy = (how: string, read: number, state: number) => {
  const reads = [`GET ${READ}${how} ${read}`, `GET ${SESSION}${how} ${state}`, `POST ${PURCHASE}${how} ${read}`];
  const preflights = [PURCHASE, SESSION, PATCHED].map((path) => `OPTIONS ${path} 204`);
  return [...reads, `POST ${SESSION}${how} 403`, `POST ${LOGIN}${how} 403`, ...preflights];
};

test.for([
  ['of another site', '127.0.0.1', 'unauthenticated', kindsBy('', 401, 200)],
  ['on another port', 'localhost', 'origin_rejected', kindsBy(' by cookie', 403, 403)],
] as const)('a page %s gets nothing, changes nothing and costs nothing', async ([, host, code, kinds]) => {
  const world = await open();
  const { at, browser, request, watched } = world;
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
  const own = await watched(async () => {
    expect((await request(READ)).status).toBe(200);
    expect((await request(PURCHASE, { body: PURCHASE_BODY })).status).toBe(200);
  });
  expect(own.calls).toEqual(['getApiKey', 'purchasePlan']);
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
  const { browser, request, gateway, watched } = world;
  const page = await openPage(browser, origin + PAGE);
  const ask = (path: string, options = {}) => request(path, { ...WITH_COOKIES, ...options }, page);
  const { exchanges } = await watched(async () => {
    expect(await ask(SESSION, keyBody(world))).toMatchObject({ status: 201, text: AUTHENTICATED });
    await gateway.idle();
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
