import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { percentile } from '../harness/client.ts';
import { OpenLoop, type Sample } from './open-loop.ts';
import { start } from '../harness/processes.ts';
import { freePort } from '../../scripts/free-port.ts';

const PATH = '/api/v2/subscription/';
const TIMES = 3;
const LOAD_SECONDS = Number(process.env['LOAD_SECONDS'] ?? 10);
const CAPACITY_SECONDS = 4;
const BUSY = 64;
const MAX_CONNECTIONS = Number(process.env['MAX_CONNECTIONS'] ?? 2_000);
const UPSTREAM_MS = Number(process.env['UPSTREAM_MS'] ?? 0);
const PROBE_EVERY_MS = 100;
const RECOVERY_MS = 15_000;
const CALM_IN_A_ROW = 10;

const livez = () => 'GET /livez HTTP/1.1\r\nHost: bench\r\n\r\n';

let accounts = 0;
/** Each of an account that nobody has seen: nothing of it is in the cache. */
const coldRead = () =>
  `GET ${PATH} HTTP/1.1\r\nHost: bench\r\nAuthorization: Token bench-${accounts++}\r\nUser-Agent: bench\r\n\r\n`;

/** The load is made in a thread of its own: this one has to read the gateway's log, or the gateway waits for it. */
async function measure(): Promise<void> {
  const upstream = await start({ script: 'bench/overload/upstream.ts', args: [String(UPSTREAM_MS)], core: 1 });
  // Port 0 has one listening socket only.
  const env = {
    PORT: String(await freePort()),
    ADMIN_PORT: '0',
    UPSTREAM_BASE_URL: upstream.url,
    RATE_LIMIT_PER_MINUTE: '0',
  };
  const gateway = await start({ script: 'src/entry/node.ts', env, core: 0 });
  const load = new Worker(new URL(import.meta.url), { workerData: Number(new URL(gateway.url).port) });
  await once(load, 'exit');
  await Promise.all([gateway.stop(), upstream.stop()]);
}

// Given to the thread above.
const port = workerData as number;
let calm = Number.NaN;

if (isMainThread) {
  await measure();
} else {
  const capacity = await closedLoop();
  calm = await calmP99();
  console.log(`can serve ${Math.round(capacity)}/s; when calm, p99 is ${calm.toFixed(1)} ms`);
  await overload(TIMES * capacity);
}

/** Answers a second, when each of some clients sends its next request as soon as it has its answer. */
async function closedLoop(): Promise<number> {
  const warmUp = await closed(2);
  const measured = await closed(CAPACITY_SECONDS);
  if (measured.some(({ status }) => status !== 200)) console.log('some were shed without overload', tally(measured));
  return warmUp.length > 0 ? measured.length / CAPACITY_SECONDS : 0;
}

async function closed(seconds: number): Promise<readonly Sample[]> {
  const loop = new OpenLoop({ port, request: coldRead, maxConnections: BUSY });
  const endAt = performance.now() + seconds * 1_000;
  for (let sent = 0; performance.now() < endAt; await sleep(0)) {
    for (; sent - loop.samples.length < BUSY; sent++) loop.send();
  }
  await loop.settled(5_000);
  loop.close();
  return loop.samples;
}

function timesOf(samples: readonly Sample[]): number[] {
  return samples.map(({ ms }) => ms);
}

async function calmP99(): Promise<number> {
  const loop = new OpenLoop({ port, request: coldRead, maxConnections: BUSY });
  await loop.run({ rate: 100, seconds: 2 });
  await loop.settled(5_000);
  loop.close();
  return percentile(timesOf(loop.samples), 0.99);
}

async function overload(rate: number): Promise<void> {
  const loop = new OpenLoop({ port, request: coldRead, maxConnections: MAX_CONNECTIONS });
  const probes: Sample[] = [];
  const probing = setInterval(() => void probe(probes), PROBE_EVERY_MS);
  await loop.run({ rate, seconds: LOAD_SECONDS });
  clearInterval(probing);
  const endedAt = performance.now();
  const atEnd = loop.samples.length;
  const recovery = timeUntilCalm(endedAt);
  await loop.settled(20_000);
  const drained = performance.now() - endedAt;
  loop.close();
  const inTime = loop.samples.slice(0, atEnd);
  const served = inTime.filter(({ status }) => status === 200);
  const shed = inTime.filter(({ status }) => status === 503);
  const others = inTime.filter(({ status }) => status !== 200 && status !== 503);
  const perSecond = (samples: readonly Sample[]) => Math.round(samples.length / LOAD_SECONDS);
  console.log(
    `\noffered ${Math.round(rate)}/s for ${LOAD_SECONDS} s on up to ${MAX_CONNECTIONS} connections (${loop.connections} used)`,
  );
  console.log('\n| | a second | p50 ms | p99 ms |\n| --- | --- | --- | --- |');
  for (const [name, samples] of [
    ['served', served],
    ['shed', shed],
    ['probes, each on a new connection', probes.slice()],
  ] as const) {
    const times = timesOf(samples);
    const [middle, high] = [percentile(times, 0.5), percentile(times, 0.99)];
    console.log(`| ${name} | ${perSecond(samples)} | ${middle.toFixed(1)} | ${high.toFixed(1)} |`);
  }
  console.log(
    `\nother answers: ${JSON.stringify(tally(others))}, no answer: ${loop.failed}, answered after the load: ${loop.samples.length - atEnd}`,
  );
  console.log(`all settled after ${Math.round(drained)} ms; back to normal after ${Math.round(await recovery)} ms`);
}

/** What a load balancer sees that asks whether the process lives. */
async function probe(probes: Sample[]): Promise<void> {
  const one = new OpenLoop({ port, request: livez, maxConnections: 1 });
  one.send();
  await one.settled(10_000);
  one.close();
  probes.push(...one.samples);
}

/** Until ten reads in a row are served as quickly as a calm gateway serves them. */
async function timeUntilCalm(sinceAt: number): Promise<number> {
  const loop = new OpenLoop({ port, request: coldRead, maxConnections: 50 });
  const limit = Math.max(20, 3 * calm);
  let calmSince = Infinity;
  for (let inARow = 0; inARow < CALM_IN_A_ROW && performance.now() - sinceAt < RECOVERY_MS;) {
    const sentAt = performance.now();
    loop.send(sentAt);
    await loop.settled(5_000);
    const last = loop.samples.at(-1);
    const isCalm = last?.status === 200 && last.ms < limit;
    if (isCalm && inARow === 0) calmSince = sentAt;
    inARow = isCalm ? inARow + 1 : 0;
    await sleep(20);
  }
  loop.close();
  return calmSince - sinceAt;
}

function tally(samples: readonly Sample[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of samples) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
