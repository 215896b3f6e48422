import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { cacheStatusOf } from '../cache/helpers.ts';
import {
  ask,
  bought,
  buy,
  buyOnce,
  expectSealed,
  type Fleet,
  isHit,
  isWithoutStore,
  newOrder,
  outcomeAt,
  openFleet,
  type Order,
  prime,
  UNAVAILABLE,
  untilNot,
  writeThrough,
} from './fleet.ts';
import { gist, IN_PROGRESS, UNKNOWN } from '../idempotency/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { markOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { barrier, hang, hold, json, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { isOf } from '../support/versioned-upstream.ts';

const REPLAYED = bought(2, { isReplay: true });
const READS = 20;

const SHORT = { REQUEST_TIMEOUT_MS: '1000' };

let fleet: Fleet;
let a: NodeGateway;
let b: NodeGateway;

const startBoth = async () => {
  [a, b] = await Promise.all([fleet.start(), fleet.start()]);
};

/** Reads of new accounts: each costs one upstream call, with a store or without. */
async function readNew(): Promise<void> {
  for (let n = 0; n < READS; n++) {
    const answer = await ask(n % 2 === 0 ? a : b, 'getSubscription', { token: secret() });
    expect([answer.status, markOf(answer.text), isHit(answer)]).toEqual([200, 1, false]);
  }
}

/** Writes that need the store are refused, and nothing of them is sent. Resolves with their orders. */
async function expectRefused(): Promise<readonly Order[]> {
  const orders = [newOrder(), newOrder()];
  await Promise.all(
    orders.map(async (order, n) => {
      const at = n === 0 ? a : b;
      const wanted = [
        ['purchasePlan', order.key],
        ['purchasePlan', undefined],
        ['createApiKey', secret('idempotency')],
        ['refreshSubuser', undefined],
        ['updateReferralConfig', undefined],
        ['deletePaymentMethod', undefined],
      ] as const;
      await Promise.all(
        wanted.map(async ([id, key]) => {
          const refused = await ask(at, id, { token: order.token, ...(key !== undefined && { key }) });
          expect(gist(refused), id).toBe(UNAVAILABLE);
          expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
        }),
      );
      expect(fleet.callsOf(order.token)).toEqual([]);
    }),
  );
  return orders;
}

/** Writes that invalidate nothing cached, have no key and buy nothing. */
async function expectOthersThrough(): Promise<void> {
  for (const at of [a, b])
    for (const id of ['createApiKey', 'startIdVerification'] as const)
      expect((await ask(at, id, { token: secret() })).status).toBeLessThan(300);
}

/** Purchases go through both again; until then they are refused. */
async function expectPurchasesAgain(): Promise<void> {
  for (const at of [a, b]) {
    const order = newOrder();
    expect(await untilNot([UNAVAILABLE], () => buy(at, order))).toBe(bought(2));
    expect(fleet.charges(order)).toBe(1);
  }
}

/** What `expectRefused` was refused can be sent, once. */
async function expectUsable(orders: readonly Order[]): Promise<void> {
  for (const order of orders) {
    expect(await untilNot([UNAVAILABLE, IN_PROGRESS], () => buy(a, order))).toBe(bought(2));
    for (const at of [a, b]) expect(await untilNot([UNAVAILABLE, IN_PROGRESS], () => buy(at, order))).toBe(REPLAYED);
    expect(fleet.charges(order)).toBe(1);
  }
}

const replays = async (orders: readonly Order[], expected = REPLAYED) => {
  for (const order of orders) {
    for (const at of [a, b]) expect(await untilNot([UNAVAILABLE], () => buy(at, order))).toBe(expected);
    expect(fleet.charges(order)).toBe(1);
  }
};

/** Answered through one and the other. */
async function twoOrders(): Promise<readonly Order[]> {
  const orders = [newOrder(), newOrder()];
  for (const [n, order] of orders.entries()) expect(await buy(n === 0 ? a : b, order)).toBe(bought(2));
  return orders;
}

/** Each of both has a copy of each of these. */
async function primed(ids: readonly OperationId[]): Promise<string> {
  const token = secret();
  for (const at of [a, b]) for (const id of ids) await prime(at, id, { token });
  return token;
}

/** Empty, and when that has been for a while. */
const startAgain = async () => {
  await fleet.restartRedis([a, b]);
  await fleet.relyOn();
};

describe.skipIf(!hasRedis)(`the store${SKIPPED}`, () => {
  beforeEach(async () => {
    fleet = await openFleet();
  }, 30_000);

  afterEach(async () => {
    fleet.redis.signal('SIGCONT'); // where a test has failed in the middle of it
    if (fleet.redis.client.status === 'ready') await expectSealed(fleet.redis);
    await fleet.close();
  }, 30_000);

  interface Trouble {
    readonly is: string;
    /** Whether it still has what it had. */
    readonly keeps: boolean;
    readonly begin: () => Promise<void> | void;
    readonly end: () => Promise<void> | void;
  }

  const TROUBLES: readonly Trouble[] = [
    { is: 'killed', keeps: false, begin: () => fleet.redis.kill(), end: startAgain },
    {
      is: 'hung',
      keeps: true,
      begin: () => fleet.redis.signal('SIGSTOP'),
      end: () => fleet.redis.signal('SIGCONT'),
    },
  ];

  test.each(TROUBLES)('is $is, and there again', async ({ keeps, begin, end }) => {
    await startBoth();
    const [config, methods] = ['getReferralConfig', 'listPaymentMethods'] as const;
    const token = await primed([config, methods]);
    const orders = await twoOrders();
    await begin();

    // Both copies are there, and neither is used.
    for (const at of [a, b, a, b])
      for (const id of [config, methods]) {
        const answer = await ask(at, id, { token });
        expect([answer.status, markOf(answer.text), cacheStatusOf(answer)]).toEqual([200, 1, 'portico; fwd=miss']);
      }
    await readNew();
    const refused = await expectRefused();
    await expectOthersThrough();

    await end();
    await expectPurchasesAgain();
    await expectUsable(refused);
    if (keeps) await replays(orders);
    await writeThrough(a, 'updateReferralConfig', { token });
    for (const at of [b, a, b, a]) expect(markOf((await ask(at, config, { token })).text)).toBe(2);
    for (const id of [config, methods]) for (const at of [a, b]) await prime(at, id, { token });
    expect(fleet.redis.client.status).toBe('ready');
  });

  test('hangs while a client tries its key again and again: that is usable soon after', async () => {
    await startBoth();
    await twoOrders();
    const order = newOrder();
    fleet.redis.signal('SIGSTOP');
    while (!isWithoutStore(a)) expect(await buyOnce(a, order)).toBe(UNAVAILABLE);
    expect(await buyOnce(a, order)).toBe(UNAVAILABLE);
    expect(fleet.callsOf(order.token)).toEqual([]);
    fleet.redis.signal('SIGCONT');
    await expectPurchasesAgain();
    await expectUsable([order]);
  });

  let backup = '';
  const EMPTYINGS = [
    { is: 'restored from a backup', empty: () => fleet.restartRedis([a, b], backup) },
    { is: 'restarted empty', empty: () => fleet.restartRedis([a, b]) },
    {
      is: 'flushed',
      empty: async () => {
        await fleet.redis.client.flushall();
        for (const at of [a, b]) expect((await ask(at, 'getApiKey', { token: secret() })).status).toBe(200);
      },
    },
  ];

  test.each(EMPTYINGS)('is $is: what is under way is not sent again, and nothing old is read', async ({ empty }) => {
    await startBoth();
    backup = await fleet.redis.snapshot();
    const token = await primed(['getReferralConfig']);
    const [underWay, keyless] = [newOrder(), { token: secret() }];
    const gates = [underWay, keyless].map((order) => fleet.holdNext(order.token, 'purchasePlan'));
    const buying = [buy(b, underWay), buy(b, keyless)];
    await Promise.all(gates.map(({ reached }) => reached));
    // A slow read from before, of which the upstream has the old answer ready.
    const reading = fleet.holdNext(token, 'getReferralConfig');
    const slow = ask(a, 'getReferralConfig', { token, headers: { 'Cache-Control': 'no-cache' } });
    await reading.reached;

    await empty();

    for (const at of [a, b])
      for (const order of [underWay, keyless, newOrder()]) expect(await buyOnce(at, order)).toBe(UNAVAILABLE);
    for (const at of [a, b]) expect(isHit(await ask(at, 'getReferralConfig', { token }))).toBe(false);
    expect((await ask(b, 'updateReferralConfig', { token })).status).toBe(200);
    reading.release();
    await slow;
    for (const at of [a, b, a, b]) expect(markOf((await ask(at, 'getReferralConfig', { token })).text)).toBe(2);
    for (const gate of gates) gate.release();
    expect(await Promise.all(buying)).toEqual([bought(2), bought(2)]);
    await replays([underWay]);
    await fleet.relyOn();
    await replays([underWay]);
    expect(fleet.charges(keyless)).toBe(1);
    await expectPurchasesAgain();
    for (const at of [a, b]) await prime(at, 'getReferralConfig', { token });
    for (const at of [a, b]) expect(markOf((await ask(at, 'getReferralConfig', { token })).text)).toBe(2);
  });

  test('is restarted empty while a purchase is under way that is never answered: its key is not sent again', async () => {
    [a, b] = await Promise.all([fleet.start(SHORT), fleet.start(SHORT)]);
    const order = newOrder();
    fleet.upstream.once((to) => isOf(order.token, to), hang());
    const buying = buy(a, order);
    await fleet.upstream.waitForCalls(1, (to) => isOf(order.token, to));
    await fleet.restartRedis([a, b]);
    expect([UNAVAILABLE, UNKNOWN]).toContain(await buyOnce(b, order)); // its time may be over by now
    expect(await buying).toBe('504 upstream_timeout unknown');
    // Until that is reported no key is taken. Only then is the window over, which is long enough for it.
    await vi.waitFor(async () => expect(await buyOnce(b, order)).toBe(UNKNOWN), { timeout: 50_000 });
    await fleet.relyOn();
    for (const at of [b, a]) expect(await buy(at, order)).toBe(UNKNOWN);
    expect(fleet.charges(order)).toBe(1);
  });

  test('is restarted with what it had written: that is replayed at once, and what is new has to wait', async () => {
    await startBoth();
    const token = await primed(['getReferralConfig']);
    const [orders, unknown, underWay] = [await twoOrders(), newOrder(), newOrder()];
    fleet.upstream.once((to) => isOf(unknown.token, to), json(503));
    expect(await buy(a, unknown)).toBe('503 upstream_unavailable unknown');
    const gate = fleet.holdNext(underWay.token, 'purchasePlan');
    const buying = buy(b, underWay);
    await gate.reached;

    await fleet.restartRedis([a, b], await fleet.redis.snapshot());

    for (const at of [a, b]) {
      for (const order of orders) expect(await buyOnce(at, order)).toBe(REPLAYED);
      expect(await buyOnce(at, unknown)).toBe(UNKNOWN);
      expect(await buyOnce(at, underWay)).toBe(IN_PROGRESS);
      const next = newOrder();
      expect(await buyOnce(at, next)).toBe(UNAVAILABLE);
      expect(await outcomeAt(at, next)).toBe('store_unavailable');
      expect(await outcomeAt(at, orders[0]!)).toBe('done');
      expect(isHit(await ask(at, 'getReferralConfig', { token }))).toBe(false);
    }
    gate.release();
    expect(await buying).toBe(bought(2));
    await fleet.relyOn();
    await expectPurchasesAgain();
    for (const at of [a, b]) {
      for (const order of [...orders, underWay]) expect(await buyOnce(at, order)).toBe(REPLAYED);
      expect(await buyOnce(at, unknown)).toBe(UNKNOWN);
      await prime(at, 'getReferralConfig', { token });
    }
    for (const order of [...orders, underWay, unknown]) expect(fleet.charges(order)).toBe(1);
  });

  test('is killed: a read joins no other, which may be from before a write elsewhere', async () => {
    const at = await fleet.start();
    await fleet.redis.kill();
    const token = secret();
    const gate = barrier();
    fleet.upstream.on((to) => isOf(token, to), reply(hold(gate), fleet.answer()));
    const reads = Array.from({ length: 10 }, () => ask(at, 'getSubscription', { token }));
    await gate.count(reads.length);
    gate.release();
    const answers = await Promise.all(reads);
    expect(answers.map(({ status, text }) => [status, markOf(text)])).toEqual(answers.map(() => [200, 1]));
  });

  test('is not there from the start, and comes', async () => {
    await fleet.redis.kill();
    await startBoth();
    await readNew();
    const refused = await expectRefused();
    await expectOthersThrough();
    const token = secret();
    await startAgain();
    await expectPurchasesAgain();
    await expectUsable(refused);
    await replays(await twoOrders());
    for (const at of [a, b]) await prime(at, 'getReferralConfig', { token });
  });
});
