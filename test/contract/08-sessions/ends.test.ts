import { describe, expect, test } from 'vitest';
import type { OperationId } from '../../support/account-api.ts';
import { says } from '../../support/contract.ts';
import { testClock } from '../../support/clock.ts';
import { exampleRequest } from '../../support/examples.ts';
import type { FakeShelf } from '../../support/fake-shelf.ts';
import { openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { sharedStores } from '../../support/stores.ts';
import { answer, Upstream } from '../../support/upstream.ts';
import {
  batch,
  browserOf,
  CLEARED,
  cookieIn,
  cookiesOf,
  DAY,
  env,
  EVERYWHERE,
  example,
  expectEnded,
  expectGoesOn,
  expectOver,
  NAME,
  OVERVIEW,
  type Request,
  SESSION,
  SUBSCRIPTION,
  everywhere,
} from './browser.ts';

const REFUSED = answer(401, { detail: 'Invalid token.' });

everywhere(
  says('signs out: 204, cookie cleared whatever it holds, `Clear-Site-Data: "cache"`'),
  async (stage, browser) => {
    const cookie = await browser.signIn();
    const before = stage.upstream.calls.length;
    const outs = [await browser.signOut(cookie), await browser.signOut(cookie), await browser.signOut(`${NAME}=bad`)];
    outs.push(await browser.page(SESSION, { method: 'DELETE' })); // without any
    for (const out of outs) {
      expect([out.status, out.text, cookiesOf(out)]).toEqual([204, '', [CLEARED]]);
      expect(out.headers.get('clear-site-data')).toBe('"cache"');
      expect(out.headers.get('cache-control')).toBe('no-store');
    }
    expect(stage.upstream.calls).toHaveLength(before);
  },
);

everywhere(says('`?everywhere=true`: every session of this credential'), async (stage, browser) => {
  const [one, same, other] = [await browser.signIn(), await browser.signIn(), await browser.signIn(secret())];
  for (const value of ['', '1', 'TRUE']) {
    const bad = await browser.signOut(one, `${SESSION}?everywhere=${value}`);
    expect([bad.status, bad.code, cookiesOf(bad)]).toEqual([400, 'validation_failed', []]);
  }
  expect((await browser.signOut(one, EVERYWHERE)).status).toBe(204);
  for (const cookie of [one, same]) await expectEnded(browser, stage.upstream, cookie);
  await expectGoesOn(browser, other);
  const later = await browser.signIn();
  await expectGoesOn(browser, later);
  expect((await browser.signOut(later, EVERYWHERE)).status).toBe(204);
  expectOver(await browser.look(later));
  await expectGoesOn(browser, await browser.signIn());
});

everywhere(says('Sign-out, sign-in over an old session'), async (stage, browser) => {
  const [one, old, same] = [await browser.signIn(), await browser.signIn(), await browser.signIn()];
  expect((await browser.signOut(one, `${SESSION}?everywhere=false`)).status).toBe(204);
  const other = await browser.signIn(secret(), old); // whosever it was
  for (const cookie of [one, old]) await expectEnded(browser, stage.upstream, cookie);
  for (const cookie of [same, other]) await expectGoesOn(browser, cookie);
  const token = secret();
  stage.upstream.next('getSubscription', REFUSED);
  expectOver(await browser.by(same, SESSION, { body: { token } }));
  await expectGoesOn(browser, same); // that sign-in has failed
  stage.upstream.next('loginSocial', answer(200, { token }));
  const entered = await browser.by(same, `${SESSION}/login`, { body: exampleRequest('loginSocial').body });
  expectOver(await browser.look(same));
  expect((await browser.look(cookieIn(entered))).status).toBe(200);
});

everywhere(says('and an upstream 401 revoke it, in the fleet or the process.'), async (stage, browser) => {
  const [cookie, newer, other] = [await browser.signIn(), await browser.signIn(), await browser.signIn(secret())];
  for (const status of [403, 404, 500]) {
    stage.upstream.next('createApiKey', answer(status, { detail: 'No.' }));
    expect((await browser.askBy(cookie, 'createApiKey')).status).toBeGreaterThanOrEqual(400);
  }
  await expectGoesOn(browser, cookie);
  stage.upstream.next('createApiKey', REFUSED);
  expectOver(await browser.askBy(cookie, 'createApiKey'));
  await expectEnded(browser, stage.upstream, cookie);
  for (const one of [newer, other]) await expectGoesOn(browser, one);
});

everywhere(says('Who signs out of more than 64 sessions within 30 days is signed out of all.'), async (_, browser) => {
  const [kept, other] = [await browser.signIn(), await browser.signIn(secret())];
  for (let n = 0; n < 64; n++) expect((await browser.signOut(await browser.signIn())).status).toBe(204);
  expect((await browser.look(kept)).status).toBe(200);
  expect((await browser.signOut(await browser.signIn())).status).toBe(204);
  expectOver(await browser.look(kept));
  for (const cookie of [other, await browser.signIn()]) await expectGoesOn(browser, cookie);
});

describe(says('Sign-out, sign-in over an old session and an upstream 401 revoke it'), () => {
  const gateway = openGateway(env);
  const { upstream, pass } = gateway;
  const browser = browserOf(gateway);
  const { by, look, signIn, signOut } = browser;

  test.each<readonly [what: string, id: OperationId, status: number, asked: Request]>([
    ['a read that is never kept', 'getApiKey', 401, example('getApiKey')],
    ['a write', 'updateReferralConfig', 401, example('updateReferralConfig')],
    ['an item of a batch', 'getApiKey', 200, batch('getSubscription', 'getApiKey')],
    ['a section', 'listNotifications', 401, [OVERVIEW]],
    ['a section of a stream', 'getSubscription', 401, [OVERVIEW, { headers: { accept: 'application/x-ndjson' } }]],
  ])('a 401 of the upstream to %s', async (_, id, status, asked) => {
    const token = secret();
    const [cookie, newer] = [await signIn(token), await signIn(token)];
    await pass(2 * 3600); // no copy is left
    upstream.next(id, REFUSED);
    const refused = await by(cookie, ...asked);
    expect([refused.status, cookiesOf(refused)]).toEqual([status, []]);
    await expectEnded(browser, upstream, cookie);
    await expectGoesOn(browser, newer);
  });

  test.each(['a session', 'a header'])('a 401 that two have waited for, begun by %s', async (beginner) => {
    const token = secret();
    const [one, other] = [await signIn(token), await signIn(token)];
    await pass(2 * 3600);
    const held = upstream.hold('listTransactions');
    const { path } = exampleRequest('listTransactions');
    const first = beginner === 'a session' ? by(one, path) : gateway.call(path, { token });
    await held.call;
    const second = by(other, path);
    await pass(0);
    held.release(REFUSED);
    expect([(await first).status, (await second).status]).toEqual([401, 401]);
    expect((await look(one)).status).toBe(beginner === 'a session' ? 401 : 200);
    expectOver(await look(other));
    expect(upstream.callsTo('listTransactions')).toHaveLength(1);
  });

  test('for as long as it would have lasted', async () => {
    const cookie = await signIn(secret());
    await signOut(cookie);
    await pass(7 * DAY - 1);
    expectOver(await look(cookie));
  });
});

/** Two instances, whose way to their store can be cut. */
function openShared() {
  const [upstream, clock] = [new Upstream(), testClock()];
  const pass = (seconds: number) => clock.pass(seconds);
  const { shelf, open } = sharedStores(clock);
  const instance = (by: FakeShelf) => browserOf(openGateway(env, { upstream, clock, store: open(by) }));
  const away = async <T>(act: () => Promise<T>): Promise<T> => {
    shelf.isAway = true;
    const asked = act();
    await pass(2); // nobody waits longer for a store
    const answered = await asked;
    shelf.isAway = false;
    return answered;
  };
  return { here: instance(shelf), there: instance(shelf.beside()), shelf, upstream, away, pass };
}

describe(says('Without the store, reads go by what the instance knows'), () => {
  test('sign-outs that it has seen hold, those elsewhere hold when the store is back', async () => {
    const { here, there, away, pass } = openShared();
    await here.signOut(await here.signIn(), EVERYWHERE);
    const [good, ended, elsewhere] = [await here.signIn(), await here.signIn(), await here.signIn()];
    await here.signOut(ended);
    await there.signOut(elsewhere);
    for (const path of [SESSION, SUBSCRIPTION, OVERVIEW]) {
      expect((await away(() => here.by(good, path))).status).toBe(200);
      expect((await away(() => here.by(elsewhere, path))).status).toBe(200);
      expectOver(await away(() => here.by(ended, path)));
    }
    await pass(10);
    expectOver(await here.look(elsewhere));
  });

  test.each([SESSION, EVERYWHERE])('DELETE %s is 503, and holds here at once, there with the store', async (path) => {
    const { here, there, away, pass } = openShared();
    const [cookie, same] = [await here.signIn(), await here.signIn()];
    const out = await away(() => here.signOut(cookie, path));
    expect([out.status, out.code, out.headers.get('retry-after')]).toEqual([503, 'store_unavailable', '1']);
    expect(cookiesOf(out)).toEqual([CLEARED]);
    expectOver(await away(() => here.look(cookie)));
    await pass(10);
    for (const one of [here, there]) {
      expectOver(await one.look(cookie));
      expect((await one.look(same)).status).toBe(path === SESSION ? 200 : 401);
    }
  });

  test('a 401 of the upstream holds the same way, and no session begins', async () => {
    const { here, there, upstream, away, pass } = openShared();
    const cookie = await here.signIn();
    upstream.next('getApiKey', REFUSED);
    expectOver(await away(() => here.askBy(cookie, 'getApiKey')));
    expectOver(await away(() => here.look(cookie)));
    expect((await away(() => here.page(SESSION, { body: { token: secret() } }))).code).toBe('store_unavailable');
    await pass(10);
    expectOver(await there.look(cookie));
  });

  test('an `everywhere` that is sent again late brings back nothing that was ended since', async () => {
    const { here, there, shelf, pass } = openShared();
    const cookie = await here.signIn();
    const lost = shelf.hold('swap', 'coming'); // the first is carried out, but its reply is lost
    const out = here.signOut(cookie, EVERYWHERE);
    await lost.call;
    const again = shelf.hold('swap');
    lost.lose();
    await pass(2);
    expect((await out).status).toBe(503);
    const second = await there.signIn();
    expect((await there.signOut(second, EVERYWHERE)).status).toBe(204);
    const third = await there.signIn();
    again.release();
    await pass(10);
    for (const over of [cookie, second]) expectOver(await there.look(over));
    expect((await there.look(third)).status).toBe(200);
  });
});

test(says('writes by cookie are 503'), async () => {
  const { here, upstream, away, pass } = openShared();
  const cookie = await here.signIn();
  for (const id of ['createApiKey', 'updateReferralConfig', 'purchasePlan', 'deletePaymentMethod'] as const) {
    const refused = await away(() => here.askBy(cookie, id));
    expect([id, refused.status, refused.code, cookiesOf(refused)]).toEqual([id, 503, 'store_unavailable', []]);
    expect(upstream.callsTo(id)).toEqual([]);
  }
  await pass(10);
  expect((await here.askBy(cookie, 'createApiKey')).status).toBe(200);
});
