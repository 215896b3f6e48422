import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { ScriptName } from '../../src/entry/node/redis/scripts.ts';
import { PATH as BATCH, responsesOf, transaction } from '../batch/helpers.ts';
import { cacheStatusOf } from '../cache/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { call, type TextAnswer } from '../support/http.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { barrier, hold, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { isOf } from '../support/versioned-upstream.ts';
import { ask, bought, buy, fleetOfFile, isHit, newOrder } from './fleet.ts';
import { type Relay, startRelay } from './relay.ts';

const OVERVIEWS = ['account-overview', 'billing-overview', 'referral-overview'].map((name) => `/bff/v1/${name}`);

const [FIRST = '', ...OTHERS] = Array.from({ length: 20 }, (_, n) => transaction(n + 1));

interface BatchAsked {
  readonly paths: readonly string[];
  readonly through: NodeGateway;
}

const statusesOf = (answer: TextAnswer) => responsesOf(answer).map(({ status }) => status);

/** Those of one moment travel together. */
const expectSaves = (asked: readonly ScriptName[]) => {
  expect(new Set(asked)).toEqual(new Set(['save']));
  expect(asked.length).toBeLessThan(OTHERS.length);
};

/** With a limit, which is counted on the way. */
const ENV = { RATE_LIMIT_PER_MINUTE: '1000' };

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

  /** What the instance asks the store meanwhile for its requests. */
  const during = async (act: () => Promise<unknown>): Promise<readonly ScriptName[]> => {
    const from = relay.scripts.length;
    await act();
    return relay.scripts.slice(from).filter((name) => name !== 'hello');
  };

  /** Asks once more where the last answer of the store was too long ago to go by, as it may be on a busy machine. */
  const untilUnasked = (act: () => Promise<unknown>) =>
    vi.waitFor(async () => expect(await during(act)).toEqual([]), { timeout: 10_000, interval: 0 });

  const read = (token: string, path?: string) =>
    ask(at, 'getSubscription', { token, ...(path !== undefined && { path }) });

  const batch = (token: string, { paths = [FIRST, ...OTHERS], through = at }: Partial<BatchAsked> = {}) => {
    const body = { requests: paths.map((target, n) => ({ id: String(n), path: target })) };
    return ask(through, 'getSubscription', { token, method: 'POST', path: BATCH, body });
  };

  test('of a miss: two', async () => {
    expect(await during(() => read(secret()))).toEqual(['snapshot', 'save']);
  });

  test.each(['its own', "another instance's"])('of a hit on %s copy: one', async (whose) => {
    const token = secret();
    await ask(whose === 'its own' ? at : other, 'getSubscription', { token });
    expect(await during(async () => expect(isHit(await read(token))).toBe(true))).toEqual(['snapshot']);
  });

  test('of a hit soon after another: none, by a copy or a whole overview of copies, but for a count of many', async () => {
    const token = secret();
    const paths = [undefined, ...OVERVIEWS];
    for (const path of paths) await read(token, path);
    for (const path of paths) await read(token, path);
    for (const path of paths)
      await untilUnasked(async () => expect(cacheStatusOf(await read(token, path))).toMatch(/^portico; hit/));
    await untilUnasked(async () => expect((await batch(token, { paths: ['/api/v2/subscription/'] })).status).toBe(200));
    const asked = await during(async () => {
      for (let n = 0; n < 100; n++) expect(isHit(await read(token))).toBe(true);
    });
    expect(asked.length).toBeLessThan(50);
  });

  test('of a hit after a change of its account through another instance: one', async () => {
    const token = secret();
    await untilUnasked(async () => expect(isHit(await read(token))).toBe(true));
    await ask(other, 'updateReferralConfig', { token });
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
      expect([[], ['snapshot']]).toContainEqual(again);
    });
  });

  test('of a batch of twenty for a new credential: three, one after the other', async () => {
    const token = secret();
    const gate = barrier();
    const others = reply(hold(gate), fleet().answer());
    fleet().upstream.on((sent) => isOf(token, sent) && sent.path !== FIRST, others);
    const asked = await during(async () => {
      const answered = batch(token);
      expect(await during(() => gate.count(OTHERS.length))).toEqual(['snapshot', 'save']);
      gate.release();
      expect(statusesOf(await answered)).toEqual([200, ...OTHERS.map(() => 200)]);
    });
    // On a busy machine leases are renewed; no reply to that is waited for.
    expect(asked.slice(0, 2)).toEqual(['snapshot', 'save']);
    expectSaves(asked.slice(2).filter((name) => name !== 'change'));
  });

  test('of one for a credential that the upstream has accepted: one, and its saves', async () => {
    const token = secret();
    await read(token);
    const [first, ...rest] = await during(() => batch(token));
    expect(first).toBe('snapshot');
    expectSaves(rest);
  });

  test.each(['its own', "another instance's"])('of twenty hits on %s copies: one', async (whose) => {
    const token = secret();
    await batch(token, { through: whose === 'its own' ? at : other });
    const calls = fleet().callsOf(token).length;
    const again = async () => expect(statusesOf(await batch(token))).toEqual([200, ...OTHERS.map(() => 200)]);
    expect(await during(again)).toEqual(['snapshot']);
    expect(fleet().callsOf(token)).toHaveLength(calls);
  });

  test('of equal items: those of one', async () => {
    const paths = [FIRST, FIRST.slice(0, -1), `${FIRST}?`];
    const all = async () => expect(statusesOf(await batch(secret(), { paths }))).toEqual([200, 200, 200]);
    expect(await during(all)).toEqual(['snapshot', 'save']);
  });

  test.each([
    ['refused', [], 400],
    ['of nothing that can be read', ['/nothing', '/api/v2/subscription/checkout/purchase/'], 200],
  ])('of a batch that is %s: one', async (_, paths, status) => {
    const asking = async () => expect((await batch(secret(), { paths })).status).toBe(status);
    expect(await during(asking)).toEqual(['snapshot']);
  });

  test('of a write: two, with a key or without', async () => {
    const order = newOrder();
    for (const asking of [order, { token: secret() }])
      expect(await during(async () => expect(await buy(at, asking)).toBe(bought(2)))).toEqual([
        'beginWrite',
        'endWrite',
      ]);
    expect(await during(() => buy(at, order))).toEqual(['beginWrite']); // which is replayed
    const asked = { path: '/bff/v1/outcome', token: order.token, headers: { 'Idempotency-Key': order.key } };
    expect(await during(() => call(at.url, asked))).toEqual(['beginWrite']);
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
