import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { atExit } from './processes.ts';
import { freePort } from '../../scripts/free-port.ts';

/** The one that is installed. */
export const redisBinary = ['redis-server', 'valkey-server'].find(
  (name) => spawnSync(name, ['--version']).status === 0,
);

/** What INFO has counted so far. */
export interface Counted {
  /** Of gateways: each is a script, an MGET, or an INCRBY with what makes its window. */
  readonly questions: number;
  /** All that the process has used, sockets included. */
  readonly cpuUs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly memoryBytes: number;
}

export interface RedisServer {
  readonly url: string;
  readonly client: Redis;
  counted(): Promise<Counted>;
  /** Forgets all. Then it is like one that has been there for long: nothing is refused because it is new. */
  empty(): Promise<void>;
  stop(): Promise<void>;
}

/** What the gateways keep beside the data, of a store that has always been there. */
const OLD = `
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
redis.call('HSET', 'p3:id', 'run', run, 'token', 'bench', 'since', 0, 'past', '', 'heard', 0)
redis.call('SET', 'p3:token', 'bench')
redis.call('HSET', 'portico:{0}:id', 'v', 3)`;

/** A real redis-server on a free port and a core of its own, which keeps nothing on disk. */
export async function startRedis(core: number): Promise<RedisServer> {
  const port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'portico-bench-'));
  const settings = { port: String(port), bind: '127.0.0.1', save: '', appendonly: 'no', dir };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const child = spawn('taskset', ['-c', String(core), redisBinary ?? '', ...args], { stdio: 'ignore' });
  atExit(() => {
    child.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });
  const url = `redis://127.0.0.1:${port}`;
  const client = new Redis(url, { retryStrategy: () => 20, maxRetriesPerRequest: null });
  client.on('error', () => undefined); // until it listens
  const empty = async () => {
    await client.flushall();
    await client.call('EVAL', OLD, '0');
  };
  await empty();
  return {
    url,
    client,
    counted: async () => countedIn(await client.info('all')),
    empty,
    async stop() {
      client.disconnect();
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

function countedIn(info: string): Counted {
  const number = (pattern: RegExp) => Number(pattern.exec(info)?.[1] ?? 0);
  return {
    questions:
      number(/^cmdstat_evalsha:calls=(\d+)/m) +
      number(/^cmdstat_mget:calls=(\d+)/m) +
      number(/^cmdstat_incrby:calls=(\d+)/m),
    cpuUs: (number(/^used_cpu_user:([\d.]+)/m) + number(/^used_cpu_sys:([\d.]+)/m)) * 1e6,
    bytesIn: number(/^total_net_input_bytes:(\d+)/m),
    bytesOut: number(/^total_net_output_bytes:(\d+)/m),
    memoryBytes: number(/^used_memory:(\d+)/m),
  };
}

/** What came between two looks. */
export function grown(before: Counted, after: Counted): Counted {
  const entries = Object.entries(after) as [keyof Counted, number][];
  return Object.fromEntries(entries.map(([name, value]) => [name, value - before[name]])) as unknown as Counted;
}
