import { beforeAll, describe, expect, test } from 'vitest';
import { KNOWN_MS } from '../../src/store/shared/changes.ts';
import { ask, bought, buy, fleetOfFile, newOrder, testWhatIsKept, untilNot } from './fleet.ts';
import { IN_PROGRESS, REUSED, UNKNOWN } from '../idempotency/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { call } from '../support/http.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { barrier, type Barrier, hang, hold, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { isOf } from '../support/versioned-upstream.ts';
import { idOf } from '../support/marked.ts';

const CLIENTS = 100;
const REQUEST_MS = 1_000;

const timesOf = (answers: readonly string[], answer: string) => answers.filter((one) => one === answer).length;

const outcomeAt = async (at: NodeGateway, { token, key }: { readonly token: string; readonly key: string }) => {
  const answer = await call(at.url, { path: '/bff/v1/outcome', token, headers: { 'Idempotency-Key': key } });
  const { state, code } = answer.json as { readonly state?: string; readonly code?: string };
  return state ?? code ?? '';
};

/** Not told yet, or by a store that is late. */
const UNTOLD = ['outcome_not_found', 'under_way', 'store_unavailable'];

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

  test(`of ${CLIENTS} with one key at once one is sent, and the others learn that it is under way`, async () => {
    const order = newOrder();
    const gate = holdPurchase(order.token);
    const { answers, allButOne, all } = crowd(order, CLIENTS);
    await allButOne;
    expect(timesOf(answers, IN_PROGRESS)).toBe(CLIENTS - 1);
    gate.release();
    await all;
    expect(timesOf(answers, bought(2))).toBe(1);
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
    for (const at of [a, b]) expect(await buy(at, order)).toBe(bought(2, { isReplay: true }));
    expect(fleet().charges(order)).toBe(1);
  });

  test('what became of a key is told by the other instance, not before a hit may be from before the write', async () => {
    const order = newOrder();
    const gate = holdPurchase(order.token);
    const buying = buy(a, order);
    await gate.reached;
    expect(await outcomeAt(b, order)).toBe('under_way');
    gate.release();
    expect(await buying).toBe(bought(2));
    expect(await outcomeAt(b, order)).toBe('done');
    for (let time = 0; time < 5; time++) {
      const next = newOrder();
      const begunAt = performance.now(); // its announcement is later
      const answer = buy(a, next);
      expect(await untilNot(UNTOLD, () => outcomeAt(b, next))).toBe('done');
      expect(performance.now() - begunAt).toBeGreaterThanOrEqual(KNOWN_MS);
      await answer;
    }
  });

  test('a key with another body is refused by the other instance', async () => {
    const order = newOrder();
    expect(await buy(a, order)).toBe(bought(2));
    const other = await ask(b, 'createApiKey', order);
    expect([other.status, (other.json as { readonly code: string }).code].join(' ')).toBe(REUSED);
    expect(fleet().callsOf(order.token)).toHaveLength(1);
  });

  test('of two equal ones without a key at once the second is refused, and afterwards one may follow', async () => {
    const order = { token: secret() };
    const gate = holdPurchase(order.token);
    const { answers, allButOne, all } = crowd(order, 2);
    await allButOne;
    expect(answers).toEqual([IN_PROGRESS]);
    gate.release();
    await all;
    expect(answers).toEqual([IN_PROGRESS, bought(2)]);
    expect(await buy(b, order)).toBe(bought(3));
    expect(await buy(a, order)).toBe(bought(4));
    expect(fleet().charges(order)).toBe(3);
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
    const killedAt = performance.now();
    expect(await buy(b, order)).toBe(IN_PROGRESS);
    expect(await untilNot([IN_PROGRESS], () => buy(b, order))).toBe(UNKNOWN);
    expect(performance.now() - killedAt).toBeLessThan(REQUEST_MS + 5_000);
    await fleet().redis.pass(60_000);
    expect(await buy(b, order)).toBe(bought(2));
    expect(fleet().charges(order)).toBe(2);
  });

  testWhatIsKept(fleet);
});
