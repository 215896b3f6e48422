import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Client } from '../support/client.ts';
import { POLICY } from '../support/gateways.ts';
import { REFUSALS, scrape } from '../support/metrics.ts';
import { type Attack, attacks } from './attacks.ts';
import { AGENT, Neighbours } from './load.ts';
import {
  BOUNDED,
  type Bounded,
  CACHE_MAX_BYTES,
  judge,
  type Judged,
  lineOf,
  printHead,
  printMemory,
  type Seen,
  type Stretch,
} from './report.ts';
import { type Running, start, startGateway } from '../support/processes.ts';

/**
 * What others notice while one account, one address or made-up credentials do their worst with half a core of the
 * gateway: nothing (`contract.md`, sections 5 and 7).
 */
const { values: args } = parseArgs({
  options: {
    /** Of each attack. */
    seconds: { type: 'string', default: '60' },
    /** Attacks that have this in their name. */
    only: { type: 'string', default: '' },
  },
});
const SECONDS = Number(args.seconds);
const CALM_SECONDS = Math.max(8, SECONDS / 3);
/** Functions are compiled after it. */
const WARM_SECONDS = 2;
/** Below it the machine is measured and not the gateway: a short run looks at what is done, not at how fast. */
const P99_FLOOR_MS = SECONDS >= 30 ? 10 : 50;

/** What an attack may take of the gateway's time. */
const CORES = 0.5;
const FIRST_RATE = 8;
const MAX_RATE = 5_000;
const LOOK_MS = 250;
const GAUGES_MS = 5_000;
/** In a second, and of a process as Linux tells it. */
const TICKS = 100;

interface Stage {
  readonly upstream: Running;
  readonly gateway: Running;
  readonly attacker: Running;
  readonly admin: string;
  readonly neighbours: Neighbours;
}

async function suffer(attack: Attack): Promise<Seen> {
  const upstream = await start({ script: 'test/load/support/failing-upstream.ts' });
  await upstream.ask({ ms: 5 });
  const gateway = await startGateway({
    node: ['--expose-gc'],
    env: {
      UPSTREAM_BASE_URL: upstream.url,
      UPSTREAM_MAX_CONNECTIONS: '64',
      CACHE_MAX_BYTES: String(CACHE_MAX_BYTES),
      CACHE_POLICY: POLICY,
      RATE_LIMIT_PER_MINUTE: '6000',
      TRUSTED_PROXIES: '127.0.0.1',
      ...attack.env,
    },
  });
  const attacker = await start({ script: 'test/load/neighbours/attacker.ts', args: [gateway.url, attack.name] });
  const client = new Client(gateway.url, 256);
  try {
    return await observe(
      { upstream, gateway, attacker, admin: gateway.admin, neighbours: new Neighbours(client) },
      attack,
    );
  } finally {
    await attacker.stop();
    await client.close();
    await Promise.all([gateway.stop(), upstream.stop()]);
  }
}

async function observe(stage: Stage, attack: Attack): Promise<Seen> {
  const { gateway, attacker, neighbours } = stage;
  await neighbours.settleIn();
  await neighbours.live(WARM_SECONDS);
  const heapMb = async () => {
    const { heapMb: heap, externalMb } = (await gateway.ask({})) as { heapMb: number; externalMb: number };
    return heap + externalMb;
  };
  const heapBefore = await heapMb();
  const { most, refused, over: unwatch } = watch(stage.admin);
  const without = await live(stage, CALM_SECONDS);
  const over = new AbortController();
  const attacking = keepBusy(stage, { most: attack.most ?? MAX_RATE, calm: without.cores, over: over.signal });
  const during = await live(stage, SECONDS);
  over.abort();
  await attacking;
  await unwatch();
  const told = (await attacker.ask({ rate: 0 })) as Pick<Seen, 'sent' | 'statuses'>;
  return { attack: attack.name, without, during, most, refused, heapMb: [heapBefore, await heapMb()], ...told };
}

async function live({ upstream, gateway, neighbours }: Stage, leastSeconds: number): Promise<Stretch> {
  const received = async () =>
    ((await upstream.ask({})) as { receivedFrom: Record<string, number> }).receivedFrom[AGENT] ?? 0;
  const [calls, cpu, beganAt] = [await received(), await cpuSeconds(gateway), performance.now()];
  const fared = await neighbours.live(leastSeconds);
  const seconds = (performance.now() - beganAt) / 1_000;
  const cores = ((await cpuSeconds(gateway)) - cpu) / seconds;
  return { ...fared, seconds, cores, more: (await received()) - calls - fared.calls };
}

async function cpuSeconds({ pid }: Running): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // from the third, of which user and system are 14 and 15
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

interface Share {
  readonly most: number;
  /** What the gateway takes without an attack. */
  readonly calm: number;
  readonly over: AbortSignal;
}

/** As many requests a second as cost the gateway half a core. */
async function keepBusy({ gateway, attacker }: Stage, { most, calm, over }: Share): Promise<void> {
  for (let rate = FIRST_RATE; !over.aborted;) {
    await attacker.ask({ rate });
    const [cpu, at] = [await cpuSeconds(gateway), performance.now()];
    await sleep(LOOK_MS);
    const cores = ((await cpuSeconds(gateway)) - cpu) / ((performance.now() - at) / 1_000) - calm;
    rate = Math.min(most, rate * Math.min(2, Math.max(0.5, CORES / Math.max(0.01, cores))));
  }
}

/** Looks now and then at what is bounded, and at the end at what was turned away. */
function watch(admin: string) {
  const most = Object.fromEntries([...BOUNDED, 'rssMb'].map((name) => [name, 0])) as Record<Bounded | 'rssMb', number>;
  const refused: Record<string, number> = {};
  const look = async () => {
    const metrics = await scrape(admin);
    for (const by of REFUSALS) refused[by] = metrics.sum('portico_refused_total', `by="${by}"`);
    for (const name of BOUNDED) most[name] = Math.max(most[name], metrics.sum(`portico_${name}`));
    most.rssMb = Math.max(most.rssMb, metrics.sum('process_resident_memory_bytes') / 1_048_576);
  };
  const looking = setInterval(() => void look(), GAUGES_MS);
  const over = () => {
    clearInterval(looking);
    return look();
  };
  return { most, refused, over };
}

const chosen = attacks.filter(({ name }) => name.includes(args.only));
if (chosen.length === 0) throw new Error(`there are ${attacks.map(({ name }) => name).join('; ')}`);
const judged: Judged[] = [];
printHead(P99_FLOOR_MS);
for (const attack of chosen) {
  const one = judge(await suffer(attack), P99_FLOOR_MS);
  console.log(lineOf(one.others));
  judged.push(one);
}
printMemory(judged);
const broken = judged.flatMap((one) => one.broken);
console.log(broken.length > 0 ? `\nBROKEN: ${broken.join('; ')}` : '\nall within bounds');
process.exitCode = broken.length > 0 ? 1 : 0;
