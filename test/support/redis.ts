import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, vi } from 'vitest';
import type { Clock } from '../../src/core/runtime.ts';
import { systemClock } from '../../src/entry/node/deps.ts';
import { nodeDigest, nodeSeal } from '../../src/entry/node/digest.ts';
import { storeAddressOf } from '../../src/entry/node/redis/address.ts';
import { RedisShelf } from '../../src/entry/node/redis/backend.ts';
import { ID, PROTOCOL, TOKEN, USED_BY } from '../../src/entry/node/redis/scripts.ts';
import { Accounts } from '../../src/store/accounts.ts';
import { SealedNotes } from '../../src/store/sealed.ts';
import { freePort } from './ports.ts';

/** A real redis-server on a free port, which keeps nothing on disk unless told to. */
export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** For looking inside. */
  readonly client: Redis;
  /** Lets so much time pass, for all who opened it by `openRedisStore`; less than 0 sets the clock back. */
  pass(ms: number): Promise<void>;
  /** All keys and all values, as they are. */
  dump(): Promise<readonly Buffer[]>;
  /** How many there have been so far. */
  connections(): Promise<number>;
  signal(name: NodeJS.Signals): void;
  /** Gone at once, and with it all that it held. */
  kill(): Promise<void>;
  /** Writes all that it holds to its disk, and says where. */
  snapshot(): Promise<string>;
  /** On the same port, empty or with what is in a snapshot. */
  start(snapshot?: string): Promise<void>;
  close(): Promise<void>;
}

/** All that expires. Less than 0 is as if the clock were set back. */
const PASS = `
local ms = tonumber(ARGV[1])
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 then redis.call('PEXPIRE', key, left - ms) end
end`;

/** By the URL of a Redis: how much time has passed there that did not pass for the machine. */
const passed = new Map<string, number>();

const USUAL = {
  bind: '127.0.0.1',
  save: '',
  appendonly: 'no',
  loglevel: 'warning',
  'repl-diskless-sync-delay': '0',
};

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

/** The binary, where servers may be started. */
export function serverBinary(): string {
  if (process.env['NO_SERVERS']) throw new Error('this starts a server: name the file in vitest.config.ts');
  if (binary === undefined) throw new Error('no redis-server or valkey-server is installed');
  return binary;
}

/** With settings of its own, beside the usual. */
export async function startRedis(settings: Readonly<Record<string, string>> = {}): Promise<TestRedis> {
  const program = serverBinary();
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  const { requirepass: password } = settings;
  const client = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => 50,
    maxRetriesPerRequest: null,
    ...(password !== undefined && { password }),
  });
  client.on('error', () => undefined); // it is killed on purpose
  const send = client.sendCommand.bind(client);
  client.sendCommand = (command, ...others) => {
    command.promise.catch(() => undefined); // one of ioredis itself that is under way at the end is nobody's
    return send(command, ...others);
  };
  let server: ChildProcess | undefined;
  const valuesOf = async (key: Buffer): Promise<Buffer[]> => {
    const type = await client.type(key);
    if (type === 'hash') return (await client.callBuffer('HGETALL', key)) as Buffer[]; // names and values
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
  const dirs: string[] = [];
  const start = async (snapshot?: string) => {
    const dir = snapshot ?? mkdtempSync(join(tmpdir(), 'portico-redis-'));
    dirs.push(dir);
    const usual = { ...USUAL, port: String(port), dir };
    const args = Object.entries({ ...usual, ...settings }).flatMap(([name, value]) => [`--${name}`, value]);
    server = spawn(program, args, { stdio: 'ignore' });
    await vi.waitFor(() => client.ping(), { timeout: 10_000, interval: 20 });
  };
  await start();
  return {
    url,
    port,
    client,
    async pass(ms) {
      passed.set(url, (passed.get(url) ?? 0) + ms);
      await client.call('EVAL', PASS, '0', String(Math.ceil(ms)));
    },
    async dump() {
      const all = await Promise.all((await client.keysBuffer('*')).map(async (key) => [key, ...(await valuesOf(key))]));
      return all.flat();
    },
    connections: async () => Number(/total_connections_received:(\d+)/.exec(await client.info('stats'))?.[1]),
    signal: (name) => void server?.kill(name),
    async snapshot() {
      await client.save();
      return dirs.at(-1) ?? '';
    },
    kill: stop,
    start,
    async close() {
      client.disconnect();
      await stop();
      for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
    },
  };
}

const token = () => crypto.randomUUID().slice(-12);

/** One that was relied upon for long already. */
export async function startOldRedis(settings?: Readonly<Record<string, string>>): Promise<TestRedis> {
  const redis = await startRedis(settings);
  await relyOn(redis);
  return redis;
}

/** As if the store had been the same for long. */
export async function relyOn({ client }: Pick<TestRedis, 'client'>): Promise<void> {
  const run = /run_id:(\w+)/.exec(await client.info('server'))?.[1] ?? '';
  const known = (await client.get(TOKEN)) ?? token();
  await client.set(TOKEN, known);
  await client.hset(USED_BY, 'v', PROTOCOL);
  await client.hset(ID, { run, token: known, since: 0, past: '', heard: Date.now() });
}

export interface OpenedStore {
  readonly store: Accounts;
  readonly shelf: RedisShelf;
  /** All reasons of trouble so far. */
  readonly troubles: ReadonlySet<string>;
  /** Whether the store was there, at each change. */
  readonly changes: readonly boolean[];
  /** Resolves when the instance has the store, or has it no more. */
  until(isThere: boolean): Promise<void>;
  close(): void;
}

export interface OpenOptions {
  /** Of the instance. */
  readonly clock?: Clock;
  /** By which it tells whether the store has answered lately. */
  readonly shelfClock?: Clock;
  readonly secrets?: readonly string[];
  readonly windowMs?: number;
  /** Where time is let pass, if that is not the address. */
  readonly redis?: TestRedis;
}

/** For what waits for a real Redis, on a busy machine. */
export const PATIENCE = { timeout: 50_000, interval: 10 };

const UPSTREAM = 'http://upstream.test/';

/** An instance without its gateway. */
export async function openRedisStore(url: string, options: OpenOptions = {}): Promise<OpenedStore> {
  const {
    clock = systemClock,
    shelfClock = systemClock,
    secrets = ['a secret of tests, long enough to be one'],
  } = options;
  const troubles = new Set<string>();
  const changes: boolean[] = [];
  const address = storeAddressOf(url);
  if (!address) throw new Error(`${url} is no address of a store`);
  const passing = options.redis?.url ?? url;
  const shelf = new (class extends RedisShelf {
    override now(): number {
      return super.now() + (passed.get(passing) ?? 0);
    }
  })({
    address,
    clock: shelfClock,
    windowMs: options.windowMs ?? 65_000,
    onCommand: () => undefined,
    onTrouble: (reason) => void troubles.add(reason),
    onChange: (isThere) => void changes.push(isThere),
  });
  const digest = nodeDigest(secrets, UPSTREAM);
  const backend = new SealedNotes(shelf, {
    seal: nodeSeal(secrets, 'portico store seal'),
    nameOf: (text) => digest.account(text),
    noteMs: 4_800_000,
  });
  await shelf.opened;
  return {
    store: new Accounts({ backend, clock, maxBytes: 8_388_608 }),
    shelf,
    troubles,
    changes,
    until: (isThere) => vi.waitFor(() => expect(shelf.isThere).toBe(isThere), PATIENCE),
    close: () => shelf.close(),
  };
}
