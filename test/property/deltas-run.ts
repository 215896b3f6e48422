import type { StoreAddress } from '../../src/entry/node/redis/address.ts';
import { inProcess } from '../gateway/in-process.ts';
import { DELTAS_ENV, DeltaUpstream, playDeltas } from './deltas.ts';
import { type Counts, noCounts } from './deltas-client.ts';

const addressOf = (port: number): StoreAddress => ({
  kind: 'one',
  tls: false,
  nodes: [{ host: '127.0.0.1', port }],
  db: 0,
});

/** Accounts whose schedules go on at once. */
const AT_ONCE = 100;

export interface DeltasRun {
  readonly schedules: number;
  readonly counts: Counts;
  readonly failed: readonly string[];
}

/** Schedules of so many seeds, through two instances over the Redis at that port. */
export async function runDeltas(port: number, first: number, count: number): Promise<DeltasRun> {
  const upstream = new DeltaUpstream();
  const env = { ...DELTAS_ENV, SECRETS: 'for-development-only-and-known-to-all' };
  const open = () => inProcess({ transport: upstream.transport, store: addressOf(port), env });
  const instances = [open(), open()];
  await Promise.all(instances.map(({ opened }) => opened));
  const counts = noCounts();
  const failed: string[] = [];
  let next = first;
  const worker = async () => {
    while (next < first + count) {
      const seed = next++;
      const played = await playDeltas(seed, instances, upstream);
      for (const name of Object.keys(counts) as (keyof Counts)[]) counts[name] += played.counts[name];
      if (played.violations.length > 0) failed.push(`--seed ${seed}: ${played.violations.slice(0, 5).join('; ')}`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, count) }, worker));
  await Promise.all(instances.map((one) => one.close()));
  return { schedules: count, counts, failed };
}

/** One line. */
export function lineOf({ schedules, counts, failed }: DeltasRun): string {
  const { whole, deltas, same, waits, writes, failed: refused } = counts;
  const answers = `${whole} whole answers, ${deltas} with changed sections only, ${same} times nothing new, ${refused} problems`;
  return `${schedules} schedules: ${answers}; ${waits} waits; ${writes} writes told; ${failed.length} schedules failed`;
}
