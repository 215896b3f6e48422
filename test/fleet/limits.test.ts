import { beforeAll, describe, expect, test } from 'vitest';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { ask, fleetOfFile, isHit, passCurrent, prime, testWhatIsKept, untilNot } from './fleet.ts';
import { idOf } from '../support/marked.ts';
import { isOf } from '../support/versioned-upstream.ts';

const PER_MINUTE = 20;
const HOLD_SECONDS = 2;

const read = (at: NodeGateway, token: string, id: 'getSubscription' | 'getReferralConfig' = 'getSubscription') =>
  ask(at, id, { token });

describe.skipIf(!hasRedis)(`limits of two instances${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  let a: NodeGateway;
  let b: NodeGateway;

  beforeAll(async () => {
    const env = { RATE_LIMIT_PER_MINUTE: String(PER_MINUTE) };
    [a, b] = await Promise.all([fleet().start(env), fleet().start(env)]);
  }, 30_000);

  test('requests of an account count over both, and for each account separately', async () => {
    const token = secret();
    const answers = await Promise.all(
      Array.from({ length: PER_MINUTE + 10 }, (_, n) => read(n % 2 === 0 ? a : b, token)),
    );
    const passed = answers.filter(({ status }) => status === 200).length;
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(answers.length - passed);
    // At most half of it is held in advance. Where the store is late, on a busy machine, an instance counts on its own.
    expect(passed).toBeGreaterThanOrEqual(PER_MINUTE / 2);
    expect(passed).toBeLessThan(PER_MINUTE + 5);
    for (const at of [a, b]) {
      await untilNot(['200'], async () => String((await read(at, token)).status)); // it may hold some
      expect((await read(at, secret())).status).toBe(200);
    }
  });

  test('a 429 of the upstream to one holds back the calls of the other, for as long as it said', async () => {
    const token = secret();
    fleet().upstream.once(
      (to) => isOf(token, to),
      json(429, '{"detail":"Slow down."}', { 'Retry-After': String(HOLD_SECONDS) }),
    );
    expect((await read(a, token)).status).toBe(429);
    const heldAt = performance.now();
    expect((await ask(b, 'createApiKey', { token })).status).toBe(429); // a write that touches nothing cached, too
    const held = await read(b, token, 'getReferralConfig');
    expect(held.status).toBe(429);
    expect(Number(held.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(fleet().callsOf(token)).toHaveLength(1);
    // No more requests than the limit lets through.
    const statusThen = async () => (await read(b, token, 'getReferralConfig')).status;
    await expect.poll(statusThen, { timeout: 10_000, interval: 250 }).toBe(200);
    expect(performance.now() - heldAt).toBeGreaterThan(HOLD_SECONDS * 1000 - 250);
    expect(fleet().callsOf(token)).toHaveLength(2);
  });

  test.each([401, 403])('a %i to one drops the copies in both', async (status) => {
    const token = secret();
    for (const at of [a, b]) await prime(at, 'getSubscription', { token });
    fleet().upstream.once(
      (to) => isOf(token, to) && idOf(to) === 'getReferralConfig',
      json(status, '{"detail":"No."}'),
    );
    expect((await read(a, token, 'getReferralConfig')).status).toBe(status);
    await passCurrent();
    expect(isHit(await read(b, token))).toBe(false);
    fleet().upstream.once(
      (to) => isOf(token, to) && idOf(to) === 'getReferralConfig',
      json(status, '{"detail":"No."}'),
    );
    expect((await read(b, token, 'getReferralConfig')).status).toBe(status);
    await passCurrent();
    expect(isHit(await read(a, token))).toBe(false);
  });

  testWhatIsKept(fleet);
});
