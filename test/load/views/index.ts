import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { LONG_MS } from '../../property/views.ts';
import { playFailover } from '../../property/views-failover.ts';
import { Databases } from '../../property/views-redis.ts';
import { lineOf, playIn, type Ran, run, WINDOW_MS } from '../../property/views-run.ts';
import { inParts } from '../support/parts.ts';
import { redisBinary } from '../support/redis.ts';

/**
 * Many schedules of reads, writes and sign-outs through instances over one store, while connections are cut, late and
 * deaf, instances stand still, and replicas take the place of their primaries: test/property/views.ts.
 */
const { values: args } = parseArgs({
  options: {
    schedules: { type: 'string', default: process.env['SCHEDULES'] ?? '10000' },
    /** Of the first one. A schedule that failed is played again by `--schedules 1 --seed`, as far as real time allows. */
    seed: { type: 'string', default: process.env['SEED'] ?? '1' },
    /** Only these. */
    kind: { type: 'string' },
    /** Where there are more, each plays its part of them. */
    processes: { type: 'string', default: String(Math.min(4, availableParallelism())) },
  },
});
const FAILOVER_PART = 1 / 50;
const AT_ONCE = { plain: 8, failover: 16 };

function report(kind: string, ran: Ran): void {
  console.log(`${kind}: ${lineOf(ran)}`);
  for (const { seed, violations } of ran.failed.slice(0, 20)) {
    console.log(`--kind ${kind} --seed ${seed}: ${violations.slice(0, 5).join('; ')}`);
    process.exitCode = 1;
  }
}

async function runAll(first: number, count: number): Promise<void> {
  const plain = async () => {
    const databases = await Databases.open(WINDOW_MS);
    report('plain', await run({ first, count, atOnce: AT_ONCE.plain, play: playIn(databases, { lengthMs: LONG_MS }) }));
    await databases.close();
  };
  const failover = async () => {
    const failovers = args.kind === undefined ? Math.ceil(count * FAILOVER_PART) : count;
    const ran = await run({ first, count: failovers, atOnce: AT_ONCE.failover, play: (seed) => playFailover(seed) });
    report('failover', ran);
  };
  if (args.kind !== 'failover') await plain();
  if (args.kind !== 'plain') await failover();
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
if (redisBinary === undefined) {
  console.log('Neither redis-server nor valkey-server is installed: nothing is tried.');
  process.exit(process.env['CI'] === undefined ? 0 : 1);
}
const [count, seed, processes] = [Number(args.schedules), Number(args.seed), Number(args.processes)];
if (processes === 1) {
  await runAll(seed, count);
} else {
  const only = args.kind === undefined ? [] : ['--kind', args.kind];
  await inParts('views', { schedules: count, seed, processes }, only);
}
process.exit();
