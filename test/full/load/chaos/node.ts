import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { atExit } from '../../../../bench/harness/processes.ts';
import { type Relay, startRelay } from '../../../../bench/harness/relay.ts';
import { startRedis, type TestRedis } from '../../../support/redis.ts';

/** A Redis that keeps all on its disk, behind a relay over which everybody else comes. `client` goes past it. */
export interface ChaosNode extends Pick<TestRedis, 'port' | 'client' | 'kill' | 'start' | 'close'> {
  readonly relay: Relay;
  signal(name: NodeJS.Signals): void;
}

export async function startChaosNode(settings: (relayPort: number) => Record<string, string>): Promise<ChaosNode> {
  const [relay, dir] = [await startRelay(0), mkdtempSync(join(tmpdir(), 'portico-chaos-'))];
  const redis = await startRedis({ appendonly: 'yes', appendfsync: 'always', dir, ...settings(relay.port) });
  atExit(() => redis.signal('SIGKILL'));
  relay.behind = redis.port;
  return {
    ...redis,
    relay,
    async close() {
      await Promise.all([redis.close(), relay.close()]);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

const PATIENCE_MS = 20_000;
const LOOK_MS = 25;

/** @throws Error when it takes too long */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await sleep(LOOK_MS))
    if (await isSo().catch(() => false)) return;
  throw new Error('it never came to be so');
}
