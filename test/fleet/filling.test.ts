import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { gist } from '../idempotency/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { markOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import {
  ask,
  bought,
  buy,
  buyOnce,
  type Fleet,
  newOrder,
  openFleet,
  prime,
  UNAVAILABLE,
  untilNot,
  writeThrough,
} from './fleet.ts';

const CONFIG = 'getReferralConfig';

describe.skipIf(!hasRedis)(`a store that is full${SKIPPED}`, () => {
  let fleet: Fleet;
  let a: NodeGateway;
  let b: NodeGateway;

  beforeEach(async () => {
    fleet = await openFleet();
    [a, b] = await Promise.all([fleet.start(), fleet.start()]);
  }, 30_000);
  afterEach(() => fleet.close(), 30_000);

  /** So much of its memory is used, and both have heard of it, since they take no new copies or begin no more writes. */
  const fill = async (share: number) => {
    const used = Number(/used_memory:(\d+)/.exec(await fleet.redis.client.info('memory'))?.[1]);
    await fleet.redis.client.config('SET', 'maxmemory', String(Math.round(used / share)));
  };
  const untilFull = async () => {
    for (const at of [a, b]) await untilNot([bought(2)], () => buyOnce(at, newOrder()));
  };

  test.each([0.8, 1.2])('%d of its memory: answers reads, refuses beginnings, and takes ends', async (share) => {
    const token = secret();
    for (const at of [a, b]) await prime(at, CONFIG, { token });
    const [known, underWay, unsent] = [newOrder(), newOrder(), newOrder()];
    expect(await buy(a, known)).toBe(bought(2));
    const held = [fleet.holdNext(underWay.token, 'purchasePlan'), fleet.holdNext(token, 'updateReferralConfig')];
    const buying = buyOnce(a, underWay);
    const writing = ask(a, 'updateReferralConfig', { token });
    await Promise.all(held.map(({ reached }) => reached));

    await fill(share);
    await untilFull();
    for (const at of [a, b]) {
      expect(await buyOnce(at, unsent)).toBe(UNAVAILABLE);
      expect(gist(await ask(at, 'updateReferralConfig', { token: secret() }))).toBe(UNAVAILABLE);
      expect(await buy(at, known)).toBe(bought(2, { isReplay: true }));
      expect((await ask(at, CONFIG, { token: secret() })).status).toBe(200);
    }
    expect(fleet.callsOf(unsent.token)).toEqual([]);

    for (const gate of held) gate.release();
    expect(await buying).toBe(bought(2));
    expect((await writing).status).toBe(200);
    for (const at of [a, b]) {
      expect(await buy(at, underWay)).toBe(bought(2, { isReplay: true }));
      expect(markOf((await ask(at, CONFIG, { token })).text)).toBe(2);
    }

    await fleet.redis.client.config('SET', 'maxmemory', '0');
    for (const at of [a, b]) expect(await untilNot([UNAVAILABLE], () => buyOnce(at, newOrder()))).toBe(bought(2));
  });

  test('more than half of its memory: takes no new copies, which each instance then has of its own, and takes writes', async () => {
    await fill(0.6);
    let token = '';
    const calls = async () => {
      token = secret();
      for (const at of [a, b]) await prime(at, CONFIG, { token });
      return String(fleet.callsOf(token).length);
    };
    expect(await untilNot(['1'], calls)).toBe('2'); // both have heard of it
    await writeThrough(b, 'updateReferralConfig', { token });
    for (const at of [a, b]) expect(markOf((await ask(at, CONFIG, { token })).text)).toBe(2);
    expect(await buy(a, newOrder())).toBe(bought(2));
  });
});
