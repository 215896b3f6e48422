import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { vi } from 'vitest';
import { killAtExit } from './at-exit.ts';
import { freePort } from './ports.ts';
import { serverBinary, startRedis, type TestRedis } from './redis.ts';

/** A primary, a replica, and a sentinel that watches them. */
export interface TestSentinel {
  readonly url: string;
  /** Whether it asks for the login of the nodes, too. */
  askForLogin(): Promise<void>;
  readonly primary: TestRedis;
  readonly replica: TestRedis;
  /** For asking the sentinel. */
  readonly client: Redis;
  /** Resolves when the sentinel has put the replica in the place of the primary. */
  promote(): Promise<void>;
  close(): Promise<void>;
}

const NAME = 'portico';
const PASSWORD = 'p@ss:word';
const LOGIN = { requirepass: PASSWORD, masterauth: PASSWORD };
/** On a busy machine every step takes a while. */
const PATIENCE = { timeout: 50_000, interval: 50 };

/**
 * The sentinel promotes when it is told to. By itself, with a down-after that a test would wait for, it promotes whenever the
 * machine is busy: a node that is slow to answer is down, and so is any whose connection was closed, since the sentinel takes
 * up to a second to connect again.
 */
const NEVER_MS = 3_600_000;

export async function startSentinel(): Promise<TestSentinel> {
  const [primary, replica, port] = [await startRedis(LOGIN), await startRedis(LOGIN), await freePort()];
  await replica.client.replicaof('127.0.0.1', primary.port);
  await vi.waitFor(async () => {
    if (!/master_link_status:up/.test(await replica.client.info('replication'))) throw new Error('not attached yet');
  }, PATIENCE);
  const dir = mkdtempSync(join(tmpdir(), 'portico-sentinel-'));
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${dir}`,
    `sentinel monitor ${NAME} 127.0.0.1 ${primary.port} 1`,
    `sentinel auth-pass ${NAME} ${PASSWORD}`,
    `sentinel down-after-milliseconds ${NAME} ${NEVER_MS}`,
    `sentinel failover-timeout ${NAME} 10000`,
  ];
  const file = join(dir, 'sentinel.conf');
  writeFileSync(file, `${lines.join('\n')}\n`);
  const server = spawn(serverBinary(), [file, '--sentinel'], { stdio: 'ignore' });
  server.once(
    'exit',
    killAtExit(() => void server.kill('SIGKILL')),
  );
  const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on('error', () => undefined); // it takes a moment to begin
  await vi.waitFor(async () => {
    const replicas = await client.call('SENTINEL', 'REPLICAS', NAME);
    if (!Array.isArray(replicas) || replicas.length === 0) throw new Error('the replica is not known yet');
  }, PATIENCE);
  // One that was held up for two seconds (TILT) would do nothing for another thirty.
  await client.call('SENTINEL', 'DEBUG', 'tilt-period', '1');
  return {
    url: `redis-sentinel://:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}/${NAME}`,
    primary,
    replica,
    client,
    askForLogin: async () => void (await client.call('ACL', 'SETUSER', 'default', 'resetpass', `>${PASSWORD}`)),
    promote: () =>
      vi.waitFor(async () => {
        const [, now] = (await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)) as string[];
        if (now === String(replica.port)) return;
        // It refuses while it is at it, and where it has not heard of the replica for a while.
        await client.call('SENTINEL', 'FAILOVER', NAME).catch(() => undefined);
        throw new Error('the replica is not promoted yet');
      }, PATIENCE),
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
