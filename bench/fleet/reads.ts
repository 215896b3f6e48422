import { fleetLoad } from '../harness/fleet-load.ts';
import { type Gateways, startGateways } from '../harness/gateways.ts';
import { grown, type RedisServer, startRedis } from '../harness/redis.ts';
import { start } from '../harness/processes.ts';

const ROUNDS = 2;
/** Of each measurement; more of them, more precise: `npm run bench:fleet -- 4`. */
export const SECONDS = Number(process.argv[2] ?? 1);
/** Functions are compiled after it. */
export const WARM_SECONDS = 0.5;
const ACCOUNTS = 1_000;
const CONNECTIONS = 50;
/** All instances on one core: of what another instance adds to the work, nothing hides behind another core. */
const SERVER_CORE = 0;
/** The load, the upstream and Redis; the last two have little to do. */
const OTHER_CORE = 1;

export const READ = '/api/v2/subscription/';
export const OVERVIEW = '/bff/v1/account-overview';
const paths = { 'cached read': READ, 'cached account overview': OVERVIEW };

interface Contender {
  readonly name: string;
  readonly instances: number;
  readonly isShared: boolean;
}

const contenders: readonly Contender[] = [
  { name: '1 instance, its own memory', instances: 1, isShared: false },
  { name: '1 instance, Redis', instances: 1, isShared: true },
  { name: '2 instances on one core, Redis', instances: 2, isShared: true },
];

/** One figure for each column. */
type Row = readonly number[];
const COLUMNS = [
  'answers a second',
  'p50, ms',
  'p99, ms',
  'gateway, µs of CPU',
  'Redis, µs of CPU',
  'questions an answer',
  'bytes an answer',
];

/** Cached reads of many accounts: interleaved rounds, fresh processes each, means. */
export async function benchFleetReads(): Promise<void> {
  const upstream = await start({ script: 'bench/harness/failing-upstream.ts', core: OTHER_CORE });
  const redis = await startRedis(OTHER_CORE);
  const rows = new Map<string, Row[]>();
  for (let round = 0; round < ROUNDS; round++)
    for (const contender of contenders)
      for (const [name, row] of await measure(contender, upstream.url, redis))
        rows.set(name, [...(rows.get(name) ?? []), row]);
  await Promise.all([upstream.stop(), redis.stop()]);
  console.log(`\n| ${ACCOUNTS} accounts, ${SECONDS} s × ${ROUNDS} rounds | ${COLUMNS.join(' | ')} |`);
  console.log(`| --- |${' --- |'.repeat(COLUMNS.length)}`);
  for (const name of [...rows.keys()].toSorted()) {
    const means = COLUMNS.map((_, i) => mean((rows.get(name) ?? []).map((row) => row[i] ?? Number.NaN)));
    console.log(`| ${name} | ${means.map(readable).join(' | ')} |`);
  }
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

const readable = (value: number) => (value >= 1_000 ? Math.round(value).toString() : value.toFixed(2));

async function measure({ name, instances, isShared }: Contender, upstream: string, redis: RedisServer) {
  await redis.empty();
  const store = isShared ? { storeUrl: redis.url } : {};
  const gateways = await startGateways({ upstream, instances, core: SERVER_CORE, ...store });
  const load = { urls: gateways.urls, accounts: ACCOUNTS, connections: CONNECTIONS };
  const rows: [string, Row][] = [];
  for (const [what, path] of Object.entries(paths)) {
    await fleetLoad({ ...load, path, seconds: 0 }, OTHER_CORE);
    await fleetLoad({ ...load, path, seconds: WARM_SECONDS }, OTHER_CORE);
    rows.push([`${what}: ${name}`, await looked(gateways, redis, { ...load, path, seconds: SECONDS })]);
  }
  await gateways.stop();
  return rows;
}

async function looked(gateways: Gateways, redis: RedisServer, wanted: Parameters<typeof fleetLoad>[0]): Promise<Row> {
  const cpu = () => gateways.sum('process_cpu_seconds_total');
  const [cpuBefore, before] = [await cpu(), await redis.counted()];
  const { rate, answers, p50, p99, failed, bytes } = await fleetLoad(wanted, OTHER_CORE);
  const [cpuAfter, { cpuUs, questions }] = [await cpu(), grown(before, await redis.counted())];
  if (failed > answers / 100) throw new Error(`${failed} of ${answers} answers were not 200`);
  return [rate, p50, p99, ((cpuAfter - cpuBefore) * 1e6) / answers, cpuUs / answers, questions / answers, bytes];
}
