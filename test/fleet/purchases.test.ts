import { beforeAll, describe, expect, test, vi } from 'vitest';
import { ask, bought, buy, fleetOfFile, newOrder, outcomeAt, testWhatIsKept, untilNot } from './fleet.ts';
import { letPass } from './time.ts';
import { IN_PROGRESS, REUSED, UNKNOWN } from '../idempotency/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { barrier, type Barrier, hang, hold, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { isOf } from '../support/versioned-upstream.ts';
import { idOf } from '../support/marked.ts';

const CLIENTS = 100;
const REQUEST_MS = 1_000;

const timesOf = (answers: readonly string[], answer: string) => answers.filter((one) => one === answer).length;

const KEYS = [
  ['both without a key', false, false],
  ['the second with a key', false, true],
  ['the first with a key', true, false],
] as const;

const keyIf = (has: boolean) => (has ? { key: secret('idempotency') } : {});

describe.skipIf(!hasRedis)(`purchases through two instances${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  let a: NodeGateway;
  let b: NodeGateway;

  beforeAll(async () => {
    [a, b] = await Promise.all([fleet().start(), fleet().start()]);
  }, 30_000);

  const holdPurchase = (token: string): Barrier => {
    const gate = barrier();
    fleet().upstream.once((to) => isOf(token, to) && idOf(to) === 'purchasePlan', reply(hold(gate), fleet().answer()));
    return gate;
  };

  /** Half of them through each; `enough` says when so many are answered. */
  const crowd = (order: { readonly token: string; readonly key?: string }, size: number) => {
    const answers: string[] = [];
    const enough = Promise.withResolvers<void>();
    const all = Array.from({ length: size }, async (_, n) => {
      answers.push(await buy(n % 2 === 0 ? a : b, order));
      if (answers.length === size - 1) enough.resolve();
    });
    return { answers, allButOne: enough.promise, all: Promise.all(all) };
  };

  /** The answer to a write waits 200 ms at most until the store knows it. */
  const ended = (order: { readonly token: string; readonly key?: string }) =>
    vi.waitFor(async () => expect(await buy(b, order)).not.toBe(IN_PROGRESS), { timeout: 30_000 });

  test(`of ${CLIENTS} with one key at once one is sent, and the others learn that it is under way`, async () => {
    const order = newOrder();
    const gate = holdPurchase(order.token);
    const { answers, allButOne, all } = crowd(order, CLIENTS);
    await allButOne;
    expect(timesOf(answers, IN_PROGRESS)).toBe(CLIENTS - 1);
    gate.release();
    await all;
    expect(timesOf(answers, bought(2))).toBe(1);
    await ended(order);
    const later = crowd(order, CLIENTS);
    await later.all;
    expect(timesOf(later.answers, bought(2, { isReplay: true }))).toBe(CLIENTS);
    expect(fleet().charges(order)).toBe(1);
  });

  test.each([1, 2, 3, 4, 5])('and with an upstream that answers at once, time %i', async () => {
    const order = newOrder();
    const { answers, all } = crowd(order, CLIENTS);
    await all;
    expect(timesOf(answers, bought(2))).toBe(1);
    expect(timesOf(answers, IN_PROGRESS) + timesOf(answers, bought(2, { isReplay: true }))).toBe(CLIENTS - 1);
    await ended(order);
    for (const at of [a, b]) expect(await buy(at, order)).toBe(bought(2, { isReplay: true }));
    expect(fleet().charges(order)).toBe(1);
  });

  test('what became of a key is told by the other instance', async () => {
    const order = newOrder();
    const gate = holdPurchase(order.token);
    const buying = buy(a, order);
    await gate.reached;
    expect(await outcomeAt(b, order)).toBe('under_way');
    gate.release();
    expect(await buying).toBe(bought(2));
    expect(await untilNot(['under_way'], () => outcomeAt(b, order))).toBe('done'); // the answer does not wait for the store
    expect(await outcomeAt(b, newOrder())).toBe('outcome_not_found');
  });

  test('a key with another body is refused by the other instance', async () => {
    const order = newOrder();
    expect(await buy(a, order)).toBe(bought(2));
    const other = await ask(b, 'createApiKey', order);
    expect([other.status, (other.json as { readonly code: string }).code].join(' ')).toBe(REUSED);
    expect(fleet().callsOf(order.token)).toHaveLength(1);
  });

  describe.each(['the same', 'another'])('a second click through %s instance', (which) => {
    test.each(KEYS)('is refused while the first is under way, and buys after that: %s', async (_, ...keys) => {
      const at = which === 'the same' ? a : b;
      const [first, second] = keys.map((has) => ({ ...keyIf(has) }));
      const token = secret();
      const gate = holdPurchase(token);
      const buying = buy(a, { token, ...first });
      await gate.reached;
      expect(await buy(at, { token, ...second })).toBe(IN_PROGRESS);
      gate.release();
      expect(await buying).toBe(bought(2));
      expect(await untilNot([IN_PROGRESS], () => buy(at, { token, ...second }))).toBe(bought(3));
      expect(fleet().charges({ token })).toBe(2);
    });
  });

  test('those of other accounts are none of the same, with a key or without', async () => {
    const key = secret('idempotency');
    const orders = [{ token: secret(), key }, { token: secret(), key }, { token: secret() }, { token: secret() }];
    const answers = await Promise.all(orders.map((order, n) => buy(n % 2 === 0 ? a : b, order)));
    expect(answers).toEqual(orders.map(() => bought(2)));
  });

  test('an instance killed with one under way blocks equal ones for its request and a minute, and then no more', async () => {
    const order = { token: secret() };
    const short = await fleet().start({ REQUEST_TIMEOUT_MS: String(REQUEST_MS) });
    fleet().upstream.once((to) => isOf(order.token, to), hang());
    const cut = expect(buy(short, order)).rejects.toThrow();
    await expect.poll(() => fleet().charges(order)).toBe(1);
    short.signal('SIGKILL');
    await cut;
    expect(await buy(b, order)).toBe(IN_PROGRESS);
    expect(await untilNot([IN_PROGRESS], () => buy(b, order))).toBe(UNKNOWN);
    await letPass(fleet(), 60_000);
    expect(await buy(b, order)).toBe(bought(2));
    expect(fleet().charges(order)).toBe(2);
  });

  testWhatIsKept(fleet);
});
