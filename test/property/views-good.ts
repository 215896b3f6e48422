import { expect } from 'vitest';
import { lineOf, type Ran } from './views-run.ts';

/** The first of the schedules; one alone: `SEED=7 SCHEDULES=1`. */
export const SEED = Number(process.env['SEED'] ?? 1);
/** More of them: `npm run load -- views`. */
export const SCHEDULES = Number(process.env['SCHEDULES'] ?? 300);

export function expectGood(ran: Ran): void {
  process.stdout.write(`${lineOf(ran)}\n`);
  expect(ran.failed, 'play one again, as far as real time allows: SCHEDULES=1 SEED=…').toEqual([]);
  expect(ran.counts.local, 'reads that ask nobody: without them schedules show nothing').toBeGreaterThan(0);
}
