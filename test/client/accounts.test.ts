import { describe, expect, test } from 'vitest';
import { type ClientOptions, each, keepCopies, outcomeOf } from '../../client/src/index.ts';
import { barrier, type Call, hold, json, perCall, reply, type Step } from '../support/scripted-upstream.ts';
import {
  BOUGHT,
  gistOf,
  holdPauses,
  openStandIn,
  passPauses,
  PLAN,
  problem,
  problemOf,
  PURCHASE,
  SUBSCRIPTION,
  thrownBy,
} from './helpers.ts';
import { KINDS } from './kinds.ts';

const SESSION = 'GET /bff/v1/session';
const LIST = '/api/v2/payment/transaction/';
const UNUSED = new AbortController().signal;

const FAILED = problem(503, 'a_code', { retryable: true });
/** Good for every kind of call. */
const ALL = {
  results: [],
  next: null,
  responses: [],
  complete: true,
  data: { subscription: { plan: 1 }, pending_payments: { results: [] } },
  meta: { sections: {} },
};
const GOOD = json(200, `${JSON.stringify(ALL)}\n`);

/** Fails, after something has happened. */
const failedAfter = (happens: () => void): Step =>
  perCall(() => {
    happens();
    return FAILED;
  });

const isAsking = ({ method, path }: Call) => `${method} ${path}` === SESSION;
const isOther = (call: Call) => !isAsking(call);

/** The token says whose call it is. */
async function openWithTokens() {
  const standIn = await openStandIn();
  let token: string | undefined = 'one';
  return {
    ...standIn,
    portico: standIn.clientWith({ token: () => token }),
    become: (other: string | undefined) => (token = other),
    senders: () => standIn.gateway.calls.filter(isOther).map(({ headers }) => headers['authorization']),
  };
}

const stateOf = (account: string | undefined) =>
  account ? { authenticated: true, account } : { authenticated: false };

/**
 * A browser, whose cookie says whose call it is, before a gateway that has sessions. A sign-in begins the session of the
 * account that its key is named after.
 */
async function openBrowser(options: ClientOptions = {}) {
  const { gateway, clientWith } = await openStandIn();
  let cookie: string | undefined = 'a';
  const fetchByCookie: typeof fetch = async (address, init) => {
    const headers = new Headers(init?.headers);
    if (cookie !== undefined && !headers.has('Cookie')) headers.set('Cookie', cookie);
    const response = await fetch(address, { ...init, headers });
    const account = response.headers.get('X-Signs-In');
    if (account !== null) cookie = account || undefined;
    return response;
  };
  gateway.on(() => true, GOOD);
  gateway.on(
    SESSION,
    perCall(({ headers }) => json(200, stateOf(headers['cookie']))),
  );
  gateway.on(
    'POST /bff/v1/session',
    perCall(({ body }) => {
      const { token } = JSON.parse(body) as { token: string };
      return json(201, stateOf(token), { 'x-signs-in': token });
    }),
  );
  gateway.on('DELETE /bff/v1/session', json(204, '', { 'x-signs-in': '' }));
  return {
    gateway,
    page: clientWith({ token: undefined, fetch: fetchByCookie, ...options }),
    /** In another tab, of which the page hears nothing. */
    become: (account: string | undefined) => (cookie = account),
    /** Of all calls but those that ask who is signed in. */
    senders: () => gateway.calls.filter(isOther).map(({ headers }) => headers['cookie']),
    asked: () => gateway.calls.filter(isAsking).length,
  };
}

describe.for(KINDS)('%s that has failed', ([, act]) => {
  test('is not sent again with the key of another account', async () => {
    passPauses();
    const { gateway, portico, become, senders } = await openWithTokens();
    gateway.on(
      () => true,
      failedAfter(() => become('two')),
      GOOD,
    );
    expect(gistOf(await problemOf(act(portico, UNUSED)))).toBe('a_code 503');
    expect(senders()).toEqual(['Token one']);
  });

  test('is not sent again in the session of another account, whose sign-in was in another tab', async () => {
    passPauses();
    const { gateway, page, become, senders, asked } = await openBrowser();
    await page.getSession();
    gateway.once(
      () => true,
      failedAfter(() => become('b')),
    );
    expect(gistOf(await problemOf(act(page, UNUSED)))).toBe('a_code 503');
    expect(senders()).toEqual(['a']);
    expect(asked()).toBe(2);
  });

  test('is not sent again in the session of another account, which this client has begun', async () => {
    const pauses = holdPauses();
    const { gateway, page, senders } = await openBrowser();
    gateway.once(() => true, FAILED);
    const thrown = problemOf(act(page, UNUSED));
    const pause = await pauses.next();
    await page.createSession({ token: 'b' });
    pause.end();
    expect(gistOf(await thrown)).toBe('a_code 503');
    expect(senders()).toEqual(['a', 'a']); // it, and the sign-in
  });

  test('is sent again in the same session, which is asked for once', async () => {
    passPauses();
    const { gateway, page, senders, asked } = await openBrowser();
    await page.getSession();
    gateway.once(() => true, FAILED);
    await act(page, UNUSED);
    expect(senders()).toEqual(['a', 'a']);
    expect(asked()).toBe(2);
  });
});

describe('by key, a call', () => {
  test.for([
    ['a key', undefined, 'two', [undefined]],
    ['none', 'one', undefined, ['Token one']],
  ] as const)('that has failed is not sent again when there is %s now', async ([, before, after, expected]) => {
    passPauses();
    const { gateway, portico, become, senders } = await openWithTokens();
    become(before);
    gateway.on(
      () => true,
      failedAfter(() => become(after)),
      GOOD,
    );
    expect(gistOf(await problemOf(portico.getSubscription()))).toBe('a_code 503');
    expect(senders()).toEqual(expected);
  });

  test('with a credential of its own is sent again with that one, whatever the token is now', async () => {
    passPauses();
    const { gateway, portico, become, senders } = await openWithTokens();
    gateway.on(
      () => true,
      failedAfter(() => become('two')),
      GOOD,
    );
    await portico.getSubscription(undefined, { headers: { Authorization: 'Token mine' } });
    expect(senders()).toEqual(['Token mine', 'Token mine']);
  });

  test('is sent a second time, and not a third, where another account comes in between', async () => {
    passPauses();
    const { gateway, portico, become, senders } = await openWithTokens();
    gateway.on(
      () => true,
      FAILED,
      failedAfter(() => become('two')),
      GOOD,
    );
    await problemOf(portico.getSubscription());
    expect(senders()).toEqual(['Token one', 'Token one']);
  });
});

describe('by cookie, a call', () => {
  test('of which nobody has told the account is not sent again where somebody is signed in', async () => {
    passPauses();
    const { gateway, page, senders, asked } = await openBrowser();
    gateway.once(() => true, FAILED);
    expect(gistOf(await problemOf(page.getSubscription()))).toBe('a_code 503');
    expect([senders(), asked()]).toEqual([['a'], 1]);
  });

  test('is sent again where nobody is signed in, as before', async () => {
    passPauses();
    const { gateway, page, become, senders } = await openBrowser();
    become(undefined);
    gateway.once(() => true, FAILED);
    await page.getSubscription();
    expect(senders()).toEqual([undefined, undefined]);
  });

  test('is not sent again where nobody is signed in any more', async () => {
    passPauses();
    const { gateway, page, become, senders } = await openBrowser();
    await page.getSession();
    gateway.once(
      () => true,
      failedAfter(() => become(undefined)),
    );
    await problemOf(page.getSubscription());
    expect(senders()).toEqual(['a']);
  });

  test('is sent again where it was the sign-in that has told the account', async () => {
    passPauses();
    const { gateway, page, senders } = await openBrowser();
    await page.createSession({ token: 'b' });
    gateway.once(() => true, FAILED);
    await page.getSubscription();
    expect(senders()).toEqual(['a', 'b', 'b']);
  });

  test('is one of a client with an empty token too', async () => {
    passPauses();
    const { gateway, page, become, senders } = await openBrowser({ token: () => '' });
    await page.getSession();
    gateway.once(
      () => true,
      failedAfter(() => become('b')),
    );
    await problemOf(page.getSubscription());
    expect(senders()).toEqual(['a']);
  });

  test('that is under way while this client signs in is not sent again', async () => {
    passPauses();
    const { gateway, page, senders } = await openBrowser();
    await page.getSession();
    const gate = barrier();
    gateway.once(SUBSCRIPTION, reply(hold(gate), FAILED));
    const thrown = problemOf(page.getSubscription());
    await gate.reached;
    await page.createSession({ token: 'b' });
    gate.release();
    expect(gistOf(await thrown)).toBe('a_code 503');
    expect(senders()).toEqual(['a', 'a']); // it, and the sign-in
  });

  test('with a cookie of its own is sent again with that one, and nobody is asked', async () => {
    passPauses();
    const { gateway, page, become, senders, asked } = await openBrowser();
    gateway.once(
      () => true,
      failedAfter(() => become('b')),
    );
    await page.getSubscription(undefined, { headers: { Cookie: 'mine' } });
    expect([senders(), asked()]).toEqual([['mine', 'mine'], 0]);
  });

  test('of nobody, such as a social sign-in, is sent again, and nobody is asked', async () => {
    passPauses();
    const { gateway, page, asked } = await openBrowser();
    gateway.once(() => true, FAILED);
    await page.loginSocial({ provider: 'google', code: 'a', redirect_uri: 'https://app.example/' });
    expect(asked()).toBe(0);
  });

  test('is not sent again where the gateway does not say who is signed in', async () => {
    passPauses();
    const { gateway, page, senders, asked } = await openBrowser();
    await page.getSession();
    gateway.on(SESSION, problem(503, 'another_code', { retryable: true }));
    gateway.once(SUBSCRIPTION, FAILED);
    expect(gistOf(await problemOf(page.getSubscription()))).toBe('a_code 503');
    expect(senders()).toEqual(['a']);
    expect(asked()).toBe(4); // by the test, and as often as a read is
  });

  test('that is aborted while that is asked rejects with the reason, and is not sent again', async () => {
    passPauses();
    const { gateway, page, senders } = await openBrowser();
    await page.getSession();
    const gate = barrier();
    gateway.on(SESSION, hold(gate));
    gateway.once(SUBSCRIPTION, FAILED);
    const controller = new AbortController();
    const thrown = thrownBy(page.getSubscription(undefined, { signal: controller.signal }));
    await gate.reached;
    controller.abort('left');
    expect(await thrown).toBe('left');
    expect(senders()).toEqual(['a']);
  });

  test('is not judged by an answer that was on the way while somebody signed in', async () => {
    passPauses();
    const { gateway, page, senders } = await openBrowser();
    const gate = barrier();
    gateway.once(SESSION, reply(hold(gate), json(200, { authenticated: true, account: 'a' })));
    const late = page.getSession();
    await gate.reached;
    await page.createSession({ token: 'b' });
    gate.release();
    await late;
    gateway.once(() => true, FAILED);
    await page.getSubscription();
    expect(senders()).toEqual(['a', 'b', 'b']);
  });
});

/** A purchase that is aborted after an equal one has joined it, and after another account has come. */
test('a purchase that goes on for one that was aborted does not go on as another account', async () => {
  const { gateway, portico, become, senders } = await openWithTokens();
  const gate = barrier();
  gateway.on(PURCHASE, reply(hold(gate), json(201, BOUGHT)));
  gateway.on(SUBSCRIPTION, json(200, {}));
  const controller = new AbortController();
  const first = thrownBy(portico.purchasePlan(PLAN, { signal: controller.signal }));
  await gate.reached;
  const joined = problemOf(portico.purchasePlan(PLAN));
  await portico.getSubscription(); // until that one has joined
  become('two');
  controller.abort('left');
  expect(await first).toBe('left');
  expect(gistOf(await joined)).toBe('account_changed 0 unknown');
  gate.release();
  expect(senders()).toEqual(['Token one', 'Token one']);
});

const pageOf = (id: number, next: string | null) => json(200, { count: 2, next, previous: null, results: [{ id }] });

describe('a list', () => {
  test('does not go on with the pages of another key', async () => {
    const { gateway, portico, become, senders } = await openWithTokens();
    gateway.on(() => true, pageOf(1, `${LIST}?page=2`), pageOf(2, null));
    const entries = each(portico, 'listTransactions');
    expect((await entries.next()).value).toEqual({ id: 1 });
    become('two');
    expect(gistOf(await problemOf(entries.next()))).toBe('account_changed 0');
    expect(senders()).toEqual(['Token one']);
  });

  test('does not go on with the pages of a session that this client has begun since', async () => {
    const { gateway, page } = await openBrowser();
    gateway.on(`GET ${LIST}`, pageOf(1, `${LIST}?page=2`));
    gateway.on(`GET ${LIST}?page=2`, pageOf(2, null));
    const entries = each(page, 'listTransactions');
    await entries.next();
    await page.createSession({ token: 'b' });
    expect(gistOf(await problemOf(entries.next()))).toBe('account_changed 0');
  });

  test('goes on where the client has only asked who is signed in', async () => {
    const { gateway, page } = await openBrowser();
    gateway.on(`GET ${LIST}`, pageOf(1, `${LIST}?page=2`));
    gateway.on(`GET ${LIST}?page=2`, pageOf(2, null));
    const entries = each(page, 'listTransactions');
    await entries.next();
    await page.getSession();
    expect((await entries.next()).value).toEqual({ id: 2 });
  });
});

describe('copies', () => {
  const ETAG = '"the same for all"';
  const revalidated = perCall(({ headers }) =>
    headers['if-none-match'] === ETAG
      ? json(304, '', { etag: ETAG })
      : json(200, { of: headers['cookie'] }, { etag: ETAG }),
  );

  test('of one session are not those of the next, though their ETag is the same', async () => {
    const { gateway, page } = await openBrowser({ copies: keepCopies({ most: 9 }) });
    gateway.on(SUBSCRIPTION, revalidated);
    expect(await page.getSubscription()).toEqual({ of: 'a' });
    await page.createSession({ token: 'b' });
    expect(await page.getSubscription()).toEqual({ of: 'b' });
    await page.deleteSession();
    expect(await page.getSubscription()).toEqual({});
  });

  test('that come while somebody signs in are nobody’s afterwards', async () => {
    const { gateway, page } = await openBrowser({ copies: keepCopies({ most: 9 }) });
    gateway.on(SUBSCRIPTION, revalidated);
    const gate = barrier();
    gateway.once(
      'POST /bff/v1/session',
      reply(hold(gate), json(201, { authenticated: true, account: 'b' }, { 'x-signs-in': 'b' })),
    );
    const signIn = page.createSession({ token: 'b' });
    await gate.reached;
    expect(await page.getSubscription()).toEqual({ of: 'a' });
    gate.release();
    await signIn;
    expect(await page.getSubscription()).toEqual({ of: 'b' });
  });
});

test('a purchase has the same key after the client was told who is signed in', async () => {
  const { gateway, page } = await openBrowser();
  gateway.on(PURCHASE, problem(504, 'upstream_timeout', { outcome: 'unknown' }), json(201, BOUGHT));
  await problemOf(page.purchasePlan(PLAN));
  await page.getSession();
  await outcomeOf(page, { subscription: { plan: 1 } });
  await page.purchasePlan(PLAN);
  const [first, second] = gateway.callsTo(PURCHASE).map(({ headers }) => headers['idempotency-key']);
  expect(second).toBe(first);
});

/** Of a, until somebody else has signed in in another tab, of which the page has heard. */
async function openTabs(options: ClientOptions = {}) {
  const browser = await openBrowser(options);
  await browser.page.getSession();
  const hearOf = async (account: string | undefined) => {
    browser.become(account);
    await browser.page.getSession();
  };
  const keys = () => browser.gateway.callsTo(PURCHASE).map(({ headers }) => headers['idempotency-key']);
  return { ...browser, hearOf, keys };
}

describe('by cookie, once `getSession` has told of another account,', () => {
  test('an equal purchase does not join that of the account before', async () => {
    const { gateway, page, hearOf, keys } = await openTabs();
    const gate = barrier();
    const bought = perCall(({ headers }) => json(201, { of: headers['cookie'] }));
    gateway.on(PURCHASE, reply(hold(gate), bought), bought);
    const first = page.purchasePlan(PLAN);
    await gate.reached;
    await hearOf('b');
    const second = await page.purchasePlan(PLAN);
    gate.release();
    expect([await first, second]).toEqual([{ of: 'a' }, { of: 'b' }]);
    expect(new Set(keys()).size).toBe(2);
  });

  test('a list does not go on', async () => {
    const { gateway, page, hearOf } = await openTabs();
    gateway.on(`GET ${LIST}`, pageOf(1, `${LIST}?page=2`));
    const entries = each(page, 'listTransactions');
    await entries.next();
    await hearOf('b');
    expect(gistOf(await problemOf(entries.next()))).toBe('account_changed 0');
  });

  test('no copy of the account before is given', async () => {
    const { gateway, page, hearOf } = await openTabs({ copies: keepCopies({ most: 9 }) });
    gateway.on(
      SUBSCRIPTION,
      perCall(({ headers }) =>
        'if-none-match' in headers
          ? json(304, '', { etag: '"1"' })
          : json(200, { of: headers['cookie'] }, { etag: '"1"' }),
      ),
    );
    await page.getSubscription();
    await hearOf('b');
    expect(await page.getSubscription()).toEqual({ of: 'b' });
  });

  test.for([
    ['in another tab', async ({ hearOf }: Awaited<ReturnType<typeof openTabs>>) => hearOf('a')],
    ['in this one', async ({ page }: Awaited<ReturnType<typeof openTabs>>) => page.createSession({ token: 'a' })],
  ] as const)('and then of the first again, %s, its purchase has the same key', async ([, comeBack]) => {
    const tabs = await openTabs();
    tabs.gateway.on(PURCHASE, problem(504, 'upstream_timeout', { outcome: 'unknown' }), json(201, BOUGHT));
    await problemOf(tabs.page.purchasePlan(PLAN));
    await tabs.hearOf('b');
    await comeBack(tabs);
    await tabs.page.purchasePlan(PLAN);
    const [first, second] = tabs.keys();
    expect(second).toBe(first);
  });

  test('a list goes on where only the answer itself was asked for', async () => {
    const { gateway, page } = await openTabs();
    gateway.on(`GET ${LIST}`, pageOf(1, `${LIST}?page=2`));
    gateway.on(`GET ${LIST}?page=2`, pageOf(2, null));
    const entries = each(page, 'listTransactions');
    await entries.next();
    await page.response('getSession');
    expect((await entries.next()).value).toEqual({ id: 2 });
  });
});
