import { beforeAll, describe, expect, test } from 'vitest';
import { times } from '../support/times.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { markOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { ask, bought, buy, fleetOfFile, isHit, newOrder, prime } from './fleet.ts';

const READS = times(2_000);
const KINDS = ['getSubscription', 'getReferralConfig', 'listPaymentMethods'] as const;

describe.skipIf(!hasRedis)(`a store above three quarters of its memory${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  let a: NodeGateway;
  let b: NodeGateway;

  beforeAll(async () => {
    [a, b] = await Promise.all([fleet().start(), fleet().start()]);
    const { client } = fleet().redis;
    const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
    await client.config('SET', 'maxmemory', String(Math.round(used / 0.8)));
  }, 30_000);

  test(`takes no new copies: ${READS} reads are answered from the instance's own`, async () => {
    const token = secret();
    for (const id of KINDS) await ask(a, id, { token });
    for (let n = 0; n < READS; n++) expect(isHit(await ask(a, KINDS[n % KINDS.length]!, { token }))).toBe(true);
    expect(fleet().callsOf(token)).toHaveLength(KINDS.length);
    expect(isHit(await ask(b, KINDS[0], { token }))).toBe(false); // it has none, and makes one
    await prime(b, KINDS[0], { token });
    expect(isHit(await ask(b, KINDS[0], { token }))).toBe(true);
    expect(fleet().callsOf(token)).toHaveLength(KINDS.length + 1);
  });

  test('takes every write, after which no copy of before is given by anyone', async () => {
    const token = secret();
    for (const at of [a, b]) await prime(at, 'getReferralConfig', { token });
    expect((await ask(b, 'updateReferralConfig', { token })).status).toBe(200);
    for (const at of [a, b]) expect(markOf((await ask(at, 'getReferralConfig', { token })).text)).toBe(2);
    for (const at of [a, b]) await prime(at, 'getReferralConfig', { token });
    const order = newOrder();
    expect(await buy(a, order)).toBe(bought(2));
    expect(await buy(b, order)).toBe(bought(2, { isReplay: true }));
  });
});
