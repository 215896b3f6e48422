import { benchFleetReads } from './reads.ts';
import { redisBinary } from '../harness/redis.ts';
import { benchKinds } from './kinds.ts';
import { benchStoreMemory } from './memory.ts';
import { benchRows } from './rows.ts';
import { benchWorkerd } from './workerd-reads.ts';

/** What one instance carries, what the store behind several carries, and what one workerd does: `docs/scale.md`. */
if (redisBinary !== undefined) {
  await benchFleetReads();
  await benchKinds();
  await benchStoreMemory();
} else {
  console.log(
    'Neither redis-server nor valkey-server is installed: nothing is measured of a store that instances share.',
  );
  process.exitCode = process.env['CI'] === undefined ? 0 : 1;
}
await benchWorkerd();
await benchRows();
