import { expect } from 'vitest';
import { lineOf, type Ran } from './views-run.ts';

/** The first of the schedules; one alone: `SEED=7 SCHEDULES=1`. */
const SEED = Number(process.env['SEED'] ?? 1);
/** More of them: `npm run load -- views`. */
export const SCHEDULES = Number(process.env['SCHEDULES'] ?? 300);

/** Where the machine is so busy that no instance answers by itself, others are played. */
const MOST_TRIES = 4;

/** Plays that many schedules, and more if none of them shows anything. */
export async function expectGood(count: number, play: (first: number) => Promise<Ran>): Promise<void> {
  for (let tried = 0; tried < MOST_TRIES; tried++) {
    const ran = await play(SEED + tried * count);
    process.stdout.write(`${lineOf(ran)}\n`);
    expect(ran.failed, 'play one again, as far as real time allows: SCHEDULES=1 SEED=…').toEqual([]);
    if (ran.counts.local > 0) return;
  }
  expect.fail('no read asked nobody: without them schedules show nothing');
}
