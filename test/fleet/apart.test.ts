import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { markOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { VersionedUpstream } from '../support/versioned-upstream.ts';
import { ask, bought, buy, fleetOfFile, newOrder, prime, testWhatIsKept, untilNot, writeThrough } from './fleet.ts';

const READ = 'getReferralConfig';
const PER_MINUTE = 30;

describe.skipIf(!hasRedis)(`two upstreams over one store, under the same secrets and credentials${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  let staging: VersionedUpstream;
  let real: NodeGateway;
  let other: NodeGateway;

  beforeAll(async () => {
    staging = new VersionedUpstream(await startUpstream());
    const env = { RATE_LIMIT_PER_MINUTE: String(PER_MINUTE) };
    [real, other] = await Promise.all([
      fleet().start(env),
      fleet().start({ ...env, UPSTREAM_BASE_URL: staging.upstream.url }),
    ]);
  }, 30_000);

  afterAll(() => staging.upstream.close());

  test('have separate copies, and invalidate only their own', async () => {
    const token = secret();
    staging.change(token);
    await prime(real, READ, { token });
    await prime(other, READ, { token });
    const marks = async () => [
      markOf((await ask(real, READ, { token })).text),
      markOf((await ask(other, READ, { token })).text),
    ];
    expect(await marks()).toEqual([1, 2]);
    await writeThrough(other, 'updateReferralConfig', { token });
    await prime(real, READ, { token });
    expect(await marks()).toEqual([1, 3]);
  });

  test('have their keys and purchases apart', async () => {
    const order = newOrder();
    const held = fleet().holdNext(order.token, 'purchasePlan');
    const buying = buy(real, order);
    await held.reached;
    expect(await buy(other, order)).toBe(bought(2));
    held.release();
    expect(await buying).toBe(bought(2));
    for (const at of [real, other]) expect(await buy(at, order)).toBe(bought(2, { isReplay: true }));
    expect([fleet().charges(order), staging.charges(order)]).toEqual([1, 1]);
  });

  test('have their limits apart', async () => {
    const token = secret();
    await untilNot(['200'], async () => String((await ask(real, 'getApiKey', { token })).status));
    expect((await ask(other, 'getApiKey', { token })).status).toBe(200);
  });

  testWhatIsKept(fleet);
});
