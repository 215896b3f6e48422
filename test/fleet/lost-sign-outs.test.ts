import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { byCookie, cookieIn, SESSION, signInWith } from '../sessions/helpers.ts';
import { call } from '../support/http.ts';
import { hasRedis, SKIPPED, startRedis, type TestRedis } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { isOf, requestOf } from '../support/versioned-upstream.ts';
import { type Fleet, openFleet, returnsIn } from './fleet.ts';

const LOOK = { path: SESSION } as const;
const SIGN_OUT = { path: SESSION, method: 'DELETE' } as const;
const EVERYWHERE = { path: `${SESSION}?everywhere=true`, method: 'DELETE' } as const;
/** For the store on a busy machine. */
const PATIENCE = { timeout: 20_000, interval: 50 };

const statusOf = async (at: NodeGateway, cookie: string, options: Parameters<typeof call>[1] = LOOK) =>
  (await call(at.url, byCookie(cookie, options))).status;

/** While the store writes its snapshot on a busy machine it is late at times, and a client tries again. */
const signIn = (at: NodeGateway, token = secret()) =>
  vi.waitFor(async () => cookieIn(await call(at.url, signInWith(token))), PATIENCE);

/** Sessions that were signed out, alone and everywhere, and one that goes on. */
const signOuts = async (at: NodeGateway) => {
  const token = secret();
  const [alone, everywhere, same, goesOn] = [
    await signIn(at),
    await signIn(at, token),
    await signIn(at, token),
    await signIn(at),
  ];
  expect(await statusOf(at, alone, SIGN_OUT)).toBe(204);
  expect(await statusOf(at, everywhere, EVERYWHERE)).toBe(204);
  return { ended: [alone, everywhere, same], goesOn };
};

const expectHeld = async (at: NodeGateway, { ended, goesOn }: Awaited<ReturnType<typeof signOuts>>) => {
  for (const cookie of ended) await vi.waitFor(async () => expect(await statusOf(at, cookie)).toBe(401), PATIENCE);
  expect(await statusOf(at, goesOn)).toBe(200);
};

describe.skipIf(!hasRedis)(`a store that has lost sign-outs${SKIPPED}`, () => {
  let fleet: Fleet;

  beforeAll(async () => {
    fleet = await openFleet();
  }, 60_000);
  afterAll(() => fleet.close(), 30_000);

  const start = () => fleet.start({ SESSIONS: 'true' });

  test('is told of them again by the instance on which they were made: restored from before', async () => {
    const [a, b] = await Promise.all([start(), start()]);
    const before = await fleet.redis.snapshot();
    const known = await signOuts(a);
    await fleet.restartRedis([a, b], before);
    await expectHeld(b, known);
    await expectHeld(await start(), known);
  });

  test('is told of them again by an instance that had heard of them: emptied', async () => {
    const [a, b, late] = await Promise.all([start(), start(), start()]);
    const known = await signOuts(a);
    for (const cookie of known.ended) expect(await statusOf(b, cookie)).toBe(401);
    await a.kill();
    await fleet.redis.client.flushall();
    await statusOf(b, known.goesOn); // it has to ask once to see that
    await expectHeld(late, known);
  });

  test('is told of an `everywhere` by a session that began after it, where no instance knows', async () => {
    const a = await start();
    const token = secret();
    const before = await signIn(a, token);
    expect(await statusOf(a, await signIn(a, token), EVERYWHERE)).toBe(204);
    const [reads, writes] = [await signIn(a, token), await signIn(a, token)];
    for (const [cookie, request] of [
      [reads, requestOf('getApiKey')],
      [writes, requestOf('createApiKey')],
    ] as const) {
      await fleet.redis.client.flushall();
      const at = await start();
      expect(await statusOf(at, cookie, request)).toBeLessThan(300);
      expect(await statusOf(await start(), before)).toBe(401);
    }
  });
});

describe.skipIf(!hasRedis)(`a store without one of the replicas that it needs${SKIPPED}`, () => {
  let fleet: Fleet;
  let replica: TestRedis;

  beforeAll(async () => {
    [fleet, replica] = await Promise.all([openFleet(), startRedis()]);
    await replica.client.replicaof('127.0.0.1', fleet.redis.port);
    await vi.waitFor(
      async () => expect(await fleet.redis.client.info('replication')).toMatch('state=online'),
      PATIENCE,
    );
    await fleet.redis.client.config('SET', 'min-replicas-to-write', '1');
  }, 60_000);
  afterAll(async () => {
    await fleet.close();
    await replica.close();
  }, 30_000);

  test('lets in no session that was signed out elsewhere, and takes no write by one that goes on', async () => {
    const [a, b] = await Promise.all([fleet.start({ SESSIONS: 'true' }), fleet.start({ SESSIONS: 'true' })]);
    const token = secret();
    const [alone, everywhere, same] = [await signIn(a), await signIn(a, token), await signIn(a, token)];
    const other = secret();
    const goesOn = await signIn(a, other);
    expect(await statusOf(b, alone, SIGN_OUT)).toBe(204);
    expect(await statusOf(b, everywhere, EVERYWHERE)).toBe(204);
    await replica.kill();
    await vi.waitFor(
      async () => expect(await fleet.redis.client.info('replication')).toMatch('connected_slaves:0'),
      PATIENCE,
    );
    for (const cookie of [alone, everywhere, same])
      for (const options of [requestOf('getApiKey'), LOOK, requestOf('createApiKey')])
        expect(await statusOf(a, cookie, options)).toBe(401);
    for (const options of [requestOf('getApiKey'), LOOK]) expect(await statusOf(a, goesOn, options)).toBe(200);
    expect(await statusOf(a, goesOn, requestOf('createApiKey'))).toBe(503);
    expect(fleet.upstream.callsTo((to) => isOf(other, to) && to.method !== 'GET')).toEqual([]);
    await replica.start();
    await replica.client.replicaof('127.0.0.1', fleet.redis.port);
    await vi.waitFor(async () => expect(await statusOf(a, goesOn, requestOf('createApiKey'))).toBe(201), PATIENCE);
    expect(returnsIn(a)).toBeGreaterThan(0);
  });
});
