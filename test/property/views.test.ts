import { afterAll, beforeAll, describe, test } from 'vitest';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { expectGood, SCHEDULES } from './views-good.ts';
import { Databases } from './views-redis.ts';
import { InstanceProcesses } from './views-process.ts';
import { playIn, playInProcesses, run, WINDOW_MS } from './views-run.ts';

/** Schedules at once whose instances have processes. */
const PROCESSES = 2;

describe
  .skipIf(!hasRedis)
  .concurrent(`no old read, no session after its end, never more than the limit${SKIPPED}`, () => {
    let databases: Databases;

    beforeAll(async () => {
      databases = await Databases.open(WINDOW_MS);
    });
    afterAll(() => databases?.close());

    test('whatever happens to instances, their connections and what is said on them', () => {
      const play = playIn(databases);
      return expectGood(SCHEDULES, (first) => run({ first, count: SCHEDULES, atOnce: 10, play }));
    });

    test('and processes are stopped', async () => {
      const processes = new InstanceProcesses(2 * PROCESSES);
      const play = playInProcesses(databases, processes.open);
      const count = Math.ceil(SCHEDULES / 50);
      await expectGood(count, (first) => run({ first, count, atOnce: PROCESSES, play }));
      await processes.end();
    });
  });
