import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { ask, fleetOfFile, isHit, prime } from './fleet.ts';

const READ = 'getReferralConfig';

describe.skipIf(!hasRedis)(`a Redis that closes connections on which nothing is said${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  let at: NodeGateway;

  beforeAll(async () => {
    at = await fleet().start();
  }, 30_000);

  test('costs no copy, and the log is quiet', async () => {
    const token = secret();
    const { redis } = fleet();
    await prime(at, READ, { token });
    const calls = fleet().callsOf(token).length;
    for (let n = 0; n < 8; n++) {
      const before = await redis.connections();
      await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await vi.waitFor(async () => expect(await redis.connections()).toBeGreaterThan(before), 5_000);
      expect(isHit(await ask(at, READ, { token }))).toBe(true);
    }
    expect(fleet().callsOf(token)).toHaveLength(calls);
    const about = at.records().filter(({ msg, reason }) => /store/.test(msg) && reason !== 'NOT_PERSISTENT');
    expect(about).toEqual([]);
  });
});
