import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { fleetLoad } from '../support/fleet-load.ts';
import { POLICY, SECRET } from '../support/gateways.ts';
import { median, start, startGateway } from '../support/processes.ts';
import { grown, startRedis } from '../support/redis.ts';

const { rounds, seconds } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '4' } },
}).values;

const [SERVER_CORE, OTHER_CORE] = [0, 1];
const CONNECTIONS = 8;
/** Of `/proc/<pid>/stat`. */
const TICK_US = 10_000;

/** What is asked, and what an answer may cost with workers and their store, as a multiple of what it costs one process without a store. */
const ROADS = [
  { name: 'cached read of one account', path: '/api/v2/subscription/', accounts: 1, most: 1.33 },
  { name: 'cached read of 1,000 accounts in turn', path: '/api/v2/subscription/', accounts: 1_000, most: Infinity },
  { name: 'pass-through', path: '/api/v2/apikey/7/', accounts: 1_000, most: 1.2 },
] as const;
const MOST_SHARE = 0.6;

const upstream = await start({ script: 'test/load/support/failing-upstream.ts', core: OTHER_CORE });
const redis = await startRedis(OTHER_CORE);

const common = { UPSTREAM_BASE_URL: upstream.url, RATE_LIMIT_PER_MINUTE: '1000000000', CACHE_POLICY: POLICY };
const shared = { ...common, STORE_URL: redis.url, SECRETS: SECRET };
type Gateway = Awaited<ReturnType<typeof startGateway>>;
type Road = (typeof ROADS)[number];

const contenders: Readonly<Record<'one process' | 'two workers', Gateway>> = {
  'one process': await startGateway({ env: common, core: SERVER_CORE }),
  'two workers': await startGateway({ env: { ...shared, WORKERS: '2' }, core: SERVER_CORE }),
};

const childrenOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);

/** Used so far, in microseconds. */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_US;
}

/** CPU an answer, of all processes and of Redis; the part of the busiest worker; answers a second and p99. */
async function measure({ pid, url }: Gateway, { path, accounts }: Road) {
  const load = { urls: [url], path, accounts, connections: CONNECTIONS };
  await fleetLoad({ ...load, seconds: 0 }, OTHER_CORE);
  const pids = [pid, ...childrenOf(pid)];
  const [before, store] = [pids.map(cpuOf), await redis.counted()];
  const { answers, rate, p99, failed } = await fleetLoad({ ...load, seconds: Number(seconds) }, OTHER_CORE);
  if (failed > 0) throw new Error(`${failed} of ${answers} answers were not 200`);
  const used = pids.map((one, n) => cpuOf(one) - before[n]!);
  const sum = used.reduce((all, one) => all + one, 0);
  const ofRedis = pids.length > 1 ? grown(store, await redis.counted()).cpuUs : 0;
  const workers = used.slice(1);
  const share = Math.max(...workers) / workers.reduce((all, one) => all + one, 0);
  return { cpu: (sum + ofRedis) / answers, ofRedis: ofRedis / answers, share, rate, p99 };
}

type Measured = Awaited<ReturnType<typeof measure>>;

const medianOf = (all: readonly Measured[], what: keyof Measured) => median(all.map((each) => each[what]));

function told(name: string, all: readonly Measured[]): string {
  const [cpu, ofRedis] = [medianOf(all, 'cpu').toFixed(1), medianOf(all, 'ofRedis').toFixed(2)];
  const rate = `${medianOf(all, 'rate').toFixed(0)} a second, p99 ${medianOf(all, 'p99').toFixed(1)} ms`;
  return `  ${name}: ${cpu} µs of CPU an answer (Redis ${ofRedis}), ${rate}`;
}

/** Both in turn. Whether it costs no more than it may. */
async function compare(road: Road): Promise<boolean> {
  const [one, two]: Measured[][] = [[], []];
  for (let round = 0; round < Number(rounds); round++) {
    one!.push(await measure(contenders['one process'], road));
    two!.push(await measure(contenders['two workers'], road));
  }
  const ratio = medianOf(two!, 'cpu') / medianOf(one!, 'cpu');
  const share = Math.max(...two!.map((each) => each.share));
  console.log(`${road.name}, ${CONNECTIONS} connections, medians of ${rounds} rounds, all on one core:`);
  console.log(`${told('one process', one!)}\n${told('two workers', two!)}`);
  console.log(`  ${ratio.toFixed(2)} × (at most ${road.most}); the busiest worker had ${(share * 100).toFixed(0)} %`);
  return ratio <= road.most && share <= MOST_SHARE;
}

let isGood = true;
for (const road of ROADS) isGood = (await compare(road)) && isGood;

await Promise.all(Object.values(contenders).map((gateway) => gateway.stop()));
await Promise.all([upstream.stop(), redis.stop()]);
process.exitCode = isGood ? 0 : 1;
