import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  bought,
  buy,
  buyOnce,
  fleetOfFile,
  newOrder,
  type Order,
  testWhatIsKept,
  UNAVAILABLE,
  untilNot,
} from './fleet.ts';
import { type Relay, startRelay, SWAP } from './relay.ts';
import { IN_PROGRESS, UNKNOWN } from '../idempotency/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { exampleInput } from '../support/examples.ts';
import { openSocket } from '../support/raw-client.ts';
import { nodeDigest } from '../../src/entry/node/digest.ts';
import { ID, PREFIX } from '../../src/entry/node/redis/scripts.ts';
import { hasRedis, SKIPPED, type TestRedis } from '../support/redis.ts';
import { barrier, bytes, hang, hold, httpResponse, letRead, reply, type Step } from '../support/scripted-upstream.ts';
import { isOf } from '../support/versioned-upstream.ts';
import type { Env } from '../support/world.ts';

/** A record of a killed instance is one of unknown outcome when this and a little more is over. */
const SHORT = { REQUEST_TIMEOUT_MS: '2000' };

const REPLAYED = bought(2, { isReplay: true });
const PATIENCE = { timeout: 50_000, interval: 20 };

/** Counts how often a store is asked from now on to replace the note of an account, by its log of slow commands. */
async function swapsOf({ client }: TestRedis, account: string) {
  await client.config('SET', 'slowlog-log-slower-than', 0);
  await client.slowlog('RESET');
  const isSwap = ([name = '', , , id, note]: readonly string[]) =>
    /^evalsha$/i.test(name) && id === ID && note === `${PREFIX}${account}:note`;
  return async () => {
    const slow = (await client.slowlog('GET', 128)) as readonly (readonly [number, number, number, string[]])[];
    return slow.filter(([, , , words]) => isSwap(words)).length;
  };
}

const kill = async (instance: NodeGateway) => {
  instance.signal('SIGKILL');
  await instance.exited;
};

/** Sends through the one that will be killed; whether its client gets an answer is another matter. */
const send = (at: NodeGateway, order: Order) => buy(at, order).catch(() => 'cut');

describe.skipIf(!hasRedis)(`an instance killed in mid-purchase${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  const relays: Relay[] = [];
  /** What was the last word on each order. */
  const ends: { readonly order: Order; readonly end: string }[] = [];
  let other: NodeGateway;
  /** Before the upstream, for all of them: its address is part of every name. */
  let relay: Relay;

  afterAll(() => Promise.all(relays.map((one) => one.close())));

  beforeAll(async () => {
    relay = await relayTo(Number(new URL(fleet().upstream.url).port));
    other = await start();
  }, 30_000);

  const start = (env: Env = {}) =>
    fleet().start({ ...SHORT, UPSTREAM_BASE_URL: `http://127.0.0.1:${relay.port}`, ...env });

  const accountOf = ({ token }: Order) =>
    nodeDigest([fleet().secrets], `http://127.0.0.1:${relay.port}/`).account(token);

  const script = (order: Order, step: Step) => fleet().upstream.once((to) => isOf(order.token, to), step);

  /** How the order stands once the request must be over; what was said of it before is one of `meanwhile`. */
  const inTheEnd = async (order: Order, meanwhile: readonly string[] = [IN_PROGRESS]) => {
    const seen = await untilNot(meanwhile, () => buy(other, order));
    const end = seen === bought(2) ? REPLAYED : seen;
    expect(await buy(other, order)).toBe(end);
    expect(fleet().charges(order)).toBeLessThanOrEqual(1);
    ends.push({ order, end });
    return seen;
  };

  const expectUnknown = async (order: Order, charges: number) => {
    expect(await inTheEnd(order)).toBe(UNKNOWN);
    expect(fleet().charges(order)).toBe(charges);
  };

  const expectSentNow = async (order: Order, meanwhile: readonly string[]) => {
    expect(fleet().charges(order)).toBe(0);
    expect(await inTheEnd(order, meanwhile)).toBe(bought(2));
    expect(fleet().charges(order)).toBe(1);
  };

  const relayTo = async (port: number) => {
    const one = await startRelay(port);
    relays.push(one);
    return one;
  };

  /** An instance with a store that stops hearing it where its first write begins, or ends. */
  const silentAt = async (which: 'beginning' | 'end', isOnce = false) => {
    const before = await relayTo(fleet().redis.port);
    const one = await start({ STORE_URL: `redis://127.0.0.1:${before.port}` });
    const held = before.freeze({ at: SWAP, skip: which === 'end' ? 1 : 0, isOnce, isAlone: true });
    return { one, held, before };
  };

  describe.concurrent('sends it no second time:', () => {
    test('while the body was still coming in: it can be sent at once', async () => {
      const order = newOrder();
      const one = await start();
      const socket = await openSocket(one.port);
      const { path } = exampleInput('purchasePlan');
      const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Token ${order.token}\r\n`;
      const rest = `Idempotency-Key: ${order.key}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"te`;
      await socket.write(head + rest);
      expect(await buy(one, newOrder())).toBe(bought(2)); // so it has long begun with the other
      await kill(one);
      await socket.closed;
      await expectSentNow(order, []);
    });

    test('when the head was on its way, which never came: it is of unknown outcome', async () => {
      const order = newOrder();
      const held = relay.freeze({ at: new RegExp(order.token) });
      const one = await start();
      const sent = send(one, order);
      await held.reached;
      await kill(one);
      expect(await sent).toBe('cut');
      await expectUnknown(order, 0);
    });

    test('when the request was on its way, which comes late: it is sent no second time', async () => {
      const order = newOrder();
      const held = relay.freeze({ at: new RegExp(order.token) });
      const one = await start();
      const sent = send(one, order);
      await held.reached;
      await kill(one);
      await sent;
      expect(await buy(other, order)).toBe(IN_PROGRESS);
      held.release();
      await vi.waitFor(() => expect(fleet().charges(order)).toBe(1), { timeout: 5_000 });
      await expectUnknown(order, 1);
    });

    test('when the upstream had all of it and had not answered: it is of unknown outcome', async () => {
      const order = newOrder();
      const gate = barrier();
      script(order, reply(hold(gate), fleet().answer()));
      const one = await start();
      const sent = send(one, order);
      await gate.reached;
      await kill(one);
      expect(await sent).toBe('cut');
      expect(await buy(other, order)).toBe(IN_PROGRESS);
      await expectUnknown(order, 1);
    });

    test('when the upstream had answered half: it is of unknown outcome', async () => {
      const order = newOrder();
      const half = httpResponse(201, '{"payment_required":false}').subarray(0, -9);
      const gate = barrier();
      script(order, reply(bytes(half), letRead(), hold(gate), hang()));
      const one = await start();
      const sent = send(one, order);
      await gate.reached;
      await kill(one);
      expect(await sent).toBe('cut');
      expect(await buy(other, order)).toBe(IN_PROGRESS);
      await expectUnknown(order, 1);
    });

    /** Rounds of the event loop, ours, between the last byte of the answer and the kill. */
    test.each([0, 8, 64, 256, 1024, 4096])(
      '%i rounds of the event loop after the upstream had answered',
      async (rounds) => {
        const order = newOrder();
        const one = await start();
        const pauses = Array.from({ length: rounds }, () => letRead());
        const killing: Step = async () => one.signal('SIGKILL');
        script(order, reply(fleet().answer(), ...pauses, killing));
        const sent = await send(one, order);
        await one.exited;
        expect(['cut', bought(2)]).toContain(sent);
        const end = await inTheEnd(order);
        expect(sent === 'cut' ? [UNKNOWN, REPLAYED] : [REPLAYED]).toContain(end);
        expect(fleet().charges(order)).toBe(1);
        process.stdout.write(
          `killed ${rounds} rounds after the answer: ${end === REPLAYED ? 'replayed' : 'unknown'}\n`,
        );
      },
    );

    test('when its client had the answer: that is replayed', async () => {
      const order = newOrder();
      const one = await start();
      expect(await buy(one, order)).toBe(bought(2));
      await kill(one);
      expect(await inTheEnd(order, [])).toBe(REPLAYED);
    });

    describe('the store did not get its beginning', () => {
      test('but first the report that it was not sent: it can be sent at once, and the late beginning does nothing', async () => {
        const order = newOrder();
        const { one, held, before } = await silentAt('beginning', true);
        expect(await buyOnce(one, order)).toBe(UNAVAILABLE);
        await vi.waitFor(() => expect(before.asked).toContain('swap'), PATIENCE); // that one was the end
        const swaps = await swapsOf(fleet().redis, await accountOf(order));
        held.release();
        await vi.waitFor(async () => expect(await swaps()).toBe(1), PATIENCE);
        await expectSentNow(order, []);
      });

      test('and the instance was killed: it can be sent at once', async () => {
        const order = newOrder();
        const { one, held, before } = await silentAt('beginning');
        const sent = send(one, order);
        await held.reached;
        await kill(one);
        await sent;
        await before.close();
        await expectSentNow(order, []);
      });

      test('until after the kill: it is of unknown outcome', async () => {
        const order = newOrder();
        const { one, held, before } = await silentAt('beginning');
        const sent = send(one, order);
        await held.reached;
        await kill(one);
        await sent;
        held.release();
        await vi.waitFor(() => expect(before.asked).toContain('swap'), PATIENCE);
        expect(await untilNot([UNAVAILABLE], () => buy(other, order))).toBe(IN_PROGRESS);
        await expectUnknown(order, 0);
      });
    });

    describe('the store did not get its end', () => {
      test('until later, by a retry: it is replayed', async () => {
        const order = newOrder();
        const { one, held } = await silentAt('end');
        expect(await buy(one, order)).toBe(bought(2));
        expect(await buy(other, order)).toBe(IN_PROGRESS);
        held.release();
        expect(await inTheEnd(order)).toBe(REPLAYED);
        expect(await buy(one, order)).toBe(REPLAYED);
      });

      test('and the instance was killed: it is of unknown outcome', async () => {
        const order = newOrder();
        const { one, held, before } = await silentAt('end');
        const sent = send(one, order);
        await held.reached;
        await kill(one);
        await sent;
        await before.close();
        expect(await buy(other, order)).toBe(IN_PROGRESS);
        await expectUnknown(order, 1);
      });

      test('until after the kill: it is replayed', async () => {
        const order = newOrder();
        const { one, held } = await silentAt('end');
        const sent = send(one, order);
        await held.reached;
        await kill(one);
        await sent;
        held.release();
        expect(await inTheEnd(order)).toBe(REPLAYED);
        expect(fleet().charges(order)).toBe(1);
      });
    });
  });

  test('the first one, started again, answers the same to each of them', async () => {
    const charges = ends.map(({ order }) => fleet().charges(order));
    const again = await start();
    expect(ends.length).toBeGreaterThan(14);
    for (const { order, end } of ends) expect(await buy(again, order)).toBe(end);
    expect(ends.map(({ order }) => fleet().charges(order))).toEqual(charges);
  });

  testWhatIsKept(fleet);
});
