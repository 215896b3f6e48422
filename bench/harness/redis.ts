import { spawnSync } from 'node:child_process';
import { Redis } from 'ioredis';
import { freePort } from '../../scripts/free-port.ts';
import { folder, LOAD_CORE, type Server, start } from './servers.ts';

/** The one that is installed. */
export const redisBinary = ['redis-server', 'valkey-server'].find(
  (name) => spawnSync(name, ['--version']).status === 0,
);

export interface RedisServer extends Server {
  /** Memory in use. */
  bytes(): Promise<number>;
}

/** What the gateways keep beside the data, of a store that has always been there: nothing is refused because it is new. */
const OLD = `
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
redis.call('HSET', 'p3:id', 'run', run, 'token', 'bench', 'since', 0, 'past', '', 'heard', 0)
redis.call('SET', 'p3:token', 'bench')
redis.call('HSET', 'portico:{0}:id', 'v', 3)`;

/** A real one on a free port, which keeps nothing on disk. */
export async function startRedis(): Promise<RedisServer> {
  const port = await freePort();
  const settings = { port: String(port), bind: '127.0.0.1', save: '', appendonly: 'no', dir: folder };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const server = await start({ command: [redisBinary ?? '', ...args], core: LOAD_CORE, port });
  const url = `redis://127.0.0.1:${port}`;
  const client = new Redis(url, { retryStrategy: () => null });
  client.on('error', () => undefined); // when it is stopped
  await client.call('EVAL', OLD, '0');
  return {
    ...server,
    url,
    bytes: async () => Number(/^used_memory:(\d+)/m.exec(await client.info('memory'))?.[1]),
  };
}
