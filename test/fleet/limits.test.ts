import { beforeAll, describe, expect, test } from 'vitest';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { idOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { isOf } from '../support/versioned-upstream.ts';
import { ask, fleetOfFile, isHit, prime, testWhatIsKept, untilNot } from './fleet.ts';

const PER_MINUTE = 20;

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

  test.each([
    ['at once', (asking: (() => Promise<string>)[]) => Promise.all(asking.map((one) => one()))],
    [
      'one after the other',
      async (asking: (() => Promise<string>)[]) => {
        const answers: string[] = [];
        for (const one of asking) answers.push(await one());
        return answers;
      },
    ],
  ])('of an account are never exceeded together, and those of others are their own: %s', async (_, all) => {
    const token = secret();
    const asking = Array.from(
      { length: 3 * PER_MINUTE },
      (__, n) => async () => String((await read(n % 2 === 0 ? a : b, token)).status),
    );
    let answers: readonly string[] = [];
    const minutes = await fleet().minutesOf(async () => (answers = await all(asking)));
    const passed = answers.filter((status) => status === '200').length;
    expect(answers.filter((status) => status === '429')).toHaveLength(answers.length - passed);
    expect(passed).toBeLessThanOrEqual(PER_MINUTE * minutes);
    // Each of the two may hold an eighth that it does not come to use.
    expect(passed).toBeGreaterThanOrEqual(PER_MINUTE / 2);
    for (const at of [a, b]) {
      await untilNot(['200'], async () => String((await read(at, token)).status)); // it may hold some
      expect((await read(at, secret())).status).toBe(200);
    }
  });

  test('a 429 of the upstream holds back the instance that got it, not the other one', async () => {
    const token = secret();
    fleet().upstream.once((to) => isOf(token, to), json(429, '{"detail":"Slow down."}', { 'Retry-After': '60' }));
    expect((await read(a, token)).status).toBe(429);
    expect((await read(a, token, 'getReferralConfig')).status).toBe(429);
    expect(fleet().callsOf(token)).toHaveLength(1);
    expect((await read(b, token, 'getReferralConfig')).status).toBe(200);
  });

  test.each([401, 403])('a %i to one drops the copies in both', async (status) => {
    const token = secret();
    for (const at of [a, b]) await prime(at, 'getSubscription', { token });
    for (const [one, other] of [
      [a, b],
      [b, a],
    ] as const) {
      for (const at of [a, b]) await prime(at, 'getSubscription', { token });
      fleet().upstream.once(
        (to) => isOf(token, to) && idOf(to) === 'getReferralConfig',
        json(status, '{"detail":"No."}'),
      );
      expect((await read(one, token, 'getReferralConfig')).status).toBe(status);
      expect(isHit(await read(other, token))).toBe(false);
    }
  });

  testWhatIsKept(fleet);
});
