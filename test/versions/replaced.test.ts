import { describe, expect, onTestFinished, test } from 'vitest';
import { ask, bought, buy, newOrder, type Order } from '../fleet/fleet.ts';
import { markOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { mixedFleetOfFile, testNoComplaint } from './mixed-fleet.ts';
import { DIRECTIONS } from './versions.ts';

const CLIENTS = 6;
const REPLAYED = bought(2, { isReplay: true });

describe.skipIf(!hasRedis)(`instances that are replaced one after the other under load${SKIPPED}`, () => {
  const mixed = mixedFleetOfFile();

  test.each(DIRECTIONS)('%s by %s: nothing is lost, sent twice or old', async (from, to) => {
    const { fleet } = mixed();
    const instances = await Promise.all([mixed().start(from), mixed().start(from)]);
    const orders: Order[] = [];
    let turn = 0;
    const over = new AbortController();
    onTestFinished(() => over.abort());
    const next = () => instances[turn++ % instances.length]!;
    const client = async () => {
      while (!over.signal.aborted) {
        const order = newOrder();
        expect(await buy(next(), order)).toBe(bought(2));
        expect(await buy(next(), order)).toBe(REPLAYED);
        for (const at of instances) expect(markOf((await ask(at, 'getSubscription', order)).text)).toBe(2);
        orders.push(order);
      }
    };
    const load = Promise.all(Array.from({ length: CLIENTS }, client));
    /** So that no client still has one that was taken out. */
    const goOn = async () => {
      const until = orders.length + 2 * CLIENTS;
      await Promise.race([expect.poll(() => orders.length, { timeout: 30_000 }).toBeGreaterThan(until), load]);
    };

    for (const [place, leaving] of instances.entries()) {
      instances[place] = await mixed().start(to);
      await goOn();
      const order = newOrder();
      const held = fleet.holdNext(order.token, 'purchasePlan');
      const buying = buy(leaving, order);
      await held.reached;
      leaving.signal('SIGTERM');
      await leaving.until(() => leaving.records().find(({ msg }) => msg.includes('stopping')));
      held.release();
      expect(await buying).toBe(bought(2));
      expect(await leaving.exited).toBe(0);
      orders.push(order);
    }
    await goOn();
    over.abort();
    await load;
    for (const order of orders) {
      for (const at of instances) expect(await buy(at, order)).toBe(REPLAYED);
      expect(fleet.charges(order)).toBe(1);
    }
  });

  testNoComplaint(mixed);
});
