import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Faults, type Happened, KILLED, type Loss, PAUSED } from './faults.ts';
import { ChaosGateway } from './gateways.ts';
import { ChaosLoad, type Order } from './load.ts';
import { type Kind, LAG_SECONDS, startStore } from './stores.ts';
import { type Charge, ChaosUpstream } from './upstream.ts';
import { redisBinary } from '../../../../bench/harness/redis.ts';

/**
 * Instances over one Redis, instances over Sentinel, and the workers of one instance, of which one part after the other is
 * killed, paused, cut off, filled or emptied while purchases and write-then-read pairs go on: `contract.md`, sections 5 and 7.
 */
const { values: args } = parseArgs({
  options: { minutes: { type: 'string', default: '2' }, kind: { type: 'string', multiple: true } },
});
const KINDS: readonly Kind[] = ['one', 'sentinel', 'workers'];
const MINUTE_MS = 60_000;
const INSTANCES = 3;
/** For what is still open. */
const END_MS = 90_000;
/** From the end of a write to its client. */
const ANSWER_MS = 250;

interface Double {
  readonly order: Order;
  readonly charges: readonly Charge[];
  /** What may have lost its record. */
  readonly lostBy: Loss['is'] | undefined;
}

/**
 * Of a purchase, between two of its charges. One under way at a flush is recorded later, unless its instance is killed, or was paused
 * between recording it and telling its client.
 */
function mayLose({ is, from, to }: Loss, { order, charges, kills, pauses }: Asked): boolean {
  const [first, second] = charges;
  if (!first || !second || second.at < from) return false;
  const isOrphan = kills.some((at) => at >= order.beganAt && at <= first.at + ANSWER_MS);
  const isToldLate = pauses.some(
    ({ at, endedAt }) => at <= to && order.beganAt <= at && order.endedAt >= at && order.endedAt <= endedAt + ANSWER_MS,
  );
  if (is === 'flush') return isToldLate || order.endedAt <= to + ANSWER_MS || (isOrphan && order.beganAt <= to);
  return first.at >= from - LAG_SECONDS * 1_000 && first.at <= to;
}

interface Asked extends Omit<Double, 'lostBy'> {
  readonly kills: readonly number[];
  readonly pauses: readonly Pick<Happened, 'at' | 'endedAt'>[];
}

function doublesOf(orders: readonly Order[], all: readonly Charge[], { losses, happened }: Faults): readonly Double[] {
  const byKey = Map.groupBy(all, ({ key }) => key);
  const kills = happened.filter(({ name }) => name === KILLED).map(({ at }) => at);
  const pauses = happened.filter(({ name }) => name === PAUSED);
  return orders.flatMap((order) => {
    const charges = byKey.get(order.key) ?? [];
    if (charges.length < 2) return [];
    const causes = losses.filter((loss) => mayLose(loss, { order, charges, kills, pauses })).map(({ is }) => is);
    return [{ order, charges, lostBy: causes.includes('flush') ? 'flush' : causes[0] }];
  });
}

interface Ran {
  readonly kind: Kind;
  readonly beganAt: number;
  readonly load: ChaosLoad;
  readonly faults: Faults;
  readonly doubles: readonly Double[];
}

async function run(kind: Kind): Promise<Ran> {
  const upstream = new ChaosUpstream();
  const [url, store] = await Promise.all([upstream.listen(), startStore[kind]()]);
  const gateways = await Promise.all(
    Array.from({ length: store.url === undefined ? 1 : INSTANCES }, () => ChaosGateway.open(url, store.url)),
  );
  const load = new ChaosLoad(gateways, upstream);
  const faults = new Faults(gateways, store);
  const beganAt = performance.now();
  const all = Promise.all([load.run(), faults.run()]);
  await Promise.race([all, sleep(Number(args.minutes) * MINUTE_MS)]);
  faults.end();
  load.end();
  if (await Promise.race([all.then(() => false), sleep(END_MS, true)])) load.odd.push('what was open did not end');
  await Promise.all(gateways.map((gateway) => gateway.close()));
  upstream.close();
  await store.close();
  return { kind, beganAt, load, faults, doubles: doublesOf(load.orders, upstream.charges, faults) };
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

/** What came of it; and where a promise was broken, all that happened. Comes out with whether none was. */
function report({ kind, beganAt, load, faults, doubles }: Ran): boolean {
  const { orders, oldReads } = load;
  const at = (instant: number) => seconds(instant - beganAt);
  const ended = (outcome: Order['outcome']) => orders.filter((order) => order.outcome === outcome).length;
  const twice = doubles.filter(({ lostBy }) => lostBy === undefined);
  const broken = [
    ...twice.map(({ order, charges }) => {
      const charged = charges.map((charge) => at(charge.at)).join(' and ');
      return `${order.key}: begun ${at(order.beganAt)}, ${order.outcome} ${at(order.endedAt)}, charged ${charged}`;
    }),
    ...oldReads.map((read) => `an old read: ${JSON.stringify({ ...read, at: at(read.at) })}`),
    ...load.odd,
  ];
  const lines = [
    `${kind}, ${args.minutes} min: ${faults.happened.length} faults, ${faults.losses.length} flushes and failovers`,
    `${orders.length} purchases (${ended('good')} good, ${ended('unknown')} unknown, ${ended('open')} open)`,
    `charged twice ${twice.length}, and of those that the store lost ${doubles.length - twice.length}`,
    `${load.pairs} pairs, ${load.reads} reads: old ${oldReads.length}`,
    `not good: ${Array.from(load.failed, ([what, many]) => `${many} × ${what}`).join(', ')}`,
  ];
  console.log(lines.join('; '));
  if (broken.length === 0) return true;
  console.log(broken.slice(0, 30).join('\n'));
  for (const fault of faults.happened) console.log(`${fault.name}: ${at(fault.at)} to ${at(fault.endedAt)}`);
  return false;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
if (redisBinary === undefined) {
  console.log('Neither redis-server nor valkey-server is installed: nothing is tried.');
  process.exit(process.env['CI'] === undefined ? 0 : 1);
}
for (const kind of KINDS.filter((one) => args.kind?.includes(one) ?? true))
  if (!report(await run(kind))) process.exitCode = 1;
process.exit();
