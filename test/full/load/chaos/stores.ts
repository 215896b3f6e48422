import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { atExit } from '../../../../bench/harness/processes.ts';
import { freePort } from '../../../../scripts/free-port.ts';
import { serverBinary } from '../../../support/redis.ts';
import { type ChaosNode, startChaosNode, until } from './node.ts';

export type Kind = 'one' | 'sentinel' | 'workers';

export interface ChaosStore {
  /** Without it there is none: processes of one gateway share what they have to. */
  readonly url?: string;
  readonly nodes: readonly ChaosNode[];
  /** Those that take writes now. */
  primaries(): Promise<readonly ChaosNode[]>;
  /** How long it may be away: others take a primary for gone meanwhile. */
  readonly longestMs: number;
  /** For so long new connections reach a Redis that knows nothing of all this. */
  readonly elsewhere?: (ms: number) => Promise<void>;
  close(): Promise<void>;
}

async function startOne(): Promise<ChaosStore> {
  const node = await startChaosNode(() => ({}));
  const { relay } = node;
  const lead = (to: number) => {
    relay.behind = to;
    relay.hangUp();
  };
  return {
    url: `redis://127.0.0.1:${relay.port}`,
    nodes: [node],
    longestMs: 3_000,
    primaries: async () => [node],
    async elsewhere(ms) {
      const other = await startChaosNode(() => ({}));
      lead(other.port);
      await sleep(ms);
      lead(node.port);
      await other.close();
    },
    close: () => node.close(),
  };
}

const NAME = 'portico';
const ROLE_MS = 500;

/** What a replica may be late before its primary takes no writes: what a failover may lose. */
export const LAG_SECONDS = 2;

/** As the contract wants it: by then a primary that is cut off takes no writes. */
const DOWN_AFTER_MS = 5_000;

const followed = (port: number) => ({
  'min-replicas-to-write': '1',
  'min-replicas-max-lag': String(LAG_SECONDS),
  'repl-timeout': '3',
  'replica-announce-ip': '127.0.0.1',
  'replica-announce-port': String(port),
});

/** `''` where it says nothing. */
const replicationOf = ({ client }: ChaosNode) =>
  Promise.race([client.info('replication').catch(() => ''), sleep(ROLE_MS, '')]);

const isAttached = async (node: ChaosNode) => (await replicationOf(node)).includes('master_link_status:up');

async function startSentinel(): Promise<ChaosStore> {
  const nodes = await Promise.all([startChaosNode(followed), startChaosNode(followed), startChaosNode(followed)]);
  const [first, ...others] = nodes;
  for (const { client } of others) await client.replicaof('127.0.0.1', first?.relay.port ?? 0);
  await until(async () => (await Promise.all(others.map(isAttached))).every(Boolean));
  const [dir, port] = [mkdtempSync(join(tmpdir(), 'portico-chaos-')), await freePort()];
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${dir}`,
    `sentinel monitor ${NAME} 127.0.0.1 ${first?.relay.port} 1`,
    `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${NAME} 4000`,
  ];
  writeFileSync(join(dir, 'sentinel.conf'), `${lines.join('\n')}\n`);
  const child = spawn(serverBinary(), [join(dir, 'sentinel.conf'), '--sentinel'], { stdio: 'ignore' });
  atExit(() => child.kill('SIGKILL'));
  const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on('error', () => undefined); // until it listens
  await until(async () => ((await client.call('SENTINEL', 'REPLICAS', NAME)) as unknown[]).length === others.length);
  return {
    url: `redis-sentinel://127.0.0.1:${port}/${NAME}`,
    nodes,
    longestMs: DOWN_AFTER_MS + 5_000,
    async primaries() {
      const said = await Promise.all(nodes.map(replicationOf));
      return nodes.filter((_, i) => said[i]?.includes('role:master'));
    },
    async close() {
      client.disconnect();
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      await Promise.all(nodes.map((node) => node.close()));
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** The first process of several keeps what they share. */
const startNone = async (): Promise<ChaosStore> => ({
  nodes: [],
  longestMs: 0,
  primaries: async () => [],
  close: async () => {},
});

export const startStore: Readonly<Record<Kind, () => Promise<ChaosStore>>> = {
  one: startOne,
  sentinel: startSentinel,
  workers: startNone,
};
