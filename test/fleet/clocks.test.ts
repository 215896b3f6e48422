import { beforeAll, describe, expect, test } from 'vitest';
import { PREFIX } from '../../src/entry/node/redis/scripts.ts';
import { IN_PROGRESS, UNKNOWN } from '../idempotency/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { markOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { hang } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { isOf } from '../support/versioned-upstream.ts';
import { ask, bought, buy, fleetOfFile, isHit, newOrder, prime, untilNot, writeThrough } from './fleet.ts';
import { letPass } from './time.ts';

const HOUR_MS = 3_600_000;
const READ = 'getReferralConfig';

/** The clock of the machine is off from the start by so much, and by as much again after each SIGUSR2. */
const clockOff = (ms: number) => `
  let off = ${ms};
  const now = Date.now;
  Date.now = () => now() + off;
  Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + off });
  process.on('SIGUSR2', () => {
    off += ${ms};
    console.log('the clock was set');
  });`;

describe.skipIf(!hasRedis)(`instances whose clocks differ${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  const SHORT = { REQUEST_TIMEOUT_MS: '2000' };
  let right: NodeGateway;
  let ahead: NodeGateway;
  let behind: NodeGateway;

  const startOff = (ms: number) =>
    fleet().start({ ...SHORT, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(clockOff(ms))}` });

  beforeAll(async () => {
    [right, ahead, behind] = await Promise.all([fleet().start(SHORT), startOff(HOUR_MS), startOff(-HOUR_MS)]);
  }, 30_000);

  const PAIRS = [
    ['ahead', 'right', () => ({ one: ahead, other: right })],
    ['behind', 'right', () => ({ one: behind, other: right })],
    ['right', 'ahead', () => ({ one: right, other: ahead })],
    ['right', 'behind', () => ({ one: right, other: behind })],
    ['ahead', 'behind', () => ({ one: ahead, other: behind })],
    ['behind', 'ahead', () => ({ one: behind, other: ahead })],
  ] as const;

  describe.each(PAIRS)('one %s and one %s', (_, __, pair) => {
    const one = () => pair().one;
    const other = () => pair().other;

    test('give the same age to a copy, fresh or stale', async () => {
      const token = secret();
      const copies = async () => (await fleet().redis.client.keys(`${PREFIX}*:c:*`)).length;
      const before = await copies();
      await ask(one(), READ, { token });
      await expect.poll(copies).toBe(before + 1); // it is kept behind the answer
      const copy = await ask(other(), READ, { token });
      expect([isHit(copy), Number(copy.headers['age'])]).toEqual([true, expect.toSatisfy((age) => age <= 2)]);
      await letPass(fleet(), 31_000);
      const third = [ahead, behind, right].find((at) => at !== one() && at !== other())!; // which has no copy of its own
      const stale = await ask(third, READ, { token });
      expect([stale.headers['cache-status'], Number(stale.headers['age'])]).toEqual([
        expect.stringMatching(/^portico; hit; ttl=-\d$/),
        expect.toSatisfy((age) => age >= 30 && age < 35),
      ]);
    });

    test('see each other write', async () => {
      const token = secret();
      for (const at of [one(), other()]) await prime(at, READ, { token });
      for (let version = 2; version < 5; version++) {
        expect((await ask(one(), 'updateReferralConfig', { token })).status).toBe(200);
        for (const at of [other(), one()]) expect(markOf((await ask(at, READ, { token })).text)).toBe(version);
        for (const at of [other(), one()]) await prime(at, READ, { token });
      }
    });

    test('wait as long for each other, and remember as long', async () => {
      const order = newOrder();
      fleet().upstream.once((to) => isOf(order.token, to), hang());
      const buying = buy(one(), order);
      await fleet().upstream.waitForCalls(1, (to) => isOf(order.token, to));
      expect(await buy(other(), order)).toBe(IN_PROGRESS);
      expect(await buying).toBe('504 upstream_timeout unknown');
      expect(await untilNot([IN_PROGRESS], () => buy(other(), order))).toBe(UNKNOWN);
      expect(fleet().charges(order)).toBe(1);
    });
  });

  test('go on as before when a clock is set while they run', async () => {
    const token = secret();
    for (const at of [ahead, behind, right]) await prime(at, READ, { token });
    for (const at of [ahead, behind]) {
      at.signal('SIGUSR2');
      await at.until(() => at.stdout().includes('the clock was set') || undefined);
    }
    for (const at of [ahead, behind, right]) {
      await prime(at, READ, { token }); // one whose clock was set goes without its store until that has answered again
      const copy = await ask(at, READ, { token });
      expect([isHit(copy), Number(copy.headers['age'])]).toEqual([true, expect.toSatisfy((age) => age < 10)]);
      const order = newOrder();
      expect(await buy(at, order)).toBe(bought(2));
      for (const again of [ahead, behind, right]) expect(await buy(again, order)).toBe(bought(2, { isReplay: true }));
    }
    await writeThrough(ahead, 'updateReferralConfig', { token });
    for (const at of [behind, right, ahead]) expect(markOf((await ask(at, READ, { token })).text)).toBe(2);
  });
});
