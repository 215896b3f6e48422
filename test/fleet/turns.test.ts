import { beforeAll, describe, expect, test } from 'vitest';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { barrier } from '../support/barrier.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { hold, reply, reset } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { ask, fleetOfFile, LONG } from './fleet.ts';
import { isOf } from '../support/versioned-upstream.ts';

describe.skipIf(!hasRedis)(`equal reads through two instances${SKIPPED}`, LONG, () => {
  const fleet = fleetOfFile();
  let both: readonly NodeGateway[];

  beforeAll(async () => {
    both = await Promise.all([fleet().start(), fleet().start()]);
  }, 30_000);

  const readers = (count: number, token: string) =>
    Array.from({ length: count }, (_, n) => ask(both[n % 2]!, 'getSubscription', { token }));

  test('at the same moment cost one upstream call', async () => {
    const token = secret();
    const gate = barrier();
    fleet().upstream.once((to) => isOf(token, to), reply(hold(gate), fleet().answer()));
    const answers = readers(40, token);
    await gate.count(1);
    gate.release();
    const seen = await Promise.all(answers);
    expect(new Set(seen.map(({ text }) => text)).size).toBe(1);
    const asked = seen.filter(({ headers }) => headers['cache-status'] === 'portico; fwd=miss; stored');
    expect(asked).toHaveLength(1); // the others have joined it, or come when its copy was there
    expect(fleet().callsOf(token)).toHaveLength(1);
  });

  test('do not share a failure: whoever waited asks for itself', async () => {
    const token = secret();
    const gate = barrier();
    fleet().upstream.once((to) => isOf(token, to), reply(hold(gate), reset()));
    const answers = readers(10, token);
    await gate.count(1);
    gate.release();
    for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
    expect(fleet().callsOf(token).length).toBeLessThanOrEqual(3);
  });
});
