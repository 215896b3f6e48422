import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { vi } from 'vitest';
import { freePort } from './ports.ts';

/** A real redis-server on a free port, which keeps nothing on disk unless told to. */
export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** For looking inside. */
  readonly client: Redis;
  /** Lets so much time pass: what lives shorter is gone. What instances keep alive by themselves stays. */
  pass(ms: number): Promise<void>;
  /** All keys and all values, as they are. */
  dump(): Promise<readonly Buffer[]>;
  signal(name: NodeJS.Signals): void;
  /** Gone at once, and with it all that it held. */
  kill(): Promise<void>;
  /** Writes all that it holds to its disk, and says where. */
  snapshot(): Promise<string>;
  /** On the same port, empty or with what is in a snapshot. */
  start(snapshot?: string): Promise<void>;
  close(): Promise<void>;
}

/** Kept alive by the beats of every instance. */
const ALIVE = "{ ['portico:life'] = 1, ['portico:peers'] = 1 }";

const PASS = `
local alive = ${ALIVE}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key) - ARGV[1]
  if not alive[key] and left <= 0 then redis.call('DEL', key)
  elseif not alive[key] then redis.call('PEXPIRE', key, left) end
end`;

const BINARIES = ['redis-server', 'valkey-server'];

function installed(): string | undefined {
  return BINARIES.find((name) => {
    try {
      execFileSync(name, ['--version'], { stdio: 'ignore' });
      return true;
    } catch {
      return false;
    }
  });
}

const binary = installed();

/** Without a server its tests say so and are skipped; in CI that is a failure. */
export const hasRedis = binary !== undefined || process.env['CI'] !== undefined;

export const SKIPPED = hasRedis ? '' : ' (skipped: no redis-server or valkey-server is installed)';

export async function startRedis(): Promise<TestRedis> {
  if (process.env['NO_SERVERS']) throw new Error('this starts a server: name the file in vitest.config.ts');
  if (binary === undefined) throw new Error('no redis-server or valkey-server is installed');
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on('error', () => undefined); // it is killed on purpose
  let server: ChildProcess | undefined;
  const valuesOf = async (key: Buffer): Promise<Buffer[]> => {
    const type = await client.type(key);
    if (type === 'hash') return (await client.callBuffer('HGETALL', key)) as Buffer[]; // names and values
    if (type === 'zset') return client.zrangeBuffer(key, '0', '-1');
    const value = type === 'string' ? await client.getBuffer(key) : Buffer.from(`a ${type} is not known here`);
    return value ? [value] : [];
  };
  const stop = async () => {
    const running = server;
    server = undefined;
    if (!running || running.exitCode !== null) return;
    const exited = once(running, 'exit');
    running.kill('SIGKILL');
    await exited;
  };
  let dir = '';
  const start = async (snapshot?: string) => {
    dir = snapshot ?? mkdtempSync(join(tmpdir(), 'portico-redis-'));
    const settings = { port: String(port), bind: '127.0.0.1', save: '', appendonly: 'no', dir, loglevel: 'warning' };
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
    server = spawn(binary, args, { stdio: 'ignore' });
    await vi.waitFor(() => client.ping(), { timeout: 10_000, interval: 20 });
  };
  await start();
  return {
    url,
    port,
    client,
    pass: async (ms) => void (await client.call('EVAL', PASS, '0', String(Math.ceil(ms)))),
    async dump() {
      const all = await Promise.all((await client.keysBuffer('*')).map(async (key) => [key, ...(await valuesOf(key))]));
      return all.flat();
    },
    signal: (name) => void server?.kill(name),
    async snapshot() {
      await client.save();
      return dir;
    },
    kill: stop,
    start,
    async close() {
      client.disconnect();
      await stop();
    },
  };
}
