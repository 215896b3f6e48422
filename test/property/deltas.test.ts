import { expect, test } from 'vitest';
import { hasRedis, SKIPPED, startOldRedis } from '../support/redis.ts';
import { lineOf, runDeltas } from './deltas-run.ts';

/** The first of the schedules; one alone: `SEED=7 SCHEDULES=1`. */
const SEED = Number(process.env['SEED'] ?? 1);
/** More of them: `npm run load -- deltas`. */
const SCHEDULES = Number(process.env['SCHEDULES'] ?? 100);

test.skipIf(!hasRedis)(
  `who takes in what is sent has what a fresh read gives, and nothing from before a write that was told${SKIPPED}`,
  async () => {
    const redis = await startOldRedis();
    const ran = await runDeltas(redis.port, SEED, SCHEDULES);
    await redis.close();
    process.stdout.write(`${lineOf(ran)}\n`);
    expect(ran.failed, 'play one again, as far as real time allows: SCHEDULES=1 SEED=…').toEqual([]);
    for (const kind of ['whole', 'deltas', 'same', 'waits', 'writes'] as const)
      expect(ran.counts[kind], kind).toBeGreaterThan(0);
  },
);
