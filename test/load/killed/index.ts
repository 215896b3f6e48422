import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Instance, until, workersOf } from '../rolling/gateways.ts';
import { scrape } from '../support/metrics.ts';
import { start } from '../support/processes.ts';
import { redisBinary, startRedis } from '../support/redis.ts';
import { type Failure, Visitors } from '../support/visitors.ts';
import { peersOf } from './connections.ts';
import { Counters } from './counters.ts';

/** One of two workers is killed now and then: what was in flight on it, and nothing else, may fail. */
const { values: args } = parseArgs({ options: { seconds: { type: 'string', default: '120' } } });
const EVERY_MS = 2_000;
const WORKERS = 2;
const UPSTREAM_MS = 20;

interface Kill {
  readonly at: number;
  /** When it was gone, and with it its connections. */
  readonly goneAt: number;
  /** The ports of those who had a connection to it. */
  readonly peers: ReadonlySet<number>;
  /** Until as many served as before. */
  readonly backMs: number;
}

/** It stands still first, so that nothing changes between the look at its connections and its end. */
async function kill({ pid, port, admin }: Instance): Promise<Kill> {
  const all = workersOf(pid);
  const victim = all[Math.floor(Math.random() * all.length)] ?? 0;
  process.kill(victim, 'SIGSTOP');
  const peers = peersOf(victim, Number(port));
  process.kill(victim, 'SIGKILL');
  const at = performance.now();
  await until(async () => !workersOf(pid).includes(victim), 'it is gone');
  const goneAt = performance.now();
  await until(async () => (await scrape(admin)).sum('portico_workers') === WORKERS, 'another worker serves');
  return { at, goneAt, peers, backMs: performance.now() - at };
}

async function killAll(instance: Instance): Promise<readonly Kill[]> {
  const kills: Kill[] = [];
  const endAt = performance.now() + Number(args.seconds) * 1_000;
  for (let dueAt = performance.now() + EVERY_MS; dueAt < endAt; dueAt += EVERY_MS) {
    await sleep(Math.max(0, dueAt - performance.now()));
    kills.push(await kill(instance)); // one at a time: the other one has to be there
  }
  return kills;
}

const wasInFlight =
  ({ port, sentAt, failedAt }: Failure) =>
  ({ at, goneAt, peers }: Kill) =>
    peers.has(port) && sentAt <= goneAt && failedAt >= at;

/** Whether it is as it should be. */
async function run(): Promise<boolean> {
  const upstream = await start({ script: 'test/load/support/failing-upstream.ts' });
  await upstream.ask({ ms: UPSTREAM_MS });
  const redis = await startRedis(0, { appendonly: 'yes' });
  const env = { UPSTREAM_BASE_URL: upstream.url, STORE_URL: redis.url, WORKERS: String(WORKERS) };
  const instance = await Instance.start(env);
  const counters = new Counters(instance.admin);
  const counting = counters.run();
  const visitors = new Visitors(`http://127.0.0.1:${instance.port}`);
  const visiting = visitors.run();
  const kills = await killAll(instance);
  visitors.leave();
  await visiting;
  counters.end();
  await counting;
  const { charges } = (await upstream.ask({})) as { charges: Record<string, number> };
  await instance.stop();
  await Promise.all([redis.stop(), upstream.stop()]);

  const { requests, purchases, failures } = visitors;
  const { twice, untold } = visitors.wrongIn(charges);
  const others = failures.filter((failure) => !kills.some(wasInFlight(failure)));
  const unknown = purchases.filter(({ isUnknown }) => isUnknown).length;
  const deaths = counters.valueOf('portico_worker_deaths_total');
  console.log(
    `${requests} requests, ${purchases.length} purchases, ${kills.length} workers killed; failed of those in flight on them ` +
      `${failures.length - others.length}, others ${others.length}; charged twice ${twice.length}, of unknown outcome ${unknown}, ` +
      `never answered ${untold.length}; deaths counted ${deaths}; counters that fell ${counters.fallen.length} in ${counters.scrapes} looks; ` +
      `two workers again after ${Math.round(Math.max(...kills.map(({ backMs }) => backMs)))} ms at most`,
  );
  for (const { what, sentAt, failedAt, port, nth, why } of others.slice(0, 30)) {
    const last = kills.findLast(({ at }) => at <= failedAt)?.at ?? 0;
    const at = (instant: number) => `${Math.round(instant - last)} ms`;
    console.log(
      `  ${what}, the ${nth + 1}. of connection ${port}, sent ${at(sentAt)} and failed ${at(failedAt)} after a kill: ${why}`,
    );
  }
  for (const text of counters.fallen.slice(0, 30)) console.log(`  ${text}`);
  return others.length + twice.length + counters.fallen.length === 0 && deaths === kills.length;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
if (redisBinary === undefined) {
  console.log('Neither redis-server nor valkey-server is installed: nothing is tried.');
  process.exit(process.env['CI'] === undefined ? 0 : 1);
}
process.exit((await run()) ? 0 : 1);
