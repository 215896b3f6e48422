import { ACCOUNTS, READ, UNKEPT } from './cost.ts';
import { Client, type Wanted } from './harness/client.ts';
import { ALL_KEPT, startGateway, startUpstream } from './harness/gateway.ts';
import { problem } from './harness/problems.ts';
import { SECRET } from './harness/processes.ts';
import { type RedisServer, redisBinary, startRedis } from './harness/redis.ts';
import { compare, isHit, type Pace, table } from './harness/rounds.ts';
import type { Server } from './harness/servers.ts';
import { cpuUs } from './harness/usage.ts';
import { type Load, wrk } from './harness/wrk.ts';

/** What one process carries, several on one port, and one over a store; and what the store needs. */
export const fleet = [reads, memory] as const;

const shared = (redis: RedisServer) => ({ ...ALL_KEPT, STORE_URL: redis.url, SECRETS: SECRET });

async function reads(pace: Pace): Promise<void> {
  const upstream = await startUpstream();
  const redis = await startStore();
  const servers = {
    'one process': await startGateway(upstream, ALL_KEPT),
    'WORKERS=2': await startGateway(upstream, { ...ALL_KEPT, WORKERS: '2' }),
    ...(redis && { 'one process, Redis': await startGateway(upstream, shared(redis)) }),
  };
  const cached = { ...READ, accounts: ACCOUNTS };
  for (const [title, load] of Object.entries({ 'cached read': cached, 'read that is never cached': UNKEPT })) {
    const isRight = load === cached ? { isRight: isHit } : {};
    const contenders = Object.entries(servers).map(([name, server]) => ({ name, server, load, ...isRight }));
    await compare({ title, contenders, pace });
    const overStore = servers['one process, Redis'];
    if (redis && overStore) await costOf(redis, overStore, { title, load, seconds: pace.seconds });
  }
}

interface Asked {
  readonly title: string;
  readonly load: Load;
  readonly seconds: number;
}

/** Where reads come one at a time, each of them is a message of its own to Redis. */
async function costOf(redis: RedisServer, { url }: Server, { title, load, seconds }: Asked): Promise<void> {
  const rows: string[][] = [];
  for (const connections of [1, 50]) {
    const before = cpuUs(redis.pid);
    const { answers } = await wrk({ url, load: { ...load, connections }, seconds });
    rows.push([`${title}, ${connections} at a time`, ((cpuUs(redis.pid) - before) / answers).toFixed(1)]);
  }
  table(['µs of CPU an answer'], 'Redis', rows);
}

const MANY = 10_000;

/** Each by accounts of its own. */
const held: Readonly<Record<string, (i: number) => Wanted>> = {
  'one answer': (i) => ({ path: READ.path, account: `reader-${i}` }),
  'an overview': (i) => ({ path: '/bff/v1/account-overview', account: `viewer-${i}` }),
};

/** What Redis needs for an account, names and expiries included. */
async function memory(): Promise<void> {
  const redis = await startStore();
  if (!redis) return;
  const { url } = await startGateway(await startUpstream(), shared(redis));
  const client = new Client(url, 16);
  const rows: string[][] = [];
  for (const [name, wanted] of Object.entries(held)) {
    await sendAll(client, 1, () => wanted(MANY)); // the scripts are there
    const before = await redis.bytes();
    await sendAll(client, MANY, wanted);
    rows.push([`account with ${name}`, Math.round(((await redis.bytes()) - before) / MANY).toString()]);
  }
  await client.close();
  table(['bytes in Redis'], `${MANY} of each`, rows);
}

async function sendAll(client: Client, many: number, wanted: (i: number) => Wanted): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < many) {
      const { status, text } = await client.send(wanted(next++));
      if (status !== 200) problem(`${status} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

async function startStore(): Promise<RedisServer | undefined> {
  if (redisBinary !== undefined) return startRedis();
  problem('neither redis-server nor valkey-server is installed: nothing is measured of a store');
  return undefined;
}
