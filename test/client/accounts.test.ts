import { describe, expect, test } from 'vitest';
import { type ClientOptions, each, keepCopies, type Portico, watchOverview } from '../../client/src/index.ts';
import {
  type Answer,
  FAILED,
  gistThrown,
  GOOD,
  hold,
  json,
  KINDS,
  LIST,
  openStandIn,
  PLAN,
  problemOf,
  PURCHASE,
  READS,
  revalidated,
  SUBSCRIPTION,
  UNKNOWN,
  WRITES,
} from './helpers.ts';

const SIGN_IN = 'POST /bff/v1/session';

/** The token says whose call it is. */
function openWithTokens() {
  const { gateway, clientWith } = openStandIn();
  gateway.on('*', GOOD);
  let token = 'one';
  const become = (other: string) => (token = other);
  return {
    gateway,
    portico: clientWith({ token: () => token }),
    become,
    /** The next call fails, after another account has come. */
    failAs: (other: string) => gateway.once('*', (call) => (become(other), FAILED(call))),
    senders: () => gateway.calls.map(({ headers }) => headers['authorization']),
  };
}

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
  gateway.on(SIGN_IN, (call) => {
    const { token } = JSON.parse(call.body) as { token: string };
    return json(201, { authenticated: true, account: token }, { 'x-signs-in': token })(call);
  });
  gateway.on('DELETE /bff/v1/session', json(204, '', { 'x-signs-in': '' }));
  return {
    gateway,
    clock,
    page: clientWith({ token: () => '', fetch: fetchByCookie, ...options }),
    senders: () => gateway.calls.map(({ headers }) => headers['cookie']),
  };
}

test.for(KINDS)('%s that has failed is not sent again with the key of another account', async ([, act]) => {
  const { portico, senders, failAs } = openWithTokens();
  failAs('two');
  expect(await gistThrown(act(portico))).toBe('a_code 503');
  expect(senders()).toEqual(['Token one']);
});

test('a call with a credential of its own is sent again with that one, whatever the token is now', async () => {
  const { portico, senders, failAs } = openWithTokens();
  failAs('two');
  await portico.getSubscription(undefined, { headers: { Authorization: 'Token mine' } });
  expect(senders()).toEqual(['Token mine', 'Token mine']);
});

describe.for(READS)('by cookie, %s that has failed', ([, act]) => {
  test('is sent again', async () => {
    const { gateway, page, senders } = openBrowser();
    gateway.once('*', FAILED);
    await act(page);
    expect(senders()).toEqual(['a', 'a']);
  });

  test('is not sent again in another session, which this client has begun', async () => {
    const { gateway, clock, page, senders } = openBrowser();
    clock.hold();
    gateway.once('*', FAILED);
    const thrown = gistThrown(act(page));
    const pause = await clock.next();
    await page.createSession({ token: 'b' });
    pause.end();
    expect(await thrown).toBe('a_code 503');
    expect(senders()).toEqual(['a', 'a']); // it, and the sign-in
  });
});

test.for(WRITES)('by cookie, %s is sent once: another tab may have signed in since', async ([, act]) => {
  const { gateway, clock, page } = openBrowser();
  gateway.on('*', FAILED);
  gateway.on(SIGN_IN, FAILED);
  expect(await gistThrown(act(page))).toBe('a_code 503');
  expect([gateway.calls.length, clock.lengths]).toEqual([1, []]);
});

test('by cookie, a write with a cookie of its own is sent again with that one', async () => {
  const { gateway, page, senders } = openBrowser();
  gateway.once('*', FAILED);
  await page.updateReferralConfig({ mode: 'credits' }, { headers: { Cookie: 'mine' } });
  expect(senders()).toEqual(['mine', 'mine']);
});

const pageOf = (id: number, next: string | null) => json(200, { count: 2, next, previous: null, results: [{ id }] });

/** What happens between two pages, and whether the second one is asked for. */
const MEANWHILE: readonly (readonly [string, (page: Portico) => Promise<unknown>, boolean])[] = [
  ['a sign-in of this client', (page) => page.createSession({ token: 'b' }), false],
  ['its sign-out', (page) => page.deleteSession(), false],
  ['a question who is signed in', (page) => page.getSession(), true],
];

describe('a list', () => {
  test.for(MEANWHILE)('by cookie, after %s, goes on or does not', async ([, happens, goesOn]) => {
    const { gateway, page } = openBrowser();
    gateway.on(`GET ${LIST}`, pageOf(1, `${LIST}?page=2`));
    gateway.on(`GET ${LIST}?page=2`, pageOf(2, null));
    const entries = each(page, 'listTransactions');
    await entries.next();
    await happens(page);
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

test('by cookie, a watch does not go on after a sign-in of this client', async () => {
  const { gateway, page } = openBrowser();
  const watch = watchOverview(page, 'account-overview');
  await watch.next();
  await page.createSession({ token: 'b' });
  expect(await gistThrown(watch.next())).toBe('account_changed 0');
  expect(gateway.calls).toHaveLength(2);
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
    const { page, read } = openReader();
    expect(await read()).toBe('a');
    await page.createSession({ token: 'b' });
    expect(await read()).toBe('b');
    await page.deleteSession();
    expect(await read()).toBeUndefined();
  });

  test('that come while somebody signs in are nobody’s afterwards', async () => {
    const { gateway, page, read } = openReader();
    const held = hold(json(201, {}, { 'x-signs-in': 'b' }));
    gateway.once(SIGN_IN, held.answer);
    const signIn = page.createSession({ token: 'b' });
    await gateway.arrived(1);
    expect(await read()).toBe('a');
    held.release();
    await signIn;
    expect(await read()).toBe('b');
  });
});

const boughtBy: Answer = (call) => json(201, { of: call.headers['authorization'] ?? call.headers['cookie'] })(call);

/** A client, what makes it one of another account, and the two accounts. */
const BECOMING = {
  'by key': () => {
    const { gateway, portico, become } = openWithTokens();
    return { gateway, portico, change: async () => void become('two'), accounts: ['Token one', 'Token two'] };
  },
  'by cookie': () => {
    const { gateway, page } = openBrowser();
    return { gateway, portico: page, change: () => page.createSession({ token: 'b' }), accounts: ['a', 'b'] };
  },
};

describe.for(Object.entries(BECOMING))('%s, a purchase', ([, open]) => {
  const keysOf = ({ gateway }: ReturnType<typeof open>) =>
    new Set(gateway.callsTo(PURCHASE).map(({ headers }) => headers['idempotency-key']));

  test('does not join an equal one of the account before', async () => {
    const world = open();
    const { gateway, portico, change, accounts } = world;
    const held = hold(boughtBy);
    gateway.on(PURCHASE, held.answer, boughtBy);
    const first = portico.purchasePlan(PLAN);
    await gateway.arrived(1);
    await change();
    const second = await portico.purchasePlan(PLAN);
    held.release();
    expect([await first, second]).toEqual(accounts.map((of) => ({ of })));
    expect(keysOf(world).size).toBe(2);
  });

  test('has not the key of an equal one of the account before, whose outcome is unknown', async () => {
    const world = open();
    world.gateway.on(PURCHASE, UNKNOWN, boughtBy);
    await problemOf(world.portico.purchasePlan(PLAN));
    await world.change();
    await world.portico.purchasePlan(PLAN);
    expect(keysOf(world).size).toBe(2);
  });
});
