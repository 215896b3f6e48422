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
const ACCOUNTS = 1_000;
const CONNECTIONS = 8;
/** Of `/proc/<pid>/stat`. */
const TICK_US = 10_000;

/** What an answer may cost with workers and their store, as a multiple of what it costs one process without a store. */
const MOST = { 'cached read': 1.33, 'pass-through': 1.2 } as const;
const PATHS = { 'cached read': '/api/v2/subscription/', 'pass-through': '/api/v2/apikey/7/' } as const;
const MOST_SHARE = 0.6;

const upstream = await start({ script: 'test/load/support/failing-upstream.ts', core: OTHER_CORE });
const redis = await startRedis(OTHER_CORE);

const common = { UPSTREAM_BASE_URL: upstream.url, RATE_LIMIT_PER_MINUTE: '1000000000', CACHE_POLICY: POLICY };
const shared = { ...common, STORE_URL: redis.url, SECRETS: SECRET };
const contenders = {
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
async function measure({ pid, url }: (typeof contenders)['one process'], path: string) {
  const load = { urls: [url], path, accounts: ACCOUNTS, connections: CONNECTIONS };
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

let isGood = true;
for (const [name, path] of Object.entries(PATHS) as [keyof typeof PATHS, string][]) {
  const found = { 'one process': [], 'two workers': [] } as Record<
    keyof typeof contenders,
    Awaited<ReturnType<typeof measure>>[]
  >;
  for (let round = 0; round < Number(rounds); round++)
    for (const [contender, gateway] of Object.entries(contenders) as [
      keyof typeof contenders,
      (typeof contenders)['one process'],
    ][])
      found[contender].push(await measure(gateway, path));
  const [one, two] = [found['one process'], found['two workers']];
  const of = (all: typeof one, what: keyof (typeof one)[0]) => median(all.map((each) => each[what]));
  const ratio = of(two, 'cpu') / of(one, 'cpu');
  const share = Math.max(...two.map((each) => each.share));
  isGood &&= ratio <= MOST[name] && share <= MOST_SHARE;
  console.log(`${name}, ${CONNECTIONS} connections, medians of ${rounds} rounds, all on one core:`);
  for (const [contender, all] of Object.entries(found))
    console.log(
      `  ${contender}: ${of(all, 'cpu').toFixed(1)} µs of CPU an answer (Redis ${of(all, 'ofRedis').toFixed(2)}), ${of(all, 'rate').toFixed(0)} a second, p99 ${of(all, 'p99').toFixed(1)} ms`,
    );
  console.log(
    `  ${ratio.toFixed(2)} × (at most ${MOST[name]}); the busiest worker had ${(share * 100).toFixed(0)} % (at most ${MOST_SHARE * 100})`,
  );
}

await Promise.all(Object.values(contenders).map((gateway) => gateway.stop()));
await Promise.all([upstream.stop(), redis.stop()]);
process.exitCode = isGood ? 0 : 1;
