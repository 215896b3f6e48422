import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { vi } from 'vitest';
import { freePort } from './ports.ts';
import { serverBinary, startRedis, type TestRedis } from './redis.ts';

/** A primary, a replica, and a sentinel that watches them. */
export interface TestSentinel {
  readonly url: string;
  readonly primary: TestRedis;
  readonly replica: TestRedis;
  /** For asking the sentinel. */
  readonly client: Redis;
  close(): Promise<void>;
}

const NAME = 'portico';
const PASSWORD = 'p@ss:word';
const LOGIN = { requirepass: PASSWORD, masterauth: PASSWORD };

export async function startSentinel(): Promise<TestSentinel> {
  const [primary, replica, port] = [await startRedis(LOGIN), await startRedis(LOGIN), await freePort()];
  await replica.client.replicaof('127.0.0.1', primary.port);
  await vi.waitFor(async () => {
    if (!/master_link_status:up/.test(await replica.client.info('replication'))) throw new Error('not attached yet');
  }, 5_000);
  const dir = mkdtempSync(join(tmpdir(), 'portico-sentinel-'));
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${dir}`,
    `sentinel monitor ${NAME} 127.0.0.1 ${primary.port} 1`,
    `sentinel auth-pass ${NAME} ${PASSWORD}`,
    `sentinel down-after-milliseconds ${NAME} 300`,
    `sentinel failover-timeout ${NAME} 2000`,
  ];
  const file = join(dir, 'sentinel.conf');
  writeFileSync(file, `${lines.join('\n')}\n`);
  const server = spawn(serverBinary(), [file, '--sentinel'], { stdio: 'ignore' });
  const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on('error', () => undefined); // it takes a moment to begin
  await vi.waitFor(
    async () => {
      const replicas = await client.call('SENTINEL', 'REPLICAS', NAME);
      if (!Array.isArray(replicas) || replicas.length === 0) throw new Error('the replica is not known yet');
    },
    { timeout: 10_000, interval: 50 },
  );
  return {
    url: `redis-sentinel://:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}/${NAME}`,
    primary,
    replica,
    client,
    async close() {
      client.disconnect();
      const exited = once(server, 'exit');
      server.kill('SIGKILL');
      await exited;
      await Promise.all([primary.close(), replica.close()]);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
