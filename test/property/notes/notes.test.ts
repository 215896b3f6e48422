import { expect, test } from 'vitest';
import { Accounts } from '../../../src/store/accounts.ts';
import { SealedNotes } from '../../../src/store/sealed.ts';
import { play } from './schedule.ts';

/** `npm run test:full` plays more, and leaves out each rule. */
const SCHEDULES = 300;

test('whatever the store loses, nobody reads what is old, pays twice, is let in after a sign-out, or is stopped for good', async () => {
  const counts = { reads: 0, copies: 0, writes: 0, sent: 0, refusals: 0 };
  const failed: string[] = [];
  for (let seed = 1; seed <= SCHEDULES; seed++) {
    const judge = await play({ seed, tried: { Accounts, SealedNotes } });
    for (const name of Object.keys(counts) as (keyof typeof counts)[]) counts[name] += judge.counts[name];
    if (judge.violations.length > 0) failed.push(`--seed ${seed}\n  ${judge.story.slice(-60).join('\n  ')}`);
  }
  expect(failed).toEqual([]);
  for (const [name, count] of Object.entries(counts)) expect(count, name).toBeGreaterThan(SCHEDULES / 10);
});
