import { beforeAll, describe, expect, test } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { cacheStatusOf, MISS } from '../cache/helpers.ts';
import { ask, fleetOfFile, isHit, prime, testWhatIsKept, writeThrough } from './fleet.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { markOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { times } from '../support/times.ts';

const PAIRS = times(10_000);

type Kind = readonly [write: OperationId, read: OperationId];

const CONFIG: Kind = ['updateReferralConfig', 'getReferralConfig'];

/** What each of the accounts does, all at once. */
const KINDS: readonly Kind[] = [
  ...Array.from({ length: 6 }, () => CONFIG),
  ['deletePaymentMethod', 'listPaymentMethods'],
  ['purchasePlan', 'getSubscription'],
];

/** In every so many pairs both instances are asked once more for their copies. */
const SAMPLE = 10;

describe.skipIf(!hasRedis)(`two instances${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  let a: NodeGateway;
  let b: NodeGateway;

  beforeAll(async () => {
    [a, b] = await Promise.all([fleet().start(), fleet().start()]);
  }, 30_000);

  test(`none of ${PAIRS} reads through one gets what was there before the write through the other`, async () => {
    const counts = { pairs: 0, reads: 0, hits: 0, old: 0, refused: 0, again: 0 };

    const account = async ([write, read]: Kind) => {
      const token = secret();
      const reading = async (at: NodeGateway) => {
        const answer = await ask(at, read, { token });
        counts.reads++;
        if (isHit(answer)) counts.hits++;
        if (markOf(answer.text) !== fleet().versionOf(token)) counts.old++;
        return answer;
      };
      /** Has a copy afterwards. A command that is late on a busy machine costs another read. */
      const untilHit = async (at: NodeGateway) => {
        while (!isHit(await reading(at))) counts.again++;
      };
      for (const at of [a, b]) await prime(at, read, { token });
      for (let n = 0; n < PAIRS / KINDS.length; n++) {
        const [one, other] = n % 2 === 0 ? [a, b] : [b, a];
        if (n % SAMPLE === 0) await Promise.all([a, b].map(untilHit));
        counts.refused += await writeThrough(one, write, { token });
        const first = await reading(other);
        expect(isHit(first)).toBe(false);
        counts.pairs++;
        // Both have a copy before the next write: this one what it has stored, the writer what that one has.
        if (cacheStatusOf(first) !== MISS) await untilHit(other);
        await untilHit(one);
      }
    };

    await Promise.all(KINDS.map(account));
    process.stdout.write(`write-then-read pairs across instances: ${JSON.stringify(counts)}\n`);
    expect(counts).toMatchObject({ pairs: PAIRS, old: 0 });
    expect(counts.hits).toBeGreaterThanOrEqual(PAIRS);
  });

  testWhatIsKept(fleet);
});
