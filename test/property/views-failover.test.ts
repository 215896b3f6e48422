import { expect, test } from 'vitest';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { playFailover } from './views-failover.ts';
import { expectGood, SCHEDULES, SEED } from './views-good.ts';
import { type Ran, run } from './views-run.ts';

const FAILOVERS = Math.ceil(SCHEDULES / 150);
/** Where the machine is so busy that no instance answers by itself, others are played. */
const MOST_TRIES = 4;

// In a file of its own, and so in a process of its own: where many schedules share one, all is late and nobody holds a view.
test.skipIf(!hasRedis)(
  `no old read and no session after its end, when a replica takes the place of its primary${SKIPPED}`,
  async () => {
    let ran: Ran | undefined;
    for (let tried = 0; tried < MOST_TRIES && !ran?.counts.local; tried++) {
      const first = SEED + tried * FAILOVERS;
      ran = await run({ first, count: FAILOVERS, atOnce: 6, play: (seed) => playFailover(seed) });
      expect(ran.failed).toEqual([]);
    }
    if (ran) expectGood(ran);
  },
);
