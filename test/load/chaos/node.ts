import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { redisBinary } from '../support/redis.ts';
import { atExit } from '../support/processes.ts';
import { freePort } from '../../../scripts/free-port.ts';
import { type Relay, startRelay } from '../support/relay.ts';

const PATIENCE_MS = 20_000;
const LOOK_MS = 25;

const DURABLE = { bind: '127.0.0.1', save: '', appendonly: 'yes', appendfsync: 'always', loglevel: 'warning' };

/** A Redis that keeps all on its disk, behind a relay over which everybody else comes. */
export interface ChaosNode {
  readonly port: number;
  readonly relay: Relay;
  /** Past the relay. */
  readonly client: Redis;
  signal(name: NodeJS.Signals): void;
  kill(): Promise<void>;
  /** With what it has on its disk. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export async function startChaosNode(settingsOf: (relayPort: number) => Record<string, string>): Promise<ChaosNode> {
  const [port, dir] = [await freePort(), mkdtempSync(join(tmpdir(), 'portico-chaos-'))];
  const relay = await startRelay(port);
  const settings = { ...DURABLE, port: String(port), dir, ...settingsOf(relay.port) };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const client = new Redis(port, '127.0.0.1', { retryStrategy: () => LOOK_MS, maxRetriesPerRequest: null });
  client.on('error', () => undefined); // it is killed on purpose
  let child: ChildProcess | undefined;
  atExit(() => child?.kill('SIGKILL'));
  const kill = async () => {
    const running = child;
    child = undefined;
    if (!running || running.exitCode !== null || running.signalCode !== null) return;
    const ended = once(running, 'exit');
    running.kill('SIGKILL');
    await ended;
  };
  const start = async () => {
    child = spawn(redisBinary ?? '', args, { stdio: 'ignore' });
    await until(async () => (await client.ping()) === 'PONG');
  };
  await start();
  return {
    port,
    relay,
    client,
    signal: (name) => void child?.kill(name),
    kill,
    start,
    async close() {
      client.disconnect();
      await Promise.all([kill(), relay.close()]);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** @throws Error when it takes too long */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end;) {
    if (await isSo().catch(() => false)) return;
    await sleep(LOOK_MS);
  }
  throw new Error('it never came to be so');
}
