import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { killAll } from '../runtime/node-gateway.ts';
import { startOldRedis } from '../store/engine-world.ts';
import { openSocket } from '../support/raw-client.ts';
import type { TestRedis } from '../support/redis.ts';
import { type Manned, socketsOf, start } from './helpers.ts';

let redis: TestRedis;

beforeAll(async () => {
  redis = await startOldRedis();
});

afterEach(killAll);

afterAll(() => redis.close());

const startHere = () => start({ UPSTREAM_BASE_URL: 'http://127.0.0.1:9', STORE_URL: redis.url });

/** More than there are workers: each of them is handed one, and is handed no other until it has taken that. */
const NEWCOMERS = 6;

/** New connections with a request each, and what has become of them. */
function come({ port }: Manned): (number | string)[] {
  const became: (number | string)[] = [];
  const note = (what: number | string) => void became.push(what);
  const askOnce = async () => {
    const socket = await openSocket(port);
    await socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n');
    return (await socket.readResponse()).status;
  };
  for (let n = 0; n < NEWCOMERS; n++) askOnce().then(note, () => note('closed'));
  return became;
}

const signal = (pids: readonly number[], name: NodeJS.Signals) => {
  for (const pid of pids) process.kill(pid, name);
};

const SOON = { timeout: 20_000, interval: 20 };

it('a connection that a worker was handed, and had not taken when it was killed, goes to another one', async () => {
  const gateway = await startHere();
  const [one = 0] = gateway.workers();
  signal([one], 'SIGSTOP');
  const became = come(gateway);
  await expect.poll(() => became.length, SOON).toBe(NEWCOMERS - 1);
  signal([one], 'SIGKILL');
  await expect.poll(() => became, SOON).toEqual(Array.from({ length: NEWCOMERS }, () => 200));
});

it('nobody waits for ever where all workers are killed', async () => {
  const gateway = await startHere();
  const all = gateway.workers();
  signal(all, 'SIGSTOP');
  const before = socketsOf(gateway.pid);
  const became = come(gateway);
  await expect.poll(() => socketsOf(gateway.pid), SOON).toBe(before + NEWCOMERS);
  signal(all, 'SIGKILL');
  await expect.poll(() => became, SOON).toEqual(Array.from({ length: NEWCOMERS }, () => 'closed'));
});
