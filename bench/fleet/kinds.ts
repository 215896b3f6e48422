import { Client, type Wanted } from '../harness/client.ts';
import { type Gateways, startGateways } from '../harness/gateways.ts';
import { grown, type RedisServer, startRedis } from '../harness/redis.ts';
import { OVERVIEW, READ } from './reads.ts';
import { start } from '../harness/processes.ts';

const MANY = 2_000;
const AT_ONCE = 16;
const COMMANDS = 'portico_store_command_duration_seconds_count';
const NAMES = ['hello', 'read', 'swap', 'keep', 'count'];

export const purchase =
  (account: string) =>
  (i: number): Wanted => ({
    method: 'POST',
    path: '/api/v2/subscription/checkout/purchase/',
    account: `${account}-${i}`,
    headers: { 'Idempotency-Key': `key-${i}` },
    body: { term: 'monthly' },
  });

/** What is never kept. */
export const UNKEPT = '/api/v2/verification/flow/12345/';
const PATCH = { method: 'PATCH', path: '/api/v2/referral/config/', body: { mode: 'credits' } } satisfies Wanted;

/** In this order: who reads has read before, except the first time. */
export const kinds: readonly (readonly [string, (i: number) => Wanted])[] = [
  ['read, a miss', (i) => ({ path: READ, account: `reader-${i}` })],
  ['read, a hit', (i) => ({ path: READ, account: `reader-${i}` })],
  ['account overview, the rest of it cold', (i) => ({ path: OVERVIEW, account: `reader-${i}` })],
  ['account overview, a hit', (i) => ({ path: OVERVIEW, account: `reader-${i}` })],
  ['purchase with a key, of an account that holds nothing', purchase('buyer')],
  ['purchase, replayed', purchase('buyer')],
  ['purchase, of an account that holds answers', purchase('reader')],
  ['read after it, a miss', (i) => ({ path: READ, account: `reader-${i}` })],
  ['read that is never cached', (i) => ({ path: UNKEPT, account: `reader-${i}` })],
  ['PATCH of what is cached', (i) => ({ ...PATCH, account: `reader-${i}` })],
];

/** What one request of each kind asks of the store, as the gateway and Redis count it. */
export async function benchKinds(): Promise<void> {
  const world = await openWorld();
  console.log(`\n| ${MANY} of each | questions | Redis, µs of CPU | bytes to Redis | bytes from it |`);
  console.log('| --- | --- | --- | --- | --- |');
  for (const [name, wanted] of kinds) console.log(`| ${name} | ${await look(world, wanted)} |`);
  await world.close();
}

interface World {
  readonly gateways: Gateways;
  readonly redis: RedisServer;
  readonly client: Client;
  close(): Promise<void>;
}

/** One gateway over one Redis, and a client of it. */
export async function openWorld(): Promise<World> {
  const upstream = await start({ script: 'bench/harness/failing-upstream.ts', core: 1 });
  const redis = await startRedis(1);
  const gateways = await startGateways({ upstream: upstream.url, instances: 1, core: 0, storeUrl: redis.url });
  const client = new Client(gateways.urls[0] ?? '', AT_ONCE);
  return {
    gateways,
    redis,
    client,
    async close() {
      await client.close();
      await Promise.all([gateways.stop(), upstream.stop(), redis.stop()]);
    },
  };
}

const each = (sum: number) => Math.round(sum / MANY);

async function look({ gateways, redis, client }: World, wanted: (i: number) => Wanted): Promise<string> {
  const [commands, before] = [await commandsOf(gateways), await redis.counted()];
  await sendAll(client, MANY, wanted);
  const { cpuUs, bytesIn, bytesOut } = grown(before, await redis.counted());
  return `${await commandsSince(gateways, commands)} | ${each(cpuUs)} | ${each(bytesIn)} | ${each(bytesOut)}`;
}

/** As many under way as there are connections. */
export async function sendAll(client: Client, many: number, wanted: (i: number) => Wanted): Promise<void> {
  let next = 0;
  let refused = 0;
  const worker = async () => {
    while (next < many) {
      const { status, text } = await client.send(wanted(next++));
      if (status !== 200 && ++refused > many / 10) throw new Error(`${status} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

const commandsOf = (gateways: Gateways) =>
  Promise.all(NAMES.map((name) => gateways.sum(COMMANDS, `command="${name}"`)));

async function commandsSince(gateways: Gateways, before: readonly number[]): Promise<string> {
  const since = (await commandsOf(gateways)).map((count, i) => (count - (before[i] ?? 0)) / MANY);
  const some = NAMES.map((name, i) => [name, Number((since[i] ?? 0).toFixed(2))] as const);
  return some
    .filter(([, count]) => count > 0)
    .map(([name, count]) => (count === 1 ? name : `${count} × ${name}`))
    .join(', ');
}
