import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { isMainThread, Worker } from 'node:worker_threads';
import { play } from './schedule.ts';

/** Plays schedules until one fails, and tells its story: `node test/rules/notes/main.ts --seed 7 --schedules 1`. Many are two threads' work. */
const { values: args } = parseArgs({
  options: { schedules: { type: 'string', default: '3000' }, seed: { type: 'string', default: '1' } },
});
const [first, count] = [Number(args.seed), Number(args.schedules)];
const MANY = 1_000;

if (isMainThread && count >= MANY) await inTwo();
else await playAll();

async function inTwo(): Promise<void> {
  const half = Math.ceil(count / 2);
  const ends = [first, first + half].map(async (seed) => {
    const argv = ['--seed', String(seed), '--schedules', String(half)];
    const [status] = (await once(new Worker(import.meta.filename, { argv }), 'exit')) as [number];
    if (status !== 0) process.exitCode = status;
  });
  await Promise.all(ends);
}

async function playAll(): Promise<void> {
  for (let seed = first; seed < first + count; seed++) {
    const { violations, story } = await play(seed);
    if (violations.length === 0) continue;
    const at = story.findIndex((line) => line.includes('***'));
    console.log(`--seed ${seed}\n  ${story.slice(Math.max(0, at - 40), at + 3).join('\n  ')}`);
    process.exit(1);
  }
  console.log(`none of ${count} schedules failed`);
}
