import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { IN_PROGRESS } from '../idempotency/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { bought, buyOnce, fleetOfFile } from './fleet.ts';
import { type Relay, startRelay } from './relay.ts';

const KEYS = [
  ['both without a key', false, false],
  ['the second with a key', false, true],
  ['the first with a key', true, false],
] as const;

const keyIf = (has: boolean) => (has ? { key: secret('idempotency') } : {});

describe.skipIf(!hasRedis)(`a second click, with a store${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  let relay: Relay;
  let one: NodeGateway;
  let other: NodeGateway;

  beforeAll(async () => {
    relay = await startRelay(fleet().redis.port);
    [one, other] = await Promise.all([
      fleet().start({ STORE_URL: `redis://127.0.0.1:${relay.port}` }),
      fleet().start(),
    ]);
  }, 30_000);
  afterAll(() => relay.close());

  /** The second comes as soon as the first has ended for the store. Throws where the first was answered before the second. */
  const clickTwice = async (at: NodeGateway, token: string, [hasKey, secondHasKey]: readonly boolean[]) => {
    const from = relay.scripts.length;
    let isAnswered = false;
    const first = buyOnce(one, { token, ...keyIf(hasKey === true) }).finally(() => (isAnswered = true));
    await vi.waitFor(() => expect(relay.scripts.slice(from)).toContain('endWrite'), { timeout: 10_000, interval: 1 });
    const second = await buyOnce(at, { token, ...keyIf(secondHasKey === true) });
    const wasFirst = isAnswered;
    const answers = [await first, second];
    if (wasFirst) throw new Error(`the second got ${second} after the first was answered`);
    return answers;
  };

  describe.each(['the same', 'another'])('through %s instance', (which) => {
    test.each(KEYS)('is refused before the first is answered, and buys after that: %s', async (_, ...keys) => {
      const at = which === 'the same' ? one : other;
      let token = '';
      // A busy machine may be late with the second.
      const answers = await vi.waitFor(() => clickTwice(at, (token = secret()), keys), {
        timeout: 15_000,
        interval: 1,
      });
      expect(answers).toEqual([bought(2), IN_PROGRESS]);
      expect(fleet().charges({ token })).toBe(1);
      expect(await buyOnce(at, { token, ...keyIf(keys[1]) })).toBe(bought(3));
      expect(fleet().charges({ token })).toBe(2);
    });
  });
});
