import { describe, expect, test } from 'vitest';
import { type CallOptions, createClient, type PorticoProblem } from '../../client/src/index.ts';
import { openOverviews } from '../overviews/helpers.ts';
import { cookieIn, openSessions, OWN_PAGE } from '../sessions/helpers.ts';
import { bodyOf, callOf, tokenOf } from '../support/marked.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { callTo, openClient, problemOf } from './helpers.ts';

/** Of a page; what a browser adds stands in the options. */
async function openPage() {
  const world = await openSessions();
  return { ...world, page: createClient({ url: world.gateway.url }) };
}

const OVER = 'unauthenticated';
const fromPage: CallOptions = { headers: OWN_PAGE };
const withCookie = (cookie: string): CallOptions => ({ headers: { ...OWN_PAGE, Cookie: cookie } });

/** The session that the client begins. */
async function begin({ page, token, upstream }: Awaited<ReturnType<typeof openPage>>) {
  const response = await page.response('createSession', { token }, fromPage);
  await upstream.waitForCalls(4);
  return cookieIn({ status: response.status, text: await response.text(), cookies: response.headers.getSetCookie() });
}

test('createSession begins one with a key, getSession tells of it, deleteSession ends it', async () => {
  const world = await openPage();
  const { page, token } = world;
  expect(await page.getSession(undefined, fromPage)).toEqual({ authenticated: false });
  const begun = await page.createSession({ token }, fromPage);
  expect(begun).toMatchObject({ authenticated: true, account: expect.any(String) });
  const cookie = await begin(world);
  expect(await page.getSession(undefined, withCookie(cookie))).toMatchObject({
    authenticated: true,
    account: begun.account,
  });
  expect(await page.getApiKey({ id: 12_345 }, withCookie(cookie))).toMatchObject({ id: expect.any(Number) });
  expect(await page.deleteSession(undefined, withCookie(cookie))).toBeUndefined();
  expect((await problemOf(page.getApiKey({ id: 12_345 }, withCookie(cookie)))).code).toBe('unauthenticated');
});

test('deleteSession ends all of the account with `everywhere`, and else only that one', async () => {
  const world = await openPage();
  const [one, two, three] = [await begin(world), await begin(world), await begin(world)];
  const stands = async (cookie: string) => {
    try {
      return (await world.page.getSession(undefined, withCookie(cookie))).authenticated;
    } catch (error) {
      return (error as PorticoProblem).code;
    }
  };
  await world.page.deleteSession({ everywhere: false }, withCookie(one));
  expect([await stands(one), await stands(two), await stands(three)]).toEqual([OVER, true, true]);
  await world.page.deleteSession({ everywhere: true }, withCookie(two));
  expect([await stands(two), await stands(three)]).toEqual([OVER, OVER]);
});

describe('sessions', () => {
  const social = { provider: 'google', code: 'a-code', redirect_uri: 'https://app.example/' } as const;

  test.for([
    ['loginSession', 'loginSocial', {}],
    ['registerSession', 'registerSocial', { tos_accepted: true }],
  ] as const)('%s begins one by %s, and no key comes back', async ([id, behind, more]) => {
    const { page, upstream } = await openPage();
    const token = secret();
    upstream.on(callOf(behind), json(200, { token }));
    const session = await callTo(page, id)({ ...social, ...more }, fromPage);
    expect(session).toMatchObject({ authenticated: true });
    expect(JSON.stringify(session)).not.toContain(token);
    expect(JSON.parse(upstream.callsTo(callOf(behind))[0]!.body)).toEqual({ ...social, ...more });
    await upstream.waitForCalls(5);
    expect(new Set(upstream.calls.slice(1).map(tokenOf))).toEqual(new Set([token]));
  });
});

test.for(['getAccountOverview', 'getBillingOverview', 'getReferralOverview'] as const)(
  '%s resolves with what the gateway answers',
  async (id) => {
    const world = await openOverviews();
    const portico = createClient({ url: world.gateway.url, token: world.token });
    const answer = await callTo(portico, id)();
    const path = `/bff/v1/${id.slice(3, -8).toLowerCase()}-overview`;
    const { body } = await world.get(path);
    expect(answer).toEqual(body);
    expect(body.meta.complete).toBe(true);
  },
);

test('batch reads several paths, and resolves with what the gateway answers', async () => {
  const { upstream, portico } = await openClient();
  upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)));
  upstream.on(callOf('listPaymentMethods'), json(404, {}));
  const { responses } = await portico.batch({
    requests: [
      { id: 'a', path: '/api/v2/subscription/' },
      { id: 'b', path: '/api/v2/payment/method/' },
    ],
  });
  expect(responses).toMatchObject([
    { id: 'a', status: 200, body: { x_mark: 1 } },
    { id: 'b', status: 404, body: { code: 'not_found' } },
  ]);
});

test('response gives the answer itself, and throws its problem all the same', async () => {
  const { upstream, portico } = await openClient();
  upstream.on(callOf('getSubscription'), json(200, bodyOf('getSubscription', 1)), json(403, {}));
  const answer = await portico.response('getSubscription');
  expect([answer.status, answer.headers.get('Age')]).toEqual([200, '0']);
  expect(await answer.json()).toMatchObject({ x_mark: 1 });
  expect((await problemOf(portico.response('getSubscription', undefined, { fresh: true }))).status).toBe(403);
});
