import { setTimeout as sleep } from 'node:timers/promises';
import { storeAddressOf } from '../../../src/entry/node/redis/address.ts';
import { RedisEngine } from '../../../src/entry/node/redis/engine.ts';
import { grown, type RedisServer, startRedis } from '../support/redis.ts';

const FLEETS = [2, 10, 50];
const CHANGES = [0, 50];
const MEASURED_MS = 5_000;
/** Hits a second of each instance: more than enough for beats. */
const HITS = 1_000;
const HIT_EVERY_MS = 10;
const COLUMNS = ['Redis, % of a core', 'an instance, % of a core', 'messages a second'];

/** What it costs that every instance hears of the changes of all, and asks often enough to know that it has heard of all. */
export async function benchListeners(): Promise<void> {
  console.log(`\n| instances, changes a second | ${COLUMNS.join(' | ')} |`);
  console.log(`| --- |${' --- |'.repeat(COLUMNS.length)}`);
  for (const instances of FLEETS) for (const changes of CHANGES) await look(instances, changes);
}

async function look(instances: number, changes: number): Promise<void> {
  const redis = await startRedis(1);
  const engines = await Promise.all(Array.from({ length: instances }, () => open(redis)));
  while (!engines.every((engine) => engine.changes?.isListening)) await sleep(HIT_EVERY_MS);
  const timer = setInterval(() => {
    for (const { changes: heard } of engines) if (heard) heard.uses += (HITS * HIT_EVERY_MS) / 1_000;
  }, HIT_EVERY_MS);
  await sleep(2_000); // until all of them beat
  const [before, cpuBefore] = [await redis.counted(), process.cpuUsage()];
  const end = performance.now() + MEASURED_MS;
  let made = 0;
  while (performance.now() < end) {
    const due = Math.floor(((performance.now() - end + MEASURED_MS) / 1_000) * changes);
    for (; made < due; made++)
      await engines[0]?.change(`account ${made}`, { revoked: { id: `session ${made}`, lifeMs: 60_000 } });
    await sleep(5);
  }
  const { cpuUs } = grown(before, await redis.counted());
  const { user, system } = process.cpuUsage(cpuBefore);
  clearInterval(timer);
  const percent = (us: number) => ((us / 1_000 / MEASURED_MS) * 100).toFixed(2);
  const messages = ((made * instances) / MEASURED_MS) * 1_000;
  console.log(
    `| ${instances}, ${changes} | ${percent(cpuUs)} | ${percent((user + system) / instances)} | ${messages.toFixed(0)} |`,
  );
  for (const engine of engines) engine.close();
  await redis.stop();
}

const nothing = () => undefined;

function open({ url }: RedisServer): Promise<RedisEngine> {
  const address = storeAddressOf(url);
  if (!address) throw new Error(`${url} is no address of a store`);
  return RedisEngine.open({ address, windowMs: 0, onCommand: nothing, onChange: nothing, onTrouble: nothing });
}
