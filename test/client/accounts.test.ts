import { describe, expect, test } from 'vitest';
import { type ClientOptions, each, keepCopies } from '../../client/src/index.ts';
import {
  type Answer,
  BOUGHT,
  type Call,
  FAILED,
  gistThrown,
  GOOD,
  hold,
  json,
  KINDS,
  LIST,
  openStandIn,
  PLAN,
  problem,
  problemOf,
  PURCHASE,
  revalidated,
  settled,
  SUBSCRIPTION,
  thrownBy,
  UNKNOWN,
} from './helpers.ts';

const SESSION = 'GET /bff/v1/session';
const SIGN_IN = 'POST /bff/v1/session';
const UNUSED = new AbortController().signal;

const isAsking = ({ method, path }: Call) => `${method} ${path}` === SESSION;

/** The token says whose call it is. */
function openWithTokens() {
  const standIn = openStandIn();
  standIn.gateway.on('*', GOOD);
  let token: string | undefined = 'one';
  return {
    ...standIn,
    portico: standIn.clientWith({ token: () => token }),
    become: (other: string | undefined) => (token = other),
    /** The next call fails, after another account has come. */
    failAs: (other: string | undefined) => standIn.gateway.once('*', (call) => ((token = other), FAILED(call))),
    senders: () =>
      standIn.gateway.calls.filter((call) => !isAsking(call)).map(({ headers }) => headers['authorization']),
  };
}

const stateOf = (account?: string) => (account ? { authenticated: true, account } : { authenticated: false });

/**
 * A browser, whose cookie says whose call it is, before a gateway that has sessions. A sign-in begins the session of the
 * account that its key is named after.
 */
function openBrowser(options: ClientOptions = {}) {
  const { gateway, clock, clientWith } = openStandIn();
  let cookie: string | undefined = 'a';
  const fetchByCookie: typeof fetch = async (address, init) => {
    const headers = new Headers(init?.headers);
    if (cookie !== undefined && !headers.has('Cookie')) headers.set('Cookie', cookie);
    const response = await gateway.fetch(address, { ...init, headers });
    const account = response.headers.get('X-Signs-In');
    if (account !== null) cookie = account || undefined;
    return response;
  };
  gateway.on('*', GOOD);
  gateway.on(SESSION, (call) => json(200, stateOf(call.headers['cookie']))(call));
  gateway.on(SIGN_IN, (call) => {
    const { token } = JSON.parse(call.body) as { token: string };
    return json(201, stateOf(token), { 'x-signs-in': token })(call);
  });
  gateway.on('DELETE /bff/v1/session', json(204, '', { 'x-signs-in': '' }));
  const become = (account: string | undefined) => (cookie = account);
  const page = clientWith({ token: undefined, fetch: fetchByCookie, ...options });
  return {
    gateway,
    clock,
    page,
    /** In another tab, of which the page hears nothing. */
    become,
    /** The next call fails, after that. */
    failAs: (account: string | undefined) => gateway.once('*', (call) => (become(account), FAILED(call))),
    /** And of which it has heard. */
    hearOf: (account: string | undefined) => {
      become(account);
      return page.getSession();
    },
    /** Of all calls but those that ask who is signed in. */
    senders: () => gateway.calls.filter((call) => !isAsking(call)).map(({ headers }) => headers['cookie']),
    asked: () => gateway.calls.filter(isAsking).length,
    keys: () => gateway.callsTo(PURCHASE).map(({ headers }) => headers['idempotency-key']),
  };
}

describe.for(KINDS)('%s that has failed', ([, act]) => {
  test('is not sent again with the key of another account', async () => {
    const { portico, senders, failAs } = openWithTokens();
    failAs('two');
    expect(await gistThrown(act(portico, UNUSED))).toBe('a_code 503');
    expect(senders()).toEqual(['Token one']);
  });

  test('is not sent again in the session of another account, whose sign-in was in another tab', async () => {
    const { page, senders, asked, failAs } = openBrowser();
    await page.getSession();
    failAs('b');
    expect(await gistThrown(act(page, UNUSED))).toBe('a_code 503');
    expect([senders(), asked()]).toEqual([['a'], 2]);
  });

  test('is not sent again in the session of another account, which this client has begun', async () => {
    const { gateway, clock, page, senders } = openBrowser();
    clock.hold();
    gateway.once('*', FAILED);
    const thrown = gistThrown(act(page, UNUSED));
    const pause = await clock.next();
    await page.createSession({ token: 'b' });
    pause.end();
    expect(await thrown).toBe('a_code 503');
    expect(senders()).toEqual(['a', 'a']); // it, and the sign-in
  });

  test('is sent again in the same session, which is asked for once', async () => {
    const { gateway, page, senders, asked } = openBrowser();
    await page.getSession();
    gateway.once('*', FAILED);
    await act(page, UNUSED);
    expect([senders(), asked()]).toEqual([['a', 'a'], 2]);
  });
});

test('by key, a call with a credential of its own is sent again with that one, whatever the token is now', async () => {
  const { portico, senders, failAs } = openWithTokens();
  failAs('two');
  await portico.getSubscription(undefined, { headers: { Authorization: 'Token mine' } });
  expect(senders()).toEqual(['Token mine', 'Token mine']);
});

type Browser = ReturnType<typeof openBrowser>;

/** Whether the page knows the account, whose the session is before a call and after its first try, and who sends what. */
const BY_COOKIE = [
  ['nobody has told the account', false, 'a', 'a', ['a']],
  ['nobody is signed in, as before', false, undefined, undefined, [undefined, undefined]],
  ['nobody is signed in any more', true, 'a', undefined, ['a']],
  ['the account is the same', true, 'a', 'a', ['a', 'a']],
] as const;

test.for(BY_COOKIE)('by cookie, a call that has failed, where %s', async ([, isKnown, before, after, expected]) => {
  const { page, become, failAs, senders } = openBrowser({ token: () => '' });
  become(before);
  if (isKnown) await page.getSession();
  failAs(after);
  await page.getSubscription().catch((error: unknown) => expect(error).toMatchObject({ code: 'a_code' }));
  expect(senders()).toEqual(expected);
});

describe('by cookie, a call', () => {
  test('with a cookie of its own, or of nobody, is sent again, and nobody is asked', async () => {
    const { page, senders, asked, failAs } = openBrowser();
    failAs('b');
    await page.getSubscription(undefined, { headers: { Cookie: 'mine' } });
    failAs('b');
    await page.loginSocial({ provider: 'google', code: 'a', redirect_uri: 'https://app.example/' });
    expect([senders(), asked()]).toEqual([['mine', 'mine', 'b', 'b'], 0]);
  });

  test('is not sent again where the gateway does not say who is signed in', async () => {
    const { gateway, page, senders, asked } = openBrowser();
    await page.getSession();
    gateway.on(SESSION, problem(503, 'another_code', { retryable: true }));
    gateway.once(SUBSCRIPTION, FAILED);
    expect(await gistThrown(page.getSubscription())).toBe('a_code 503');
    expect([senders(), asked()]).toEqual([['a'], 4]); // by the test, and as often as a read is
  });

  test('is not judged by an answer that was on the way while somebody signed in', async () => {
    const { gateway, page, senders } = openBrowser();
    const held = hold(json(200, stateOf('a')));
    gateway.once(SESSION, held.answer);
    const late = page.getSession();
    await gateway.arrived(1);
    await page.createSession({ token: 'b' });
    held.release();
    await late;
    gateway.once('*', FAILED);
    await page.getSubscription();
    expect(senders()).toEqual(['a', 'b', 'b']);
  });
});

test('a purchase that goes on for one that was aborted does not go on as another account', async () => {
  const { gateway, portico, become, senders } = openWithTokens();
  gateway.on(PURCHASE, hold(json(201, BOUGHT)).answer);
  const controller = new AbortController();
  const first = thrownBy(portico.purchasePlan(PLAN, { signal: controller.signal }));
  await gateway.arrived(1);
  const joined = gistThrown(portico.purchasePlan(PLAN));
  await settled(); // it has joined
  become('two');
  controller.abort('left');
  expect([await first, await joined]).toEqual(['left', 'account_changed 0 unknown']);
  expect(senders()).toEqual(['Token one']);
});

const pageOf = (id: number, next: string | null) => json(200, { count: 2, next, previous: null, results: [{ id }] });

/** A list whose first entry has come, and what happens before its second page. */
const LISTS: readonly (readonly [string, (browser: Browser) => unknown, boolean])[] = [
  ['this client has begun another session', ({ page }) => page.createSession({ token: 'b' }), false],
  ['`getSession` has told of another account', ({ hearOf }) => hearOf('b'), false],
  ['the client has only asked who is signed in', ({ page }) => page.getSession(), true],
  ['only the answer itself was asked for', ({ page }) => page.response('getSession'), true],
];

describe('a list', () => {
  test.for(LISTS)('by cookie, where %s, goes on or does not', async ([, happens, goesOn]) => {
    const browser = openBrowser();
    await browser.page.getSession();
    browser.gateway.on(`GET ${LIST}`, pageOf(1, `${LIST}?page=2`));
    browser.gateway.on(`GET ${LIST}?page=2`, pageOf(2, null));
    const entries = each(browser.page, 'listTransactions');
    await entries.next();
    await happens(browser);
    if (goesOn) expect((await entries.next()).value).toEqual({ id: 2 });
    else expect(await gistThrown(entries.next())).toBe('account_changed 0');
  });

  test('does not go on with the pages of another key', async () => {
    const { gateway, portico, become, senders } = openWithTokens();
    gateway.on('*', pageOf(1, `${LIST}?page=2`), pageOf(2, null));
    const entries = each(portico, 'listTransactions');
    expect((await entries.next()).value).toEqual({ id: 1 });
    become('two');
    expect(await gistThrown(entries.next())).toBe('account_changed 0');
    expect(senders()).toEqual(['Token one']);
  });
});

/** A page that keeps copies, and whose they are. */
function openReader() {
  const browser = openBrowser({ copies: keepCopies({ most: 9 }) });
  browser.gateway.on(SUBSCRIPTION, revalidated);
  const read = async () => ((await browser.page.getSubscription()) as unknown as { of?: string }).of;
  return { ...browser, read };
}

describe('copies', () => {
  test('of one session are not those of the next, though their ETag is the same', async () => {
    const { page, hearOf, read } = openReader();
    expect(await read()).toBe('a');
    await page.createSession({ token: 'b' });
    expect(await read()).toBe('b');
    await hearOf('c');
    expect(await read()).toBe('c');
    await page.deleteSession();
    expect(await read()).toBeUndefined();
  });

  test('that come while somebody signs in are nobody’s afterwards', async () => {
    const { gateway, page, read } = openReader();
    const held = hold(json(201, stateOf('b'), { 'x-signs-in': 'b' }));
    gateway.once(SIGN_IN, held.answer);
    const signIn = page.createSession({ token: 'b' });
    await gateway.arrived(1);
    expect(await read()).toBe('a');
    held.release();
    await signIn;
    expect(await read()).toBe('b');
  });
});

const boughtBy: Answer = (call) => json(201, { of: call.headers['cookie'] })(call);

describe('by cookie, a purchase', () => {
  test('does not join an equal one of the account before, once `getSession` has told of another one', async () => {
    const { gateway, page, hearOf, keys } = openBrowser();
    await page.getSession();
    const held = hold(boughtBy);
    gateway.on(PURCHASE, held.answer, boughtBy);
    const first = page.purchasePlan(PLAN);
    await gateway.arrived(2);
    await hearOf('b');
    const second = await page.purchasePlan(PLAN);
    held.release();
    expect([await first, second]).toEqual([{ of: 'a' }, { of: 'b' }]);
    expect(new Set(keys()).size).toBe(2);
  });

  test.for([
    ['in another tab', ({ hearOf }: Browser) => hearOf('a')],
    ['in this one', ({ page }: Browser) => page.createSession({ token: 'a' })],
  ] as const)('has the same key when its account comes back %s', async ([, comeBack]) => {
    const browser = openBrowser();
    await browser.page.getSession();
    browser.gateway.on(PURCHASE, UNKNOWN, json(201, BOUGHT));
    await problemOf(browser.page.purchasePlan(PLAN));
    await browser.hearOf('b');
    await comeBack(browser);
    await browser.page.purchasePlan(PLAN);
    expect([browser.keys().length, new Set(browser.keys()).size]).toEqual([2, 1]);
  });
});
