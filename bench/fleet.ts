import { benchFleetReads } from './fleet-reads.ts';
import { benchDistance } from './fleet-distance.ts';
import { redisBinary } from './fleet-redis.ts';
import { benchKinds } from './store-kinds.ts';
import { benchStoreMemory } from './store-memory.ts';
import { benchSnapshots } from './store-snapshots.ts';
import { benchRows } from './store-rows.ts';
import { benchWorkerd } from './fleet-workerd.ts';

/** What one instance carries, what the store behind several carries, and what one workerd does: `docs/scale.md`. */
if (redisBinary !== undefined) {
  await benchFleetReads();
  await benchKinds();
  await benchSnapshots();
  await benchStoreMemory();
  await benchDistance();
} else {
  console.log(
    'Neither redis-server nor valkey-server is installed: nothing is measured of a store that instances share.',
  );
  process.exitCode = process.env['CI'] === undefined ? 0 : 1;
}
await benchWorkerd();
await benchRows();
