import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OperationId } from '../../src/upstream/operations/index.ts';
import { cacheStatusOf } from '../cache/helpers.ts';
import {
  ask,
  bought,
  buy,
  buyOnce,
  expectSealed,
  type Fleet,
  isHit,
  LONG,
  newOrder,
  openFleet,
  type Order,
  prime,
  UNAVAILABLE,
  untilNot,
} from './fleet.ts';
import { gist, IN_PROGRESS, UNKNOWN } from '../idempotency/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { markOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { isOf } from '../support/versioned-upstream.ts';

const REPLAYED = bought(2, { isReplay: true });
/** The contract allows 200 over what a read takes; the rest is for a busy machine. */
const MOST_EXTRA_MS = 1_000;
const READS = 60;

let fleet: Fleet;
let a: NodeGateway;
let b: NodeGateway;

const startBoth = async () => {
  [a, b] = await Promise.all([fleet.start(), fleet.start()]);
};

/** What `act` takes, for each of the times that it is done through both in turn. */
async function timed(times: number, act: (at: NodeGateway) => Promise<unknown>): Promise<number[]> {
  const took: number[] = [];
  for (let n = 0; n < times; n++) {
    const from = performance.now();
    await act(n % 2 === 0 ? a : b);
    took.push(performance.now() - from);
  }
  return took.toSorted((one, other) => one - other);
}

/** Reads of accounts that nothing is held of: each costs one upstream call, with a store or without. */
const readNew = async (at: NodeGateway) => {
  const answer = await ask(at, 'getSubscription', { token: secret() });
  expect([answer.status, markOf(answer.text), isHit(answer)]).toEqual([200, 1, false]);
};

/** Writes that must not happen twice are refused, and nothing of them is sent. Comes out with their orders. */
async function expectRefused(): Promise<readonly Order[]> {
  const orders = [newOrder(), newOrder()];
  for (const [n, order] of orders.entries()) {
    const at = n === 0 ? a : b;
    for (const [id, key] of [
      ['purchasePlan', order.key],
      ['purchasePlan', undefined],
      ['createApiKey', secret('idempotency')],
      ['refreshSubuser', secret('idempotency')],
    ] as const) {
      const refused = await ask(at, id, { token: order.token, ...(key !== undefined && { key }) });
      expect(gist(refused), id).toBe(UNAVAILABLE);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    }
    expect(fleet.callsOf(order.token)).toEqual([]);
  }
  return orders;
}

/** Purchases go through both again; until then they are refused. */
async function expectPurchasesAgain(): Promise<void> {
  for (const at of [a, b]) {
    const order = newOrder();
    expect(await untilNot([UNAVAILABLE], () => buy(at, order))).toBe(bought(2));
    expect(fleet.charges(order)).toBe(1);
  }
}

/** What `expectRefused` was refused can be sent soon, once. */
async function expectUsable(orders: readonly Order[]): Promise<void> {
  const from = performance.now();
  for (const order of orders) {
    const meanwhile = [UNAVAILABLE, IN_PROGRESS];
    expect(await untilNot(meanwhile, () => buy(a, order))).toBe(bought(2));
    for (const at of [a, b]) expect(await buy(at, order)).toBe(REPLAYED);
    expect(fleet.charges(order)).toBe(1);
  }
  const took = performance.now() - from;
  process.stdout.write(`refused keys are usable ${Math.round(took)} ms after purchases are\n`);
  expect(took).toBeLessThan(8_000);
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

const says = (ms: number | undefined) => (ms ?? 0).toFixed(1);

describe.skipIf(!hasRedis)(`the store${SKIPPED}`, LONG, () => {
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
    readonly begin: () => Promise<void> | void;
    readonly end: () => Promise<void> | void;
  }

  const TROUBLES: readonly Trouble[] = [
    { is: 'killed', begin: () => fleet.redis.kill(), end: () => fleet.redis.start() },
    { is: 'hung', begin: () => fleet.redis.signal('SIGSTOP'), end: () => fleet.redis.signal('SIGCONT') },
  ];

  test.each(TROUBLES)('is $is, and there again', async ({ is, begin, end }) => {
    await startBoth();
    const [config, methods] = ['getReferralConfig', 'listPaymentMethods'] as const;
    const token = await primed([config, methods]);
    const orders = await twoOrders();
    const usual = await timed(READS, readNew);
    await begin();

    // Both copies are there, and neither is used.
    const held = await timed(2, async (at) => {
      const answer = await ask(at, config, { token });
      expect([answer.status, cacheStatusOf(answer)]).toEqual([200, 'portico; fwd=miss']);
    });
    const others = await timed(READS, readNew);
    const refused = await expectRefused();

    // Other writes go through, and reads behind them are right, through both.
    const writes = await timed(1, async () => {
      expect((await ask(a, 'updateReferralConfig', { token })).status).toBe(200);
      expect((await ask(b, 'deletePaymentMethod', { token })).status).toBe(204);
      expect((await ask(b, 'refreshSubuser', { token })).status).toBeLessThan(300);
    });
    const now = fleet.versionOf(token);
    const behind = await timed(READS, async (at) => {
      for (const id of [config, methods]) {
        const answer = await ask(at, id, { token });
        expect([answer.status, markOf(answer.text), isHit(answer)]).toEqual([200, now, false]);
      }
    });
    const worst = Math.max(...held, ...others, behind.at(-1)! / 2);
    const extra = worst - usual[READS / 2]!;
    process.stdout.write(
      `${is}: usual read ${says(usual[READS / 2])} ms (worst ${says(usual.at(-1))}); without the store ` +
        `worst ${says(worst)}, extra ${says(extra)}; median behind a write ${says(behind[READS / 2]! / 2)}; ` +
        `three writes ${says(writes[0])}\n`,
    );
    expect(extra).toBeLessThan(MOST_EXTRA_MS);

    await end();
    // Whoever uses the store again has told it before: then nobody gets what was there before.
    for (const [writer, reader, id] of [
      [a, b, config],
      [b, a, methods],
    ] as const) {
      const asked = async () => {
        const answer = await ask(writer, id, { token });
        expect(markOf(answer.text)).toBe(now);
        return cacheStatusOf(answer) ?? '';
      };
      await untilNot(['portico; fwd=miss'], asked);
      for (const at of [reader, writer, reader]) expect(markOf((await ask(at, id, { token })).text)).toBe(now);
    }
    await expectPurchasesAgain();
    await expectUsable(refused);
    await replays(orders);
    for (const id of [config, methods]) for (const at of [a, b]) await prime(at, id, { token });
    expect(fleet.redis.client.status).toBe('ready');
  });

  /** Longer than the gateway keeps a connection on which it hears nothing. */
  const LONG_HANG_MS = 3_000;

  test('hangs while a client tries its key again and again: that is usable soon after', async () => {
    await startBoth();
    await twoOrders();
    const order = newOrder();
    fleet.redis.signal('SIGSTOP');
    for (const until = performance.now() + LONG_HANG_MS; performance.now() < until;)
      expect(await buyOnce(a, order)).toBe(UNAVAILABLE);
    expect(fleet.callsOf(order.token)).toEqual([]);
    fleet.redis.signal('SIGCONT');
    await expectPurchasesAgain();
    await expectUsable([order]);
  });

  const EMPTYINGS = [
    {
      is: 'restarted empty',
      empty: async () => {
        await fleet.redis.kill();
        await fleet.redis.start();
      },
    },
    { is: 'flushed', empty: async () => void (await fleet.redis.client.flushall()) },
  ];

  test.each(EMPTYINGS)('is $is: nothing is charged twice, and nothing old is read', async ({ empty }) => {
    await startBoth();
    const token = await primed(['getReferralConfig']);
    const orders = await twoOrders();
    const [unknown, underWay] = [newOrder(), newOrder()];
    fleet.upstream.once((to) => isOf(unknown.token, to), json(503));
    expect(await buy(a, unknown)).toBe('503 upstream_unavailable unknown');
    const gate = barrier();
    fleet.upstream.once((to) => isOf(underWay.token, to), reply(hold(gate), fleet.answer()));
    const buying = buy(b, underWay);
    await gate.reached;
    // A slow read from before, of which the upstream has the old answer ready.
    const reading = barrier();
    fleet.upstream.once((to) => isOf(token, to) && to.method === 'GET', reply(hold(reading), fleet.answerOf(1)));
    const slow = ask(a, 'getReferralConfig', { token, headers: { 'Cache-Control': 'no-cache' } });
    await reading.reached;

    await empty();

    // At once, through the one that has not written it.
    for (const [n, order] of orders.entries())
      expect(await untilNot([UNAVAILABLE], () => buy(n === 0 ? b : a, order))).toBe(REPLAYED);
    for (const at of [a, b]) {
      expect(await untilNot([UNAVAILABLE], () => buy(at, unknown))).toBe(UNKNOWN);
      expect(await untilNot([UNAVAILABLE], () => buy(at, underWay))).toBe(IN_PROGRESS);
    }
    expect((await ask(b, 'updateReferralConfig', { token })).status).toBe(200);
    reading.release();
    await slow;
    for (const at of [a, b, a, b]) expect(markOf((await ask(at, 'getReferralConfig', { token })).text)).toBe(2);
    gate.release();
    expect(await buying).toBe(bought(2));
    await replays([...orders, underWay]);
    for (const at of [a, b]) expect(await buy(at, unknown)).toBe(UNKNOWN);
    expect(fleet.charges(unknown)).toBe(1);
    await expectPurchasesAgain();
    for (const at of [a, b]) await prime(at, 'getReferralConfig', { token });
  });

  test('is killed: equal reads of one instance still cost one call', async () => {
    const at = await fleet.start();
    await fleet.redis.kill();
    const token = secret();
    const gate = fleet.holdNext(token, 'getSubscription');
    const first = ask(at, 'getSubscription', { token });
    await gate.reached;
    const others = Array.from({ length: 50 }, () => ask(at, 'getSubscription', { token }));
    // They have all come when one that comes after them is answered.
    expect((await ask(at, 'getReferralConfig', { token: secret() })).status).toBe(200);
    gate.release();
    const answers = await Promise.all([first, ...others]);
    expect(answers.map(({ status, text }) => [status, markOf(text)])).toEqual(answers.map(() => [200, 1]));
    expect(fleet.callsOf(token)).toHaveLength(1);
  });

  test('is not there from the start, and comes', async () => {
    await fleet.redis.kill();
    await startBoth();
    const others = await timed(READS, readNew);
    process.stdout.write(
      `refused: a read takes ${others[READS / 2]!.toFixed(1)} ms, worst ${others.at(-1)!.toFixed(1)}\n`,
    );
    expect(others.at(-1)).toBeLessThan(MOST_EXTRA_MS);
    const refused = await expectRefused();
    const token = secret();
    expect((await ask(a, 'updateReferralConfig', { token })).status).toBe(200);
    expect((await ask(b, 'deletePaymentMethod', { token })).status).toBe(204);
    for (const at of [a, b]) expect(markOf((await ask(at, 'getReferralConfig', { token })).text)).toBe(3);
    await fleet.redis.start();
    await expectPurchasesAgain();
    await expectUsable(refused);
    await replays(await twoOrders());
    for (const at of [a, b]) await prime(at, 'getReferralConfig', { token });
  });
});
