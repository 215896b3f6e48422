import { test } from 'vitest';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { playFailover } from './views-failover.ts';
import { expectGood, SCHEDULES } from './views-good.ts';
import { run } from './views-run.ts';

const FAILOVERS = Math.ceil(SCHEDULES / 150);

// In a file of its own, and so in a process of its own: where many schedules share one, all is late and nobody holds a view.
test.skipIf(!hasRedis)(
  `no old read and no session after its end, when a replica takes the place of its primary${SKIPPED}`,
  () =>
    expectGood(FAILOVERS, (first) => run({ first, count: FAILOVERS, atOnce: 6, play: (seed) => playFailover(seed) })),
);
