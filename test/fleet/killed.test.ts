import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type ScriptName, SCRIPTS } from '../../src/entry/node/redis/scripts.ts';
import {
  bought,
  buy,
  buyOnce,
  fleetOfFile,
  LONG,
  newOrder,
  type Order,
  testWhatIsKept,
  UNAVAILABLE,
  untilNot,
} from './fleet.ts';
import { type Relay, startRelay } from './relay.ts';
import { IN_PROGRESS, UNKNOWN } from '../idempotency/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { exampleInput } from '../support/examples.ts';
import { openSocket } from '../support/raw-client.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { barrier, bytes, hang, hold, httpResponse, letRead, reply, type Step } from '../support/scripted-upstream.ts';
import { isOf } from '../support/versioned-upstream.ts';

/** A record of a killed instance is one of unknown outcome when this and a little more is over. */
const SHORT = { REQUEST_TIMEOUT_MS: '1000' };

/** What a command that runs a script has in it. */
const shaOf = (name: ScriptName) => createHash('sha1').update(SCRIPTS[name]).digest('hex');

const REPLAYED = bought(2, { isReplay: true });

const kill = async (instance: NodeGateway) => {
  instance.signal('SIGKILL');
  await instance.exited;
};

/** Sends through the one that will be killed; whether its client gets an answer is another matter. */
const send = (at: NodeGateway, order: Order) => buy(at, order).catch(() => 'cut');

describe.skipIf(!hasRedis)(`an instance killed in mid-purchase${SKIPPED}`, LONG, () => {
  const fleet = fleetOfFile();
  const relays: Relay[] = [];
  /** What was the last word on each order. */
  const ends: { readonly order: Order; readonly end: string }[] = [];
  let other: NodeGateway;

  afterAll(() => Promise.all(relays.map((relay) => relay.close())));

  beforeAll(async () => {
    other = await fleet().start(SHORT);
    await buy(other, newOrder()); // its scripts are then known to the store
  }, 30_000);

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
    const relay = await startRelay(port);
    relays.push(relay);
    return relay;
  };

  const upstreamPort = () => Number(new URL(fleet().upstream.url).port);

  /** An instance with a store that stops hearing it at the first use of this script. */
  const deafAt = async (name: ScriptName) => {
    const relay = await relayTo(fleet().redis.port);
    const held = relay.freezeAt(shaOf(name));
    const one = await fleet().start({ ...SHORT, STORE_URL: `redis://127.0.0.1:${relay.port}` });
    return { one, held, relay };
  };

  describe.concurrent('sends it no second time:', () => {
    test('while the body was still coming in: it can be sent at once', async () => {
      const order = newOrder();
      const one = await fleet().start(SHORT);
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

    test('when it had connected to the upstream: it is of unknown outcome', async () => {
      const order = newOrder();
      const relay = await relayTo(upstreamPort());
      const held = relay.freezeAt('POST');
      const one = await fleet().start({ ...SHORT, UPSTREAM_BASE_URL: `http://127.0.0.1:${relay.port}` });
      const sent = send(one, order);
      await relay.connected;
      await kill(one);
      expect(await sent).toBe('cut');
      await expectUnknown(order, 0);
      held.release();
    });

    test('when the head was on its way, which never came: it is of unknown outcome', async () => {
      const order = newOrder();
      const relay = await relayTo(upstreamPort());
      const held = relay.freezeAt('POST');
      const one = await fleet().start({ ...SHORT, UPSTREAM_BASE_URL: `http://127.0.0.1:${relay.port}` });
      const sent = send(one, order);
      await held.reached;
      await kill(one);
      expect(await sent).toBe('cut');
      await expectUnknown(order, 0);
    });

    test('when the request was on its way, which comes late: it is sent no second time', async () => {
      const order = newOrder();
      const relay = await relayTo(upstreamPort());
      const held = relay.freezeAt('POST');
      const one = await fleet().start({ ...SHORT, UPSTREAM_BASE_URL: `http://127.0.0.1:${relay.port}` });
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
      const one = await fleet().start(SHORT);
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
      const one = await fleet().start(SHORT);
      const sent = send(one, order);
      await gate.reached;
      await kill(one);
      expect(await sent).toBe('cut');
      expect(await buy(other, order)).toBe(IN_PROGRESS);
      await expectUnknown(order, 1);
    });

    /** Turns of the event loop, ours, between the last byte of the answer and the kill. */
    test.each([0, 8, 64, 256, 1024, 4096])('%i turns after the upstream had answered', async (turns) => {
      const order = newOrder();
      const one = await fleet().start(SHORT);
      const pauses = Array.from({ length: turns }, () => letRead());
      const killing: Step = async () => one.signal('SIGKILL');
      script(order, reply(fleet().answer(), ...pauses, killing));
      const sent = await send(one, order);
      await one.exited;
      expect(['cut', bought(2)]).toContain(sent);
      const end = await inTheEnd(order);
      expect(sent === 'cut' ? [UNKNOWN, REPLAYED] : [REPLAYED]).toContain(end);
      expect(fleet().charges(order)).toBe(1);
      process.stdout.write(`killed ${turns} turns after the answer: ${end === REPLAYED ? 'replayed' : 'unknown'}\n`);
    });

    test('when its client had the answer: that is replayed', async () => {
      const order = newOrder();
      const one = await fleet().start(SHORT);
      expect(await buy(one, order)).toBe(bought(2));
      await kill(one);
      expect(await inTheEnd(order, [])).toBe(REPLAYED);
    });

    describe('the store hung between the claim and the send', () => {
      test('and came back: nothing was sent, and it can be now', async () => {
        const order = newOrder();
        const { one, held } = await deafAt('advance');
        expect(await buyOnce(one, order)).toBe(UNAVAILABLE);
        expect(fleet().charges(order)).toBe(0);
        held.release();
        await expectSentNow(order, [IN_PROGRESS, UNAVAILABLE]);
      });

      test('and the instance was killed: it can be sent when the request must be over', async () => {
        const order = newOrder();
        const { one, held, relay } = await deafAt('advance');
        const sent = send(one, order);
        await held.reached;
        await kill(one);
        await sent;
        await relay.close();
        expect(await buy(other, order)).toBe(IN_PROGRESS);
        await expectSentNow(order, [IN_PROGRESS]);
      });

      test('and heard the killed instance later: it is of unknown outcome', async () => {
        const order = newOrder();
        const { one, held } = await deafAt('advance');
        const sent = send(one, order);
        await held.reached;
        await kill(one);
        await sent;
        held.release();
        await expectUnknown(order, 0);
      });
    });

    describe('the store hung between the answer and its record', () => {
      test('and came back: the answer is replayed', async () => {
        const order = newOrder();
        const { one, held } = await deafAt('settle');
        expect(await buy(one, order)).toBe(bought(2));
        expect(await buy(other, order)).toBe(IN_PROGRESS);
        held.release();
        expect(await inTheEnd(order)).toBe(REPLAYED);
        expect(await buy(one, order)).toBe(REPLAYED);
      });

      test('and the instance was killed: it is of unknown outcome', async () => {
        const order = newOrder();
        const { one, held, relay } = await deafAt('settle');
        const sent = send(one, order);
        await held.reached;
        await kill(one);
        await sent;
        await relay.close();
        expect(await buy(other, order)).toBe(IN_PROGRESS);
        await expectUnknown(order, 1);
      });

      test('and heard the killed instance later: the answer is replayed', async () => {
        const order = newOrder();
        const { one, held } = await deafAt('settle');
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

  test('the first one started anew says the same of each of them', async () => {
    const charges = ends.map(({ order }) => fleet().charges(order));
    const again = await fleet().start(SHORT);
    expect(ends.length).toBeGreaterThan(15);
    for (const { order, end } of ends) expect(await buy(again, order)).toBe(end);
    expect(ends.map(({ order }) => fleet().charges(order))).toEqual(charges);
  });

  testWhatIsKept(fleet);
});
