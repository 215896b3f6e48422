import { parseArgs } from 'node:util';
import { lineOf, runDeltas } from '../../property/deltas-run.ts';
import { inParts } from '../support/parts.ts';
import { redisBinary, startRedis } from '../support/redis.ts';

/**
 * Many schedules of reads, waits and writes through two instances over one store: whoever takes in what is sent has what a
 * fresh read gives (test/property/deltas.ts).
 */
const { values: args } = parseArgs({
  options: {
    schedules: { type: 'string', default: '20000' },
    /** Of the first one. A schedule that failed is played again by `--schedules 1 --seed`, as far as real time allows. */
    seed: { type: 'string', default: '1' },
    /** Where there are more, each plays its part of them. */
    processes: { type: 'string', default: '2' },
  },
});

async function play(seed: number, schedules: number): Promise<void> {
  const redis = await startRedis(seed % 2);
  const ran = await runDeltas(redis.port, seed, schedules);
  await redis.stop();
  console.log(lineOf(ran));
  for (const failed of ran.failed.slice(0, 20)) console.log(failed);
  if (ran.failed.length > 0) process.exitCode = 1;
}

if (redisBinary === undefined) {
  console.log('Neither redis-server nor valkey-server is installed: nothing is tried.');
  process.exit(process.env['CI'] === undefined ? 0 : 1);
}
const [schedules, seed, processes] = [Number(args.schedules), Number(args.seed), Number(args.processes)];
if (processes === 1) await play(seed, schedules);
else await inParts('deltas', { schedules, seed, processes });
process.exit();
