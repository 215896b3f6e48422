import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, pace, percentile } from '../support/client.ts';
import { POLICY } from '../support/gateways.ts';
import { scrape } from '../support/metrics.ts';
import { type Running, start, startGateway } from '../support/processes.ts';
import { callsOfUpstream } from './calls.ts';
import { Held } from './held.ts';

// What requests that wait for a change cost an instance, beside pending requests of Hono alone on its adapter. It needs
// `ulimit -n` of twice as many. What is asked for is cached, and nothing of it changes. Then what they cost the upstream.

const ACCOUNTS = Number(process.argv[2] ?? 1_250);
const OF_ACCOUNT = 4;
const ALL = ACCOUNTS * OF_ACCOUNT;
const PATH = '/api/v2/subscription/';
const CALM_SECONDS = 5;
const READS_A_SECOND = 200;
const TICKS_A_SECOND = 100;

interface Memory {
  readonly heapMb: number;
  readonly rssMb: number;
}

const accounts = Array.from({ length: ACCOUNTS }, (_, n) => `waits-${n}`);
const gc = ['--expose-gc'];
const descriptors = 20_000;

async function bare(): Promise<void> {
  const node = [...gc, '--import', new URL('../support/preload.ts', import.meta.url).href];
  const hono = await start({ script: 'test/load/waits/bare.ts', node, descriptors });
  const held = new Held();
  const before = await memory(hono);
  for (let n = 0; n < ALL; n++) await held.ask(hono.url, '/held', { Authorization: `Token bare-${n}` });
  await sleep(1_000);
  tell('Hono alone', before, await memory(hono));
  held.leave();
  await hono.stop();
}

async function waits(): Promise<void> {
  const upstream = await start({ script: 'test/load/overload/upstream.ts' });
  const env = { RATE_LIMIT_PER_MINUTE: '1000000000', UPSTREAM_BASE_URL: upstream.url, CACHE_POLICY: POLICY };
  const gateway = await startGateway({ env, node: gc, descriptors });
  const client = new Client(gateway.url, 8);
  const tags = await Promise.all(accounts.map(async (account) => [account, await tagOf(client, account)] as const));
  const p99Before = await p99Of(client);
  const before = await memory(gateway);
  const held = new Held();
  for (const [account, tag] of tags)
    for (let n = 0; n < OF_ACCOUNT; n++) await held.ask(gateway.url, PATH, waiting(account, tag));
  await sleep(1_000);
  console.log(
    `${(await scrape(gateway.admin)).sum('portico_waiting_requests')} wait, ${held.statuses.length} were answered at once`,
  );
  tell('Portico', before, await memory(gateway));
  const ticks = ticksOf(gateway.pid);
  await sleep(CALM_SECONDS * 1_000);
  const share = (ticksOf(gateway.pid) - ticks) / TICKS_A_SECOND / CALM_SECONDS;
  console.log(`CPU while nothing changes: ${(share * 100).toFixed(1)} % of a core`);
  console.log(
    `p99 of cached reads: ${p99Before.toFixed(1)} ms without, ${(await p99Of(client)).toFixed(1)} ms with them`,
  );
  await client.close();
  await ended(gateway, held);
  await upstream.stop();
}

async function ended(gateway: Running, held: Held): Promise<void> {
  const early = held.statuses.length;
  const at = performance.now();
  gateway.signal('SIGTERM');
  while (held.statuses.length < ALL && performance.now() - at < 20_000) await sleep(5);
  const ms = performance.now() - at;
  const with304 = held.statuses.slice(early).filter((status) => status === 304).length;
  console.log(`SIGTERM: ${with304} of ${ALL - early} ended with 304 after ${ms.toFixed(0)} ms`);
  held.leave();
  await gateway.end();
}

const waiting = (account: string, tag: string) => ({
  Authorization: `Token ${account}`,
  'If-None-Match': tag,
  Prefer: 'wait=30',
});

async function tagOf(client: Client, account: string): Promise<string> {
  const { headers, status } = await client.send({ path: PATH, account });
  if (status !== 200) throw new Error(`a read was answered with ${status}`);
  return String(headers['etag']);
}

async function p99Of(client: Client): Promise<number> {
  const times: number[] = [];
  const send = async (at: number) => {
    const account = accounts[times.length % ACCOUNTS] ?? '';
    times.push((await client.send({ path: PATH, account }, at)).ms);
  };
  await pace({ rate: READS_A_SECOND, seconds: 4 }, (at) => void send(at));
  await client.settled(5_000);
  return percentile(times, 0.99);
}

const memory = async (running: Running) => (await running.ask({})) as Memory;

function tell(name: string, before: Memory, after: Memory): void {
  const kb = (from: number, to: number) => (((to - from) * 1_024) / ALL).toFixed(2);
  const heap = kb(before.heapMb, after.heapMb);
  console.log(`${name}: ${heap} kB of heap and ${kb(before.rssMb, after.rssMb)} kB of RSS for each of ${ALL}`);
}

/** Of user and system, by what Linux says. */
function ticksOf(pid: number): number {
  const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ');
  const fields = rest.split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

await bare();
await waits();
await callsOfUpstream();
