import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fleetLoad } from '../support/fleet-load.ts';
import { startGateways } from '../support/gateways.ts';
import { READ, SECONDS } from './reads.ts';
import { grown, type RedisServer, startRedis } from '../support/redis.ts';
import { start } from '../support/processes.ts';

const ACCOUNTS = 1_000;
const CONNECTIONS = 8;
const AT_ONCE = 32;
/** The file is begun with all that is held. */
const REWRITE_MS = 500;
const COLUMNS = [
  'snapshots a second',
  'of one core',
  'µs of CPU',
  'of these in the script',
  'snapshots a second that fill a core',
  'bytes in',
  'bytes out',
];
const NOTHING = Buffer.alloc(0);
const STAR = 42;
/** A reply to a snapshot of one key is an array with one in it; no value in them holds the sign. */
const STARS = 2;

/** As many snapshots as one Redis takes: those of a gateway's cached reads, seen with MONITOR and sent again. */
export async function benchSnapshots(): Promise<void> {
  const redis = await startRedis(1);
  const upstream = await start({ script: 'test/load/support/failing-upstream.ts', core: 0 });
  const gateways = await startGateways({ upstream: upstream.url, instances: 1, core: 0, storeUrl: redis.url });
  const load = { urls: gateways.urls, path: READ, accounts: ACCOUNTS, connections: CONNECTIONS, seconds: 0 };
  await fleetLoad(load, 0);
  const snapshots = await seen(redis, () => fleetLoad(load, 0));
  await Promise.all([gateways.stop(), upstream.stop()]);
  console.log(
    `\n| ${ACCOUNTS} accounts' snapshots over ${CONNECTIONS} connections, ${SECONDS} s | ${COLUMNS.join(' | ')} |`,
  );
  console.log(`| --- |${' --- |'.repeat(COLUMNS.length)}`);
  console.log(`| nothing on disk | ${(await look(redis, snapshots)).join(' | ')} |`);
  await redis.client.config('SET', 'appendonly', 'yes');
  await sleep(REWRITE_MS);
  console.log(`| append-only file | ${(await look(redis, snapshots)).join(' | ')} |`);
  await redis.stop();
}

async function look(redis: RedisServer, snapshots: readonly Buffer[]): Promise<readonly number[]> {
  const before = await redis.counted();
  const many = await replay(redis, snapshots);
  const { cpuUs, scriptUs, scripts, bytesIn, bytesOut } = grown(before, await redis.counted());
  const each = [many / SECONDS, cpuUs / 1e6 / SECONDS, cpuUs / scripts, scriptUs / scripts, (scripts / cpuUs) * 1e6];
  return [...each, bytesIn / scripts, bytesOut / scripts].map((value) => Number(value.toFixed(value < 100 ? 2 : 0)));
}

/** The gateway's own commands, as they go over the wire. */
async function seen({ client }: RedisServer, act: () => Promise<unknown>): Promise<readonly Buffer[]> {
  const monitor = await client.monitor();
  const snapshots: Buffer[] = [];
  monitor.on('monitor', (_: string, args: string[], source: string) => {
    const isSnapshot = source !== 'lua' && args.some((arg) => arg.includes(':c:'));
    if (isSnapshot) snapshots.push(commandOf(args));
  });
  await act();
  const ended = once(monitor, 'end');
  monitor.disconnect();
  await ended;
  return snapshots;
}

const commandOf = (args: readonly string[]) =>
  Buffer.from(`*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join('')}`);

/** So many under way on each connection at any time; comes out with how many were answered. */
async function replay({ port }: RedisServer, snapshots: readonly Buffer[]): Promise<number> {
  const endsAt = performance.now() + SECONDS * 1_000;
  let answered = 0;
  const one = (place: number) =>
    new Promise<void>((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true });
      let stars = 0;
      let sent = place * Math.floor(snapshots.length / CONNECTIONS);
      const send = (many: number) =>
        socket.write(
          Buffer.concat(Array.from({ length: many }, () => snapshots[sent++ % snapshots.length] ?? NOTHING)),
        );
      socket.on('data', (chunk) => {
        stars += chunk.reduce((sum, byte) => sum + Number(byte === STAR), 0);
        const replies = Math.floor(stars / STARS);
        stars %= STARS;
        answered += replies;
        if (performance.now() < endsAt) send(replies);
        else resolve(void socket.destroy());
      });
      socket.on('error', reject);
      send(AT_ONCE);
    });
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, place) => one(place)));
  return answered;
}
