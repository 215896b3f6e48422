import { Client, type Outcome, pace, percentile } from '../../../../bench/harness/client.ts';
import { scrape } from '../../../../bench/harness/metrics.ts';
import { start, startGateway } from '../../../../bench/harness/processes.ts';

/** Cold reads while the upstream answers one in twenty with 503, at random. */
const SECONDS = Number(process.argv[2] ?? 20);
const RATE = 200;
const ERROR_SHARE = 0.05;
/** In a short run on a busy machine, a few that were shed weigh more. */
const MIN_SUCCESS = SECONDS >= 20 ? 0.997 : 0.98;

const upstream = await start({ script: 'bench/harness/failing-upstream.ts' });
const gateway = await startGateway({ env: { UPSTREAM_BASE_URL: upstream.url } });
const client = new Client(gateway.url, 1_000);

let reads = 0;
const outcomes: Outcome[] = [];
const coldRead = (at: number) =>
  void client.send({ path: '/api/v2/subscription/', account: `cold-${reads++}` }, at).then((one) => outcomes.push(one));

await pace({ rate: RATE, seconds: 2 }, coldRead); // functions are compiled
await client.settled(5_000);
outcomes.length = 0;
await upstream.ask({ errorShare: ERROR_SHARE });
const before = await scrape(gateway.admin);
await pace({ rate: RATE, seconds: SECONDS }, coldRead);
await client.settled(15_000);
const after = await scrape(gateway.admin);

const grew = (name: string, label = '') => after.sum(name, label) - before.sum(name, label);
const good = outcomes.filter(({ status }) => status === 200).length;
const retries = grew('portico_upstream_retries_total');
const failed = grew('portico_upstream_calls_total', 'outcome="failed"');
const calls = grew('portico_upstream_calls_total');
const times = outcomes.map(({ ms }) => ms);
const success = good / outcomes.length;
const isGood = outcomes.length > 0 && success >= MIN_SUCCESS;
console.log(`
| ${outcomes.length} cold reads at ${RATE} a second, ${ERROR_SHARE * 100} % of upstream calls answered with 503 | |
| --- | --- |
| upstream calls that failed | ${failed} of ${calls}: ${((failed / calls) * 100).toFixed(2)} % |
| reads that succeeded | ${good} of ${outcomes.length}: ${(success * 100).toFixed(2)} %${isGood ? '' : ' **BROKEN**'} |
| retries a read | ${(retries / outcomes.length).toFixed(3)} |
| p50 and p99 | ${percentile(times, 0.5).toFixed(1)} and ${percentile(times, 0.99).toFixed(1)} ms |`);
await client.close();
await Promise.all([gateway.stop(), upstream.stop()]);
process.exitCode = isGood ? 0 : 1;
