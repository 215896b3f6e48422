import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Client, type Outcome, pace, type Wanted } from '../support/client.ts';
import { scrape } from '../support/metrics.ts';
import { start, startGateway } from '../support/processes.ts';
import { slopeOf } from './slope.ts';
import { coldRead, filling, kinds } from './load.ts';

const { values: args } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    keys: { type: 'string', default: '1000000' },
    /** Where the samples go, as JSON. */
    samples: { type: 'string' },
    /** Where heap snapshots go, one as the measured time begins and one at its end. */
    snapshots: { type: 'string' },
  },
});
const MINUTES = Number(args.minutes);
const KEYS = Number(args.keys);
const IS_LONG = MINUTES >= 10;

const CACHE_MAX_BYTES = 33_554_432;
const MAX_CALLS = 256;
/** Fewer than what the gateway takes for too many when others keep the machine busy: what is soaked is not the shedding. */
const MAX_IN_FLIGHT = 48;
const SAMPLE_SECONDS = IS_LONG ? 15 : 4;
/** After all that is bounded is full, until the regression begins: functions are still being compiled. */
const SETTLE_SECONDS = IS_LONG ? 180 : 35;
const LEAST_MEASURED_SECONDS = 40;
/** On a busy machine it takes longer until all keys have been read. */
const MAX_OVERTIME = 1.5;
const MAX_SLOPE_MB = 1;
/** A run of a minute or two tells no slope; a leak of some hundred bytes a request would show all the same. */
const MAX_RISE_MB = 5;
/** A busy machine sheds in a short run what a long one makes up for. */
const MAX_UNEXPECTED_SHARE = IS_LONG ? 0.001 : 0.2;
const GAUGES = [
  'cache_bytes',
  'cache_entries',
  'reads_under_way',
  'upstream_calls_under_way',
  'upstream_calls_waiting',
] as const;
type Gauges = Record<(typeof GAUGES)[number], number>;

interface Memory {
  readonly heapMb: number;
  readonly rssMb: number;
  readonly externalMb: number;
}

interface Sample extends Memory {
  readonly minute: number;
  readonly keys: number;
  readonly busy: Gauges;
  readonly idle: Gauges;
}

const upstream = await start({ script: 'test/load/support/failing-upstream.ts' });
const gateway = await startGateway({
  node: ['--expose-gc'],
  env: {
    UPSTREAM_BASE_URL: upstream.url,
    UPSTREAM_TIMEOUT_MS: '1000',
    CACHE_MAX_BYTES: String(CACHE_MAX_BYTES),
  },
});
const client = new Client(gateway.url, MAX_IN_FLIGHT);

const beganAt = performance.now();
const minutesSo = () => (performance.now() - beganAt) / 60_000;
const samples: Sample[] = [];
const counts = new Map<string, Map<number, number>>();
let [reads, stored, unexpected, requests] = [0, 0, 0, 0];

await fill();
const full = await sample();
console.log(
  `full after ${full.minute.toFixed(1)} minutes and ${requests} requests; everything that is bounded is at its bound`,
);
const measuredFrom = minutesSo() + SETTLE_SECONDS / 60;
const endMinute = Math.max(MINUTES, measuredFrom + LEAST_MEASURED_SECONDS / 60);
let isMeasured = false;
let restSeconds = 1;
while (goesOn()) {
  const secondsLeft = Math.max(SAMPLE_SECONDS, (endMinute - minutesSo()) * 60);
  const loadSeconds = (secondsLeft * SAMPLE_SECONDS) / (SAMPLE_SECONDS + restSeconds);
  const rate = (KEYS - reads) / loadSeconds;
  await pace({ rate, seconds: SAMPLE_SECONDS, mayGoOn: () => client.inFlight < MAX_IN_FLIGHT }, newRead);
  const restedFrom = performance.now();
  samples.push(await sample());
  restSeconds = (performance.now() - restedFrom) / 1_000;
  if (!isMeasured && minutesSo() > measuredFrom) {
    isMeasured = true;
    await snapshot('begin');
  }
}
await snapshot('end');
const refused = (await scrape(gateway.admin)).sum('portico_refused_total', 'by="under_way"');
const broken = report();
if (args.samples) await writeFile(args.samples, JSON.stringify(samples, null, 1));
await client.close();
await Promise.all([gateway.stop(), upstream.stop()]);
process.exitCode = broken.length > 0 ? 1 : 0;

function goesOn(): boolean {
  const minute = minutesSo();
  return minute < endMinute || (reads < KEYS && minute < endMinute * MAX_OVERTIME);
}

/** As quickly as it goes. */
async function fill(): Promise<void> {
  const all = filling();
  const worker = async () => {
    for (let wanted = all.pop(); wanted; wanted = all.pop()) await send(wanted);
  };
  await Promise.all(Array.from({ length: 64 }, worker));
}

/** One read that is new to the cache, and in their proportion all others. */
function newRead(): void {
  const read = reads++;
  void send(coldRead(read)).then((outcome) => count('new read', [200], outcome));
  for (const { name, share, expected, wanted } of kinds) {
    const before = Math.floor(read * share);
    if (Math.floor((read + 1) * share) > before)
      void send(wanted(before, read)).then((outcome) => count(name, expected, outcome));
  }
}

function send(wanted: Wanted): Promise<Outcome> {
  requests++;
  return client.send(wanted);
}

function count(name: string, expected: readonly number[], outcome: Outcome): void {
  const { status } = outcome;
  const byStatus = counts.get(name) ?? new Map<number, number>();
  counts.set(name, byStatus.set(status, (byStatus.get(status) ?? 0) + 1));
  if (!expected.includes(status)) unexpected++;
  if (name === 'new read' && outcome.cacheStatus.includes('stored')) stored++;
}

async function gauges(): Promise<Gauges> {
  const metrics = await scrape(gateway.admin);
  return Object.fromEntries(GAUGES.map((name) => [name, metrics.sum(`portico_${name}`)])) as Gauges;
}

/** Looked at under load, and once all has come to rest. */
async function sample(): Promise<Sample> {
  const busy = await gauges();
  await client.settled(10_000);
  let idle = await gauges();
  for (let looks = 0; looks < 20 && idle.reads_under_way + idle.upstream_calls_under_way > 0; looks++) {
    await sleep(100);
    idle = await gauges();
  }
  const memory = (await gateway.ask({})) as Memory;
  const taken = { minute: minutesSo(), keys: reads, ...memory, busy, idle };
  console.log(
    [
      `${taken.minute.toFixed(1)} min`,
      `${reads} keys`,
      `heap ${memory.heapMb.toFixed(2)} MB`,
      `rss ${memory.rssMb.toFixed(0)} MB`,
      ...GAUGES.map((name) => `${name} ${idle[name]}${busy[name] === idle[name] ? '' : ` (${busy[name]} under load)`}`),
    ].join(', '),
  );
  return taken;
}

async function snapshot(name: string): Promise<void> {
  if (args.snapshots) await gateway.ask({ snapshot: `${args.snapshots}/${name}.heapsnapshot` });
}

function report(): readonly string[] {
  const measured = samples.filter(({ minute }) => minute > measuredFrom);
  const { slope, error } = slopeOf(measured.map(({ minute, heapMb }) => ({ x: minute / 10, y: heapMb })));
  const [first, last] = [measured[0] ?? full, measured.at(-1) ?? full];
  const rise = (slope * (last.minute - first.minute)) / 10;
  const most = (name: keyof Gauges) =>
    Math.max(...[full, ...samples].flatMap(({ busy, idle }) => [busy[name], idle[name]]));
  const mostIdle = (name: keyof Gauges) => Math.max(...samples.map(({ idle }) => idle[name]));
  const rows: readonly (readonly [string, number, number])[] = [
    ['keys not read', KEYS - reads, 0],
    IS_LONG
      ? ['heap, MB in 10 minutes', slope, MAX_SLOPE_MB]
      : ['heap, rise over the measured time in MB', rise, MAX_RISE_MB],
    ['cache bytes', most('cache_bytes'), CACHE_MAX_BYTES],
    ['upstream calls under way', most('upstream_calls_under_way'), MAX_CALLS],
    ['reads under way at rest', mostIdle('reads_under_way'), 0],
    ['upstream calls at rest', mostIdle('upstream_calls_under_way'), 0],
    ['upstream calls waiting at rest', mostIdle('upstream_calls_waiting'), 0],
    ['answers of another status than expected, share', unexpected / requests, MAX_UNEXPECTED_SHARE],
  ];
  const seen = [...counts].map(
    ([name, byStatus]) =>
      `${name}: ${[...byStatus].map(([status, many]) => `${many} × ${status || 'left'}`).join(', ')}`,
  );
  console.log(`\n${seen.join('\n')}`);
  console.log(
    `\n${requests} requests in ${minutesSo().toFixed(1)} minutes, ${reads} distinct keys read, ${stored} of them stored`,
  );
  console.log(
    `heap after collection, measured from minute ${first.minute.toFixed(1)} to ${last.minute.toFixed(1)}, ${measured.length} samples: ` +
      `${first.heapMb.toFixed(2)} → ${last.heapMb.toFixed(2)} MB, ${slope.toFixed(3)} ± ${error.toFixed(3)} MB in 10 minutes; ` +
      `${refused} requests turned away because the machine was busy; most rss ${Math.max(...samples.map(({ rssMb }) => rssMb)).toFixed(0)} MB`,
  );
  console.log('\n| | most | bound |\n| --- | --- | --- |');
  for (const [name, value, bound] of rows) console.log(`| ${name} | ${Number(value.toFixed(3))} | ${bound} |`);
  const failed = rows.filter(([, value, bound]) => !(value <= bound)).map(([name]) => name);
  if (failed.length > 0) console.log(`\nBROKEN: ${failed.join('; ')}`);
  return failed;
}
