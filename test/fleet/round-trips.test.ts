import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { ScriptName } from '../../src/entry/node/redis/scripts.ts';
import { cacheStatusOf } from '../cache/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { ask, bought, buy, fleetOfFile, isHit, newOrder } from './fleet.ts';
import { type Relay, startRelay } from './relay.ts';

const OVERVIEWS = ['account-overview', 'billing-overview', 'referral-overview'].map((name) => `/bff/v1/${name}`);

/** With a limit and a budget, which are counted on the way. */
const ENV = { RATE_LIMIT_PER_MINUTE: '1000', UPSTREAM_BUDGET_PER_MINUTE: '0' };

describe.skipIf(!hasRedis)(`round trips to the store${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  let relay: Relay;
  let at: NodeGateway;
  let other: NodeGateway;

  beforeAll(async () => {
    relay = await startRelay(fleet().redis.port);
    [at, other] = await Promise.all([
      fleet().start({ ...ENV, STORE_URL: `redis://127.0.0.1:${relay.port}` }),
      fleet().start(ENV),
    ]);
  }, 30_000);

  afterAll(() => relay.close());

  /** What the instance asks the store meanwhile. */
  const during = async (act: () => Promise<unknown>): Promise<readonly ScriptName[]> => {
    const from = relay.scripts.length;
    await act();
    return relay.scripts.slice(from);
  };

  const read = (token: string, path?: string) =>
    ask(at, 'getSubscription', { token, ...(path !== undefined && { path }) });

  test('of a miss: two', async () => {
    expect(await during(() => read(secret()))).toEqual(['snapshot', 'save']);
  });

  test.each(['its own', "another instance's"])('of a hit on %s copy: one', async (whose) => {
    const token = secret();
    await ask(whose === 'its own' ? at : other, 'getSubscription', { token });
    expect(await during(async () => expect(isHit(await read(token))).toBe(true))).toEqual(['snapshot']);
  });

  test('of what is never cached: one', async () => {
    expect(await during(() => ask(at, 'getApiKey', { token: secret() }))).toEqual(['snapshot']);
  });

  test.each(OVERVIEWS)('of %s: one snapshot, and at most one save for each leg; of a hit on it one', async (path) => {
    const token = secret();
    const [first, ...rest] = await during(async () => expect((await read(token, path)).status).toBe(200));
    expect(first).toBe('snapshot');
    expect(rest.filter((name) => name !== 'save')).toEqual([]);
    expect(rest.length).toBeLessThanOrEqual(fleet().callsOf(token).length);
    // Saves that a busy machine had no time for before the answer go on after it.
    await vi.waitFor(async () => {
      const again = await during(async () => expect(cacheStatusOf(await read(token, path))).toMatch(/^portico; hit/));
      expect(again).toEqual(['snapshot']);
    });
  });

  test('of a write: two, with a key or without', async () => {
    const order = newOrder();
    for (const asking of [order, { token: secret() }])
      expect(await during(async () => expect(await buy(at, asking)).toBe(bought(2)))).toEqual([
        'beginWrite',
        'endWrite',
      ]);
    expect(await during(() => buy(at, order))).toEqual(['beginWrite']); // which is replayed
    expect(await during(() => ask(at, 'updateReferralConfig', { token: secret() }))).toEqual([
      'beginWrite',
      'endWrite',
    ]);
  });

  test('of a request over the limit: one', async () => {
    const token = secret();
    const few = await fleet().start({ RATE_LIMIT_PER_MINUTE: '1', STORE_URL: `redis://127.0.0.1:${relay.port}` });
    await ask(few, 'getSubscription', { token });
    for (const [id, script] of [
      ['getSubscription', 'snapshot'],
      ['updateReferralConfig', 'beginWrite'],
    ] as const)
      expect(await during(async () => expect((await ask(few, id, { token })).status).toBe(429))).toEqual([script]);
  });
});
