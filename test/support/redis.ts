import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { ID, PROTOCOL, TOKEN, USED_BY } from '../../src/entry/node/redis/scripts.ts';
import { killAtExit } from './at-exit.ts';
import { freePort } from './ports.ts';

/** A redis-server of a test's own, which keeps nothing on disk unless told to. */
export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** For looking inside. */
  readonly client: Redis;
  /** All that expires is so much closer to its end; less than 0 is as if the clock were set back. */
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

type Settings = Readonly<Record<string, string>>;

const USUAL = { bind: '127.0.0.1', save: '', appendonly: 'no', loglevel: 'notice', 'repl-diskless-sync-delay': '0' };
const PASS = `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 then redis.call('PEXPIRE', key, left - ARGV[1]) end
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

/** Without a server its tests say so and are skipped. */
export const hasRedis = binary !== undefined;

export const SKIPPED = hasRedis ? '' : ' (skipped: no redis-server or valkey-server is installed)';

export function serverBinary(): string {
  if (binary === undefined) throw new Error('no redis-server or valkey-server is installed');
  return binary;
}

/** Resolves when it listens, rejects where its port is taken. */
async function serving(args: readonly string[]): Promise<ChildProcess> {
  const server = spawn(serverBinary(), args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const kill = () => void server.kill('SIGKILL');
  server.once('exit', killAtExit(kill));
  for await (const line of createInterface(server.stdout)) {
    if (!line.includes('Ready to accept connections')) continue;
    server.stdout.resume();
    return server;
  }
  throw new Error('the server does not listen');
}

const argsOf = (settings: Settings) => Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);

/** On a port that nobody has, with settings beside the usual. */
export async function startRedis(settings: Settings = {}, tries = 5): Promise<TestRedis> {
  const port = await freePort();
  const dirs: string[] = [];
  const start = (dir = mkdtempSync(join(tmpdir(), 'portico-redis-'))) => {
    dirs.push(dir);
    return serving(argsOf({ ...USUAL, port: String(port), dir, ...settings }));
  };
  let server: ChildProcess;
  try {
    server = await start();
  } catch (error) {
    if (tries === 1) throw error;
    return startRedis(settings, tries - 1);
  }
  const { requirepass: password } = settings;
  const client = new Redis(port, '127.0.0.1', {
    retryStrategy: () => 5,
    maxRetriesPerRequest: null,
    ...(password !== undefined && { password }),
  });
  client.on('error', () => undefined); // it is killed on purpose
  const send = client.sendCommand.bind(client);
  client.sendCommand = (command, ...others) => {
    command.promise.catch(() => undefined); // one of ioredis itself that is under way at the end is nobody's
    return send(command, ...others);
  };
  const kill = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, 'exit');
    server.kill('SIGKILL');
    await exited;
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    client,
    pass: async (ms) => void (await client.call('EVAL', PASS, '0', String(Math.ceil(ms)))),
    dump: () => dumpOf(client),
    signal: (name) => void server.kill(name),
    async snapshot() {
      await client.save();
      return dirs.at(-1) ?? '';
    },
    kill,
    async start(snapshot) {
      server = await start(snapshot);
      await client.ping();
    },
    async close() {
      client.disconnect();
      await kill();
      for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function dumpOf(client: Redis): Promise<readonly Buffer[]> {
  const keys = await client.keysBuffer('*');
  const all = keys.map(async (key) => {
    const isHash = (await client.type(key)) === 'hash';
    const value = isHash ? ((await client.callBuffer('HGETALL', key)) as Buffer[]) : [await client.getBuffer(key)];
    return [key, ...value.map((part) => part ?? Buffer.alloc(0))];
  });
  return (await Promise.all(all)).flat();
}

/** As if the store had been the same for long. Resolves with its token, by which an instance shows that it knows it. */
export async function relyOn({ client }: Pick<TestRedis, 'client'>): Promise<string> {
  const run = /run_id:(\w+)/.exec(await client.info('server'))?.[1] ?? '';
  const token = (await client.get(TOKEN)) ?? crypto.randomUUID().slice(-12);
  await client.set(TOKEN, token);
  await client.hset(USED_BY, 'v', PROTOCOL);
  await client.hset(ID, { run, token, since: 0, past: '', heard: Date.now() });
  return token;
}
