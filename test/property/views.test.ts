import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { playFailover } from './views-failover.ts';
import { Databases } from './views-redis.ts';
import { InstanceProcesses } from './views-process.ts';
import { lineOf, playIn, playInProcesses, type Ran, run, WINDOW_MS } from './views-run.ts';

/** More of them: `npm run load -- views`. */
const SCHEDULES = Number(process.env['SCHEDULES'] ?? 300);
const FAILOVERS = Math.ceil(SCHEDULES / 150);
/** The first of them; one alone: `SEED=7 SCHEDULES=1`. */
const SEED = Number(process.env['SEED'] ?? 1);

/** Schedules at once whose instances have processes. */
const PROCESSES = 2;

function expectGood(ran: Ran): void {
  process.stdout.write(`${lineOf(ran)}\n`);
  expect(ran.failed, 'play one again, as far as real time allows: SCHEDULES=1 SEED=…').toEqual([]);
  expect(ran.counts.local, 'reads that ask nobody: without them schedules show nothing').toBeGreaterThan(0);
}

describe
  .skipIf(!hasRedis)
  .concurrent(`no old read, no session after its end, never more than the limit${SKIPPED}`, () => {
    let databases: Databases;

    beforeAll(async () => {
      databases = await Databases.open(WINDOW_MS);
    });
    afterAll(() => databases?.close());

    test('whatever happens to instances, their connections and what is said on them', async () => {
      expectGood(await run({ first: SEED, count: SCHEDULES, atOnce: 10, play: playIn(databases) }));
    });

    test('and processes are stopped', async () => {
      const processes = new InstanceProcesses(2 * PROCESSES);
      const play = playInProcesses(databases, processes.open);
      expectGood(await run({ first: SEED, count: Math.ceil(SCHEDULES / 50), atOnce: PROCESSES, play }));
      await processes.end();
    });

    test('when a replica takes the place of its primary', async () => {
      expectGood(await run({ first: SEED, count: FAILOVERS, atOnce: 6, play: (seed) => playFailover(seed) }));
    });
  });
