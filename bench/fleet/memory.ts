import type { Wanted } from '../harness/client.ts';
import { OVERVIEW, READ } from './reads.ts';
import type { RedisServer } from '../harness/redis.ts';
import { openWorld, purchase, sendAll, UNKEPT } from './kinds.ts';

const MANY = 10_000;
const MB = 1_048_576;

/** Each by accounts of its own. */
const kinds: readonly (readonly [string, (i: number) => Wanted])[] = [
  ['an account that has asked for what is never kept', (i) => ({ path: UNKEPT, account: `nobody-${i}` })],
  ['an account with one answer', (i) => ({ path: READ, account: `reader-${i}` })],
  ['an account with an overview', (i) => ({ path: OVERVIEW, account: `viewer-${i}` })],
  ['an account with a purchase with a key', purchase('customer')],
];

/** What Redis needs for ten thousand of each, names and expiries included. */
export async function benchStoreMemory(): Promise<void> {
  const world = await openWorld();
  console.log(`\n| ${MANY} of each | bytes in Redis | keys | MB in all |\n| --- | --- | --- | --- |`);
  for (const [name, wanted] of kinds) {
    await sendAll(world.client, 1, () => wanted(MANY)); // the scripts are there
    const before = await held(world.redis);
    await sendAll(world.client, MANY, wanted);
    const after = await held(world.redis);
    const [bytes, keys] = [after.bytes - before.bytes, after.keys - before.keys];
    console.log(`| ${name} | ${Math.round(bytes / MANY)} | ${keys / MANY} | ${(bytes / MB).toFixed(1)} |`);
  }
  await world.close();
}

const held = async (redis: RedisServer) => ({
  bytes: (await redis.counted()).memoryBytes,
  keys: await redis.client.dbsize(),
});
