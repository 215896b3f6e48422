import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Client, type Outcome, pace, type Wanted } from '../../../../bench/harness/client.ts';
import { scrape } from '../../../../bench/harness/metrics.ts';
import { start, startGateway } from '../../../../bench/harness/processes.ts';
import { coldRead, filling, kinds } from './load.ts';

const { values: args } = parseArgs({
  options: { minutes: { type: 'string', default: '30' }, keys: { type: 'string', default: '1000000' } },
});
const MINUTES = Number(args.minutes);
const KEYS = Number(args.keys);
const IS_LONG = MINUTES >= 10;

const CACHE_MAX_BYTES = 33_554_432;
const MAX_CALLS = 256;
/** Fewer than what the gateway takes for too many when others keep the machine busy: what is soaked is not the shedding. */
const MAX_IN_FLIGHT = 48;
const SAMPLE_SECONDS = IS_LONG ? 15 : 4;
/** After all that is bounded is full, until memory is measured: functions are still being compiled. */
const SETTLE_SECONDS = IS_LONG ? 180 : 25;
const LEAST_MEASURED_SECONDS = 30;
/** On a busy machine it takes longer until all keys have been read. */
const MAX_OVERTIME = 1.5;
/** From the first half of the samples to the second; a leak of some hundred bytes a request would show in a short run too. */
const MAX_RISE_MB = IS_LONG ? 1 : 5;
/** A busy machine sheds in a short run what a long one makes up for. */
const MAX_UNEXPECTED_SHARE = IS_LONG ? 0.001 : 0.2;
const GAUGES = ['cache_bytes', 'reads_under_way', 'upstream_calls_under_way', 'upstream_calls_waiting'] as const;
type Gauges = Record<(typeof GAUGES)[number], number>;

interface Sample {
  readonly minute: number;
  readonly heapMb: number;
  readonly busy: Gauges;
  readonly idle: Gauges;
}

const upstream = await start({ script: 'bench/harness/failing-upstream.ts' });
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
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const samples: Sample[] = [];
const counts = new Map<string, number>();
let [reads, unexpected, requests] = [0, 0, 0];

await fill();
samples.push(await sample());
console.log(`after ${requests} requests everything that is bounded is at its bound`);
const measuredFrom = minutesSo() + SETTLE_SECONDS / 60;
const endMinute = Math.max(MINUTES, measuredFrom + LEAST_MEASURED_SECONDS / 60);
let restSeconds = 1;
while (goesOn()) {
  const secondsLeft = Math.max(SAMPLE_SECONDS, (endMinute - minutesSo()) * 60);
  const loadSeconds = (secondsLeft * SAMPLE_SECONDS) / (SAMPLE_SECONDS + restSeconds);
  const rate = (KEYS - reads) / loadSeconds;
  await pace({ rate, seconds: SAMPLE_SECONDS, mayGoOn: () => client.inFlight < MAX_IN_FLIGHT }, newRead);
  const restedFrom = performance.now();
  samples.push(await sample());
  restSeconds = (performance.now() - restedFrom) / 1_000;
}
process.exitCode = isWithinBounds() ? 0 : 1;
await client.close();
await Promise.all([gateway.stop(), upstream.stop()]);

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
  for (const [name, share, expected, wanted] of kinds) {
    const before = Math.floor(read * share);
    if (Math.floor((read + 1) * share) > before)
      void send(wanted(before, read)).then((outcome) => count(name, expected, outcome));
  }
}

function send(wanted: Wanted): Promise<Outcome> {
  requests++;
  return client.send(wanted);
}

function count(kind: string, expected: readonly number[], { status }: Outcome): void {
  const name = `${kind}: ${status || 'left'}`;
  counts.set(name, (counts.get(name) ?? 0) + 1);
  if (!expected.includes(status)) unexpected++;
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
  const { heapMb } = (await gateway.ask({})) as { heapMb: number };
  const minute = minutesSo();
  console.log(`${minute.toFixed(1)} min, ${reads} keys, heap ${heapMb.toFixed(2)} MB, ${JSON.stringify(idle)}`);
  return { minute, heapMb, busy, idle };
}

function isWithinBounds(): boolean {
  const measured = samples.filter(({ minute }) => minute > measuredFrom).map(({ heapMb }) => heapMb);
  const half = measured.length >> 1;
  const most = (name: keyof Gauges) => Math.max(...samples.flatMap(({ busy, idle }) => [busy[name], idle[name]]));
  const atRest = (name: keyof Gauges) => Math.max(...samples.map(({ idle }) => idle[name]));
  const rows: readonly (readonly [what: string, most: number, bound: number])[] = [
    ['keys not read', KEYS - reads, 0],
    ['rise of the heap, MB', mean(measured.slice(half)) - mean(measured.slice(0, half)), MAX_RISE_MB],
    ['cache bytes', most('cache_bytes'), CACHE_MAX_BYTES],
    ['upstream calls under way', most('upstream_calls_under_way'), MAX_CALLS],
    ['reads under way at rest', atRest('reads_under_way'), 0],
    ['upstream calls at rest', atRest('upstream_calls_under_way'), 0],
    ['upstream calls waiting at rest', atRest('upstream_calls_waiting'), 0],
    ['answers of another status than expected, share', unexpected / requests, MAX_UNEXPECTED_SHARE],
  ];
  console.log(Array.from(counts, ([name, many]) => `${many} × ${name}`).join(', '));
  console.log(`${requests} requests in ${minutesSo().toFixed(1)} minutes, heap by ${measured.length} samples`);
  for (const [what, value, bound] of rows) console.log(`| ${what} | ${Number(value.toFixed(3))} | at most ${bound} |`);
  const broken = rows.filter(([, value, bound]) => !(value <= bound)).map(([what]) => what);
  if (broken.length > 0) console.log(`BROKEN: ${broken.join('; ')}`);
  return broken.length === 0;
}
