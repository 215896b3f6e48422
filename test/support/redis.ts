import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
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
  /** Lets so much time pass; less than 0 sets the clock back. */
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

/**
 * All that expires, and all instants that the store has written down, but for when copies were asked for: these are only
 * compared. Less than 0 is as if the clock were set back.
 */
const PASS = `
local ms = tonumber(ARGV[1])
local function shift(text) return tostring(math.max(0, tonumber(text) - ms)) end
local function shiftLast(key)
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do redis.call('HSET', key, all[i], (string.gsub(all[i + 1], '%d+$', shift))) end
end
local shifted = {
  id = function(key)
    local id = redis.call('HGET', key, 'id')
    local run, line, token, since, past = string.match(id, '^(%S+) (%S+) (%S+) (%d+)(.*)$')
    redis.call('HDEL', key, 'm') -- how full the memory was just before
    redis.call('HSET', key, 'id', table.concat({ run, line, token, shift(since) }, ' ') .. past)
  end,
  a = function(key)
    local all = redis.call('HGETALL', key)
    for i = 1, #all, 2 do
      local field, value = all[i], all[i + 1]
      local kind = string.sub(field, 1, 1)
      if kind == 'm' then
        local marks = cmsgpack.unpack(value)
        for _, mark in ipairs(marks) do mark[3], mark[4], mark[8] = mark[3] - ms, mark[4] - ms, mark[8] - ms end
        redis.call('HSET', key, field, cmsgpack.pack(marks))
      end
      if kind == 'c' or kind == 'X' then redis.call('HSET', key, field, shift(value)) end
    end
  end,
  l = shiftLast,
  w = shiftLast,
  g = function() end,
  h = function(key)
    for _, field in ipairs(redis.call('HKEYS', key)) do
      local value = redis.call('HGET', key, field)
      if string.sub(field, 1, 1) == 'c' then redis.call('HSET', key, field, (string.gsub(value, '%d+$', shift))) end
      if field == 'R' then
        local shifted = {}
        for hour, bytes in pairs(cmsgpack.unpack(value)) do shifted[hour - math.floor(ms / 3600000)] = bytes end
        redis.call('HSET', key, field, cmsgpack.pack(shifted))
      end
    end
  end,
  c = function(key)
    local version, asked, kept, fresh = struct.unpack('>c16I6I6I6', redis.call('GET', key))
    redis.call('SETRANGE', key, 0, struct.pack('>c16I6I6I6', version, asked - math.min(ms, 0), kept - ms, fresh - ms))
  end,
  r = function(key)
    local nonce, busy, announced, value = string.match(redis.call('GET', key), '^(%S+) (%d+) (%d+)\\n(.*)$')
    if busy ~= '0' then busy = math.max(1, busy - ms) end
    redis.call('SET', key, nonce .. ' ' .. busy .. ' ' .. shift(announced) .. '\\n' .. value, 'KEEPTTL')
  end,
}
for _, key in ipairs(redis.call('KEYS', 'portico:*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= ms then redis.call('DEL', key)
  else
    if left >= 0 then redis.call('PEXPIRE', key, left - ms) end
    shifted[string.match(key, '}:(%l+)')](key)
  end
end`;

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
    pass: async (ms) => void (await client.call('EVAL', PASS, '0', String(Math.ceil(ms)))),
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
