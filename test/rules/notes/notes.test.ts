import { expect, test } from 'vitest';
import { seed, times } from '../../support/times.ts';
import { play } from './schedule.ts';

const SCHEDULES = times(250);

test('whatever the store loses, nobody reads what is old, pays twice, is let in after a sign-out, or is stopped for good', async () => {
  const counts = { reads: 0, copies: 0, writes: 0, sent: 0, refusals: 0 };
  const failed: string[] = [];
  for (let n = 0; n < SCHEDULES; n++) {
    const judge = await play(seed() + n);
    for (const name of Object.keys(counts) as (keyof typeof counts)[]) counts[name] += judge.counts[name];
    if (judge.violations.length > 0) failed.push(`seed ${seed() + n}\n  ${judge.story.slice(-60).join('\n  ')}`);
  }
  expect(failed).toEqual([]);
  for (const [name, count] of Object.entries(counts)) expect(count, name).toBeGreaterThan(SCHEDULES / 10);
}, 600_000);
