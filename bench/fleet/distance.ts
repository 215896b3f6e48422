import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type Outcome, percentile, type Wanted } from '../harness/client.ts';
import { type Gateways, startGateways } from '../harness/gateways.ts';
import { OVERVIEW, READ } from './reads.ts';
import { startRedis } from '../harness/redis.ts';
import { start } from '../harness/processes.ts';
import { type Distance, type Relay, startRelay } from '../harness/relay.ts';
import { purchase } from './kinds.ts';

const MANY = 60;
const AT_ONCE = 2;
/** For the connection, which takes some round trips. */
const PATIENCE_MS = 20_000;
const LOOK_MS = 100;

interface Case extends Distance {
  readonly name: string;
  /** p50 of a hit, and how much longer a miss may take than without a store. */
  readonly most?: { readonly hitMs: number; readonly missMs: number };
}

const cases: readonly Case[] = [
  { name: '0 ms', ms: 0 },
  { name: '45 ms', ms: 45, most: { hitMs: 50, missMs: 100 } },
  { name: '45 ms, 30 more or less', ms: 45, jitterMs: 30 },
  // Beyond 200 ms a read does without the store.
  { name: '300 ms', ms: 300, most: { hitMs: Number.POSITIVE_INFINITY, missMs: 200 } },
];

const read = (path: string) => (i: number) => ({ path, account: `reader-${i}` });

/** In this order: who reads has read before, except the first time. The calls, and what is good of them. */
const kinds: readonly (readonly [string, (i: number) => Wanted])[] = [
  ['miss', read(READ)],
  ['hit', read(READ)],
  ['overview, cold but for that', read(OVERVIEW)],
  ['overview, a hit', read(OVERVIEW)],
  ['purchase with a key', purchase('buyer')],
];

interface Row {
  readonly p50: number;
  /** Questions that the store was asked for each. */
  readonly questions: number;
  readonly refused: number;
}

/** What a store that is far away costs a request, and which are refused. */
export async function benchDistance(): Promise<void> {
  const upstream = await start({ script: 'bench/harness/failing-upstream.ts', core: 1 });
  const without = await measure(upstream.url);
  const columns = kinds.flatMap(([name]) => [`${name}: p50, ms`, 'questions']);
  console.log(`\n| a round trip to Redis takes | ${columns.join(' | ')} | purchases refused of ${MANY} |`);
  console.log(`| --- |${' --- |'.repeat(columns.length + 1)}`);
  console.log(lineOf('no store', without));
  const misses: string[] = [];
  for (const one of cases) {
    const rows = await measure(upstream.url, one);
    console.log(lineOf(one.name, rows));
    if (!isGood(one, rows, without)) misses.push(one.name);
  }
  await upstream.stop();
  console.log(misses.length === 0 ? 'All are within their targets.' : `Too slow: ${misses.join('; ')}.`);
  if (misses.length > 0) process.exitCode = 1;
}

const lineOf = (name: string, rows: readonly Row[]) => {
  const figures = rows.flatMap(({ p50, questions }) => [p50.toFixed(1), Number(questions.toFixed(2))]);
  return `| ${name} | ${figures.join(' | ')} | ${rows.at(-1)?.refused} |`;
};

function isGood({ most }: Case, [miss, hit]: readonly Row[], [own]: readonly Row[]): boolean {
  if (!most || !miss || !hit || !own) return true;
  return hit.p50 <= most.hitMs && miss.p50 - own.p50 <= most.missMs;
}

async function measure(upstream: string, distance?: Distance): Promise<readonly Row[]> {
  const redis = distance && (await startRedis(1));
  const relay = redis && (await startRelay(redis.port));
  if (relay && distance) relay.distance = distance;
  const store = relay && { storeUrl: `redis://127.0.0.1:${relay.port}` };
  const gateways = await startGateways({ upstream, instances: 1, core: 0, ...store });
  if (relay) await untilReached(gateways);
  const client = new Client(gateways.urls[0] ?? '', AT_ONCE);
  await client.send({ path: READ, account: 'first' });
  const rows: Row[] = [];
  for (const [, wanted] of kinds) rows.push(await look(client, wanted, relay));
  await client.close();
  await Promise.all([gateways.stop(), relay?.close(), redis?.stop()]);
  return rows;
}

async function untilReached(gateways: Gateways): Promise<void> {
  for (const until = performance.now() + PATIENCE_MS; performance.now() < until; await sleep(LOOK_MS))
    if ((await gateways.sum('portico_store_up')) === 1) return;
  throw new Error('the store was never reached');
}

async function look(client: Client, wanted: (i: number) => Wanted, relay: Relay | undefined): Promise<Row> {
  const before = relay?.questions ?? 0;
  const outcomes: Outcome[] = [];
  let next = 0;
  const worker = async () => {
    while (next < MANY) outcomes.push(await client.send(wanted(next++)));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  await sleep(2 * (relay?.distance.ms ?? 0)); // what nobody waits for
  const good = outcomes.filter(({ status }) => status === 200).map(({ ms }) => ms);
  const questions = ((relay?.questions ?? 0) - before) / MANY;
  return { p50: percentile(good, 0.5), questions, refused: MANY - good.length };
}
