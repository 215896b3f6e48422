import { describe, expect, test, vi } from 'vitest';
import { exampleRequest } from '../support/examples.ts';
import type { CallOptions, TextAnswer } from '../support/http.ts';
import { callOf, pathOf } from '../support/marked.ts';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { isSocial, writeIds } from '../support/table.ts';
import {
  ask,
  byCookie,
  CLEARED,
  cookieIn,
  DAY,
  expectOver,
  expectRefused,
  isCallOf,
  openSessions,
  overviewPaths,
  OWN_PAGE,
  SESSION,
  type SessionWorld,
  signInWith,
  WARM_CALLS,
} from './helpers.ts';
import { openShared } from './stores.ts';

const BATCH = '/bff/v1/batch';
const SUBSCRIPTION = '/api/v2/subscription/';
const SIGN_OUT = { method: 'DELETE', path: SESSION } as const;
const EVERYWHERE = { method: 'DELETE', path: `${SESSION}?everywhere=true` } as const;
const LOOK = { path: SESSION } as const;
const batchOf = (...paths: string[]) => ({ requests: paths.map((path, n) => ({ id: `r${n}`, path })) });

/** Some of each kind of what takes a session. */
const WAYS: readonly CallOptions[] = [
  LOOK,
  { path: SUBSCRIPTION },
  exampleRequest('getApiKey'),
  exampleRequest('createApiKey'),
  exampleRequest('updateReferralConfig'),
  exampleRequest('purchasePlan'),
  exampleRequest('deletePaymentMethod'),
  ...overviewPaths.map((path) => ({ path })),
  { path: overviewPaths[0]!, headers: { accept: 'application/x-ndjson' } },
  { path: BATCH, body: batchOf(SUBSCRIPTION) },
  { path: BATCH, body: batchOf() },
  EVERYWHERE,
];

async function expectEnded({ by, sent }: SessionWorld, cookie: string): Promise<void> {
  const calls = await sent(async () => {
    for (const options of WAYS) expectOver(await by(cookie, options));
  });
  expect(calls).toEqual([]);
}

async function expectGoesOn({ by, askBy }: Pick<SessionWorld, 'by' | 'askBy'>, cookie: string): Promise<void> {
  expect((await by(cookie, LOOK)).json).toMatchObject({ authenticated: true });
  expect((await askBy(cookie, 'getApiKey')).status).toBe(200);
  expect((await askBy(cookie, 'createApiKey')).status).toBe(200);
}

const REFUSED = json(401, { detail: 'Invalid token.' });

describe.each([
  ['one process', (env = {}) => openSessions(env)],
  ['a shared store', (env = {}) => openShared(env)],
] satisfies [string, (env?: Record<string, string>) => Promise<SessionWorld>][])('with %s', (_, open) => {
  test('a sign-out is 204, clears the cookie and the copies of the browser, and ends the session everywhere here', async () => {
    const world = await open();
    const cookie = await world.signIn();
    let out: TextAnswer | undefined;
    expect(await world.sent(async () => (out = await world.by(cookie, SIGN_OUT)))).toEqual([]);
    expect([out!.status, out!.text, out!.cookies]).toEqual([204, '', [CLEARED]]);
    expect(out!.headers).toMatchObject({ 'clear-site-data': '"cache"', 'cache-control': 'no-store' });
    expect(out!.headers).not.toHaveProperty('content-type');
    await expectEnded(world, cookie);
  });

  test('a sign-out of a session that is over clears the cookie too, and ends no other', async () => {
    const world = await open();
    const [cookie, same] = [await world.signIn(), await world.signIn()];
    await world.by(cookie, SIGN_OUT);
    expectOver(await world.by(cookie, EVERYWHERE));
    const again = await world.by(cookie, SIGN_OUT);
    expect([again.status, again.cookies, again.headers['clear-site-data']]).toEqual([204, [CLEARED], '"cache"']);
    await expectGoesOn(world, same);
  });

  test('a 401 that comes after a new sign-in leaves the new session in the browser', async () => {
    const world = await open();
    const old = await world.signIn();
    const gate = barrier();
    world.upstream.once(callOf('createApiKey'), reply(hold(gate), REFUSED));
    const late = world.askBy(old, 'createApiKey');
    await gate.reached;
    const cookie = await world.signIn(secret(), { headers: { ...OWN_PAGE, Cookie: old } });
    gate.release();
    expectOver(await late);
    expectOver(await world.by(old, LOOK)); // one that was sent before the sign-in and came late
    await expectGoesOn(world, cookie);
  });

  test('a sign-out without a session is 204 too', async () => {
    const { call } = await open();
    const out = await call({ ...SIGN_OUT, headers: OWN_PAGE });
    expect([out.status, out.cookies, out.headers['clear-site-data']]).toEqual([204, [CLEARED], '"cache"']);
  });

  test('the end of a session is the end of no other', async () => {
    const world = await open();
    const [one, same, other] = [await world.signIn(), await world.signIn(), await world.signIn(secret())];
    await world.by(one, SIGN_OUT);
    await expectEnded(world, one);
    for (const cookie of [same, other]) await expectGoesOn(world, cookie);
    expect((await world.ask('getApiKey')).status).toBe(200); // the key is what it was
  });

  test('`everywhere` ends every session of the key, none of another key, and none that begins later', async () => {
    const world = await open();
    const [one, same, other] = [await world.signIn(), await world.signIn(), await world.signIn(secret())];
    expect((await world.by(one, EVERYWHERE)).status).toBe(204);
    for (const cookie of [one, same]) await expectEnded(world, cookie);
    await expectGoesOn(world, other);
    const later = await world.signIn();
    await expectGoesOn(world, later);
    expect((await world.by(later, EVERYWHERE)).status).toBe(204);
    for (const cookie of [one, same, later]) await expectEnded(world, cookie);
    await expectGoesOn(world, await world.signIn());
    await expectGoesOn(world, other);
  });

  test('`everywhere=false` ends the one, and what is neither ends none', async () => {
    const world = await open();
    const [one, same] = [await world.signIn(), await world.signIn()];
    for (const value of ['', '1', 'TRUE', 'yes']) {
      const answer = await world.by(one, { method: 'DELETE', path: `${SESSION}?everywhere=${value}` });
      expectRefused(answer, { status: 400, code: 'validation_failed', isCleared: false });
    }
    expect((await world.by(one, { method: 'DELETE', path: `${SESSION}?everywhere=false` })).status).toBe(204);
    await expectEnded(world, one);
    await expectGoesOn(world, same);
  });

  test('a sign-in over an old session ends that one alone, whosever it was', async () => {
    const world = await open();
    const [old, same] = [await world.signIn(), await world.signIn()];
    const other = secret();
    const first = await world.signIn(other, { headers: { ...OWN_PAGE, Cookie: old } });
    await expectEnded(world, old);
    for (const cookie of [first, same]) await expectGoesOn(world, cookie);
    const second = await world.signIn(other, { headers: { ...OWN_PAGE, Cookie: first } });
    await expectEnded(world, first);
    for (const cookie of [second, same]) await expectGoesOn(world, cookie);
  });

  test.for(['login', 'register'])('a %s over an old session ends that', async (way) => {
    const world = await open();
    const old = await world.signIn();
    const operation = way === 'login' ? 'loginSocial' : 'registerSocial';
    const token = secret();
    world.upstream.on(callOf(operation), json(200, { token }));
    const { body } = exampleRequest(operation);
    const cookie = cookieIn(await world.by(old, { path: `${SESSION}/${way}`, body }));
    await world.upstream.waitForCalls(WARM_CALLS, isCallOf(token));
    await expectEnded(world, old);
    await expectGoesOn(world, cookie);
  });

  test('a sign-in that fails ends nothing', async () => {
    const world = await open();
    const old = await world.signIn();
    const token = secret();
    world.upstream.on(isCallOf(token), REFUSED);
    const answer = await world.call(signInWith(token, { headers: { ...OWN_PAGE, Cookie: old } }));
    expectRefused(answer, { status: 401, code: 'unauthenticated', isCleared: false });
    await expectGoesOn(world, old);
  });

  const LEGS = ['getSubscription', 'listPaymentMethods', 'listNotifications', 'getReferralConfig'] as const;
  const REFUSALS: readonly (readonly [string, CallOptions, string, status: number])[] = [
    ['a read that is never kept', exampleRequest('getApiKey'), callOf('getApiKey'), 401],
    ['a read', exampleRequest('listTransactions'), callOf('listTransactions'), 401],
    ['a HEAD', { ...exampleRequest('listTransactions'), method: 'HEAD' }, callOf('listTransactions'), 401],
    ['a write that touches no copy', exampleRequest('createApiKey'), callOf('createApiKey'), 401],
    ['a write', exampleRequest('updateReferralConfig'), callOf('updateReferralConfig'), 401],
    ['a purchase', exampleRequest('purchasePlan'), callOf('purchasePlan'), 401],
    ['an item of a batch', { path: BATCH, body: batchOf(pathOf('getApiKey')) }, callOf('getApiKey'), 200],
    [
      'the second item of a batch',
      { path: BATCH, body: batchOf(SUBSCRIPTION, pathOf('getApiKey')) },
      callOf('getApiKey'),
      200,
    ],
    ...LEGS.map((leg) => [`the leg ${leg} of an overview`, { path: overviewPaths[0]! }, callOf(leg), 401] as const),
    [
      'a leg of a stream',
      { path: overviewPaths[0]!, headers: { accept: 'application/x-ndjson' } },
      callOf('getSubscription'),
      401,
    ],
  ];

  test.for(REFUSALS)(
    'a 401 of the upstream to %s ends the session, and no other',
    async ([, request, refused, status]) => {
      const world = await open();
      const [cookie, other, newer] = [await world.signIn(), await world.signIn(secret()), await world.signIn()];
      world.advance(2 * 3600); // no copy is left
      world.upstream.once(refused, REFUSED);
      const answer = await world.by(cookie, request);
      expect([answer.status, answer.cookies]).toEqual([status, []]);
      await expectEnded(world, cookie);
      for (const one of [newer, other]) await expectGoesOn(world, one);
    },
  );

  test('a 401 to a refresh in the background ends the session that has asked for it', async () => {
    const world = await open({ CACHE_POLICY: '{"getSubscription":{"fresh":1,"stale":300}}' });
    const cookie = await world.signIn();
    world.advance(10);
    const refused = world.store.refusals.next();
    world.upstream.once(callOf('getSubscription'), REFUSED);
    expect((await world.by(cookie, { path: SUBSCRIPTION })).status).toBe(200);
    await refused;
    await vi.waitFor(async () => expect((await world.by(cookie, LOOK)).status).toBe(401));
    await expectEnded(world, cookie);
  });

  test.for([403, 404, 429, 500, 503])('a %i of the upstream ends nothing', async (status) => {
    const world = await open();
    const cookie = await world.signIn();
    world.upstream.once(callOf('createApiKey'), json(status, { detail: 'No.' }));
    const answer = await world.askBy(cookie, 'createApiKey');
    expect([answer.status >= 400, answer.cookies]).toEqual([true, []]);
    world.advance(60); // a 429 holds back all calls for a while
    await expectGoesOn(world, cookie);
  });

  test('a session stays ended for as long as it would have lasted', async () => {
    const world = await open();
    const cookie = await world.signIn();
    await world.by(cookie, SIGN_OUT);
    for (let day = 0; day < 6; day++) {
      world.advance(DAY);
      expectOver(await world.by(cookie, LOOK));
    }
  });

  test('with `Authorization` a sign-out ends no session', async () => {
    const world = await open();
    const cookie = await world.signIn();
    expect((await world.by(cookie, { ...EVERYWHERE, token: world.token })).status).toBe(204);
    await expectGoesOn(world, cookie);
  });
});

describe('what ends on one instance', () => {
  test.for([SIGN_OUT, EVERYWHERE])('with %o ends on all, also on one that is new', async (out) => {
    const world = await openShared();
    const [cookie, same] = [await world.signIn(), await world.signIn()];
    const at = { by: (one: string, options: CallOptions) => ask(world.other, byCookie(one, options)) };
    expect((await at.by(cookie, LOOK)).json).toMatchObject({ authenticated: true });
    expect((await world.by(cookie, out)).status).toBe(204);
    await expectEnded({ ...world, ...at }, cookie);
    const late = await world.oneMore();
    expectOver(await ask(late, byCookie(cookie, LOOK)));
    expect((await ask(late, byCookie(same, LOOK))).status).toBe(out === EVERYWHERE ? 401 : 200);
    const later = cookieIn(await ask(late, signInWith(world.token)));
    for (const gateway of [world.gateway, world.other, late])
      expect((await ask(gateway, byCookie(later, LOOK))).json).toMatchObject({ authenticated: true });
  });
});

describe('while the store is away', () => {
  test('reads by cookie go by what their instance knows', async () => {
    const world = await openShared();
    const [good, here, there] = [await world.signIn(), await world.signIn(), await world.signIn()];
    await world.by(here, SIGN_OUT);
    await ask(world.other, byCookie(there, SIGN_OUT));
    world.away();
    expect((await world.askBy(good, 'getApiKey')).status).toBe(200);
    expect((await world.by(good, { path: overviewPaths[0]! })).status).toBe(200);
    expect((await world.by(good, { path: BATCH, body: batchOf(SUBSCRIPTION) })).status).toBe(200);
    expect((await world.by(good, LOOK)).json).toMatchObject({ authenticated: true });
    expectOver(await world.askBy(here, 'getApiKey'));
    expectOver(await world.by(here, LOOK));
    expect((await world.askBy(there, 'getApiKey')).status).toBe(200);
    world.back();
    expectOver(await world.askBy(there, 'getApiKey'));
  });

  test.for(writeIds.filter((id) => !isSocial(id)))('%s by cookie is 503, and not sent', async (id) => {
    const world = await openShared();
    const cookie = await world.signIn();
    world.away();
    const calls = await world.sent(async () => {
      const problem = expectRefused(await world.askBy(cookie, id), {
        status: 503,
        code: 'store_unavailable',
        isCleared: false,
      });
      expect(problem.retry_after).toBeGreaterThanOrEqual(1);
    });
    expect(calls).toEqual([]);
    world.back();
    expect((await world.askBy(cookie, id)).status).toBeLessThan(300);
  });

  test.for([SIGN_OUT, EVERYWHERE])(
    'a sign-out (%o) is 503 and holds here at once, and everywhere once the store is back',
    async (out) => {
      const world = await openShared();
      const [cookie, same] = [await world.signIn(), await world.signIn()];
      world.away();
      const answer = await world.by(cookie, out);
      expect(expectRefused(answer, { status: 503, code: 'store_unavailable', isCleared: true }).retry_after).toBe(1);
      expectOver(await world.by(cookie, LOOK));
      expectOver(await world.askBy(cookie, 'getApiKey'));
      expect((await world.by(same, LOOK)).status).toBe(out === EVERYWHERE ? 401 : 200);
      world.back();
      await vi.waitFor(async () => expect((await ask(world.other, byCookie(cookie, LOOK))).status).toBe(401));
      expect((await ask(world.other, byCookie(same, LOOK))).status).toBe(out === EVERYWHERE ? 401 : 200);
    },
  );

  test('a 401 of the upstream ends the session here at once, and everywhere once the store is back', async () => {
    const world = await openShared();
    const cookie = await world.signIn();
    world.away();
    world.upstream.once(callOf('getApiKey'), REFUSED);
    expectOver(await world.askBy(cookie, 'getApiKey'));
    expectOver(await world.askBy(cookie, 'getApiKey'));
    world.back();
    await vi.waitFor(async () => expect((await ask(world.other, byCookie(cookie, LOOK))).status).toBe(401));
  });
});
