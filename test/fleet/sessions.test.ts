import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { byCookie, cookieIn, expectOver, expectRefused, SESSION, signInWith } from '../sessions/helpers.ts';
import { call, type CallOptions, type TextAnswer } from '../support/http.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { isOf, requestOf } from '../support/versioned-upstream.ts';
import { expectSealed, type Fleet, openFleet } from './fleet.ts';

const LOOK = { path: SESSION } as const;
const SIGN_OUT = { path: SESSION, method: 'DELETE' } as const;
const EVERYWHERE = { path: `${SESSION}?everywhere=true`, method: 'DELETE' } as const;
/** For the store on a busy machine. */
const PATIENCE = { timeout: 20_000, interval: 50 };

const through = (at: NodeGateway, cookie: string, options: CallOptions): Promise<TextAnswer> =>
  call(at.url, byCookie(cookie, options));

const signIn = async (at: NodeGateway, token: string) => cookieIn(await call(at.url, signInWith(token)));

describe.skipIf(!hasRedis)(`sessions of instances with one Redis${SKIPPED}`, () => {
  let fleet: Fleet;
  let a: NodeGateway;
  let b: NodeGateway;

  const start = async () => {
    const env = { SESSIONS: 'true' };
    [a, b] = await Promise.all([fleet.start(env), fleet.start(env)]);
  };

  beforeAll(async () => {
    fleet = await openFleet();
    await start();
  }, 60_000);
  afterAll(() => fleet.close(), 30_000);

  /** It is over on both. */
  const expectEnded = async (cookie: string) => {
    for (const at of [a, b])
      for (const options of [LOOK, requestOf('getApiKey'), requestOf('createApiKey'), requestOf('purchasePlan')])
        expectOver(await through(at, cookie, options));
  };

  const expectGoesOn = async (cookie: string) => {
    for (const at of [a, b])
      for (const options of [LOOK, requestOf('getApiKey')])
        expect((await through(at, cookie, options)).status).toBe(200);
  };

  test('one that begins on one goes on at the other', async () => {
    await expectGoesOn(await signIn(a, secret()));
  });

  test('a sign-out on one holds on the other, and after a restart of both', async () => {
    const token = secret();
    const [cookie, same] = [await signIn(a, token), await signIn(b, token)];
    expect((await through(a, cookie, SIGN_OUT)).status).toBe(204);
    await expectEnded(cookie);
    await expectGoesOn(same);
    await Promise.all([a.kill(), b.kill()]);
    await start();
    await expectEnded(cookie);
    await expectGoesOn(same);
  });

  test('a sign-out everywhere too, and what begins afterwards goes on', async () => {
    const [token, another] = [secret(), secret()];
    const [cookie, same, other] = [await signIn(a, token), await signIn(b, token), await signIn(b, another)];
    expect((await through(b, cookie, EVERYWHERE)).status).toBe(204);
    const later = await signIn(a, token);
    await Promise.all([a.kill(), b.kill()]);
    await start();
    for (const one of [cookie, same]) await expectEnded(one);
    for (const one of [later, other]) await expectGoesOn(one);
  });

  test('while Redis is gone reads go on, writes and sign-outs are 503, and these hold when it is back', async () => {
    const token = secret();
    const [cookie, same] = [await signIn(a, token), await signIn(a, token)];
    await fleet.redis.kill();
    const refused = { status: 503, code: 'store_unavailable' };
    expect((await through(a, cookie, requestOf('getApiKey'))).status).toBe(200);
    for (const id of ['createApiKey', 'updateReferralConfig', 'purchasePlan'] as const)
      expectRefused(await through(a, cookie, requestOf(id)), { ...refused, isCleared: false });
    expect(fleet.upstream.callsTo((to) => isOf(token, to) && to.method !== 'GET')).toEqual([]);
    expectRefused(await through(a, cookie, SIGN_OUT), { ...refused, isCleared: true });
    expect((await through(a, cookie, LOOK)).status).toBe(401); // it was asked
    expect((await through(b, cookie, LOOK)).status).toBe(200); // it cannot know
    await fleet.redis.start();
    await vi.waitFor(async () => expect((await through(b, cookie, LOOK)).status).toBe(401), PATIENCE);
    await expectEnded(cookie);
    await expectGoesOn(same);
  });

  test('afterwards there is no secret in the store, and everything expires', async () => {
    expect(await expectSealed(fleet.redis)).toBeGreaterThan(0);
  });
});
