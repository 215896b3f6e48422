import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { type ChaosNode, startChaosNode, until } from './node.ts';
import { redisBinary } from '../support/redis.ts';
import { atExit } from '../support/processes.ts';
import { freePort } from '../../../scripts/free-port.ts';

export type Kind = 'one' | 'sentinel' | 'cluster';

export interface ChaosStore {
  readonly url: string;
  readonly nodes: readonly ChaosNode[];
  /** Those that take writes now. */
  primaries(): Promise<readonly ChaosNode[]>;
  /** A replica takes the place of its primary. */
  readonly failOver?: () => Promise<void>;
  /** Some accounts go elsewhere. */
  readonly moveSlot?: () => Promise<void>;
  /** New connections reach a Redis that knows nothing of all this, until that is over. */
  readonly elsewhere?: () => Promise<() => Promise<void>>;
  close(): Promise<void>;
}

const isAttached = async ({ client }: ChaosNode) => /master_link_status:up/.test(await client.info('replication'));

const ROLE_MS = 500;

/** Of those that say something. */
async function primariesOf(nodes: readonly ChaosNode[]): Promise<readonly ChaosNode[]> {
  const said = await Promise.all(
    nodes.map(({ client }) => Promise.race([client.info('replication').catch(() => ''), sleep(ROLE_MS, '')])),
  );
  return nodes.filter((_, i) => said[i]?.includes('role:master'));
}

async function startOne(): Promise<ChaosStore> {
  const node = await startChaosNode(() => ({}));
  return {
    url: `redis://127.0.0.1:${node.relay.port}`,
    nodes: [node],
    primaries: async () => [node],
    async elsewhere() {
      const other = await startChaosNode(() => ({}));
      node.relay.behind = other.port;
      node.relay.hangUp();
      return async () => {
        node.relay.behind = node.port;
        node.relay.hangUp();
        await other.close();
      };
    },
    close: () => node.close(),
  };
}

const NAME = 'portico';

/** What a replica may be late before its primary takes no writes: what a failover may lose. */
export const LAG_SECONDS = 2;

const replicated = (replicas: number) => ({
  'min-replicas-to-write': String(replicas),
  'min-replicas-max-lag': String(LAG_SECONDS),
  'repl-diskless-sync-delay': '0',
  'repl-timeout': '3',
});

const followed = (port: number) => ({
  ...replicated(2),
  'replica-announce-ip': '127.0.0.1',
  'replica-announce-port': String(port),
});

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
    `sentinel down-after-milliseconds ${NAME} 1000`,
    `sentinel failover-timeout ${NAME} 4000`,
  ];
  writeFileSync(join(dir, 'sentinel.conf'), `${lines.join('\n')}\n`);
  const child = spawn(redisBinary ?? '', [join(dir, 'sentinel.conf'), '--sentinel'], { stdio: 'ignore' });
  atExit(() => child.kill('SIGKILL'));
  const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on('error', () => undefined); // until it listens
  await until(async () => ((await client.call('SENTINEL', 'REPLICAS', NAME)) as unknown[]).length === others.length);
  return {
    url: `redis-sentinel://127.0.0.1:${port}/${NAME}`,
    nodes,
    primaries: () => primariesOf(nodes),
    failOver: async () => void (await client.call('SENTINEL', 'FAILOVER', NAME).catch(() => undefined)),
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

const MASTERS = 3;
/** Between a few keys of a slot that moves and the next. */
const MOVE_MS = 20;
const SLOTS = 16_384;

const idOf = ({ client }: ChaosNode) => client.cluster('MYID');

async function startClusterNode() {
  const bus = await freePort();
  const node = await startChaosNode((port) => ({
    ...replicated(1),
    'cluster-enabled': 'yes',
    'cluster-port': String(bus),
    'cluster-announce-ip': '127.0.0.1',
    'cluster-announce-port': String(port),
    'cluster-announce-bus-port': String(bus),
    'cluster-node-timeout': '1000',
    'cluster-replica-validity-factor': '0',
  }));
  return { node, bus };
}

async function startCluster(): Promise<ChaosStore> {
  const all = await Promise.all(Array.from({ length: 2 * MASTERS }, startClusterNode));
  const nodes = all.map(({ node }) => node);
  const [masters, replicas] = [nodes.slice(0, MASTERS), nodes.slice(MASTERS)];
  const bounds = [...masters.map((_, i) => Math.floor((i * SLOTS) / MASTERS)), SLOTS];
  for (const [i, { client }] of nodes.entries()) await client.call('CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1));
  for (const [i, { client }] of masters.entries())
    await client.call('CLUSTER', 'ADDSLOTSRANGE', String(bounds[i]), String((bounds[i + 1] ?? 0) - 1));
  for (const { node, bus } of all.slice(1))
    await nodes[0]?.client.call('CLUSTER', 'MEET', '127.0.0.1', String(node.port), String(bus));
  const says = (text: string) => async () => {
    const infos = await Promise.all(nodes.map(({ client }) => client.call('CLUSTER', 'INFO')));
    return infos.every((info) => String(info).includes(text));
  };
  await until(says(`cluster_known_nodes:${nodes.length}`));
  for (const [i, { client }] of replicas.entries()) {
    const master = masters[i];
    if (master) await client.call('CLUSTER', 'REPLICATE', await idOf(master));
  }
  await until(says('cluster_state:ok'));
  await until(async () => (await Promise.all(replicas.map(isAttached))).every(Boolean));
  return {
    url: `redis-cluster://${masters.map(({ relay }) => `127.0.0.1:${relay.port}`).join(',')}`,
    nodes,
    primaries: () => primariesOf(nodes),
    failOver: () => failOverOf(nodes),
    moveSlot: async () => moveSlotOf(await primariesOf(nodes)),
    close: async () => void (await Promise.all(nodes.map((node) => node.close()))),
  };
}

/** One of the replicas, with its primary's knowledge. */
async function failOverOf(nodes: readonly ChaosNode[]): Promise<void> {
  for (const { client } of nodes.toSorted(() => Math.random() - 0.5)) {
    if (!(await client.info('replication')).includes('role:slave')) continue;
    await client.call('CLUSTER', 'FAILOVER').catch(() => undefined);
    return;
  }
}

/** All that is in one slot goes to another primary, key by key. */
async function moveSlotOf(primaries: readonly ChaosNode[]): Promise<void> {
  const [from, to] = primaries.toSorted(() => Math.random() - 0.5);
  const share = await from?.client.randomkey();
  if (!from || !to || typeof share !== 'string') return;
  const slot = String(await from.client.call('CLUSTER', 'KEYSLOT', share));
  const [source, target] = [await idOf(from), await idOf(to)];
  await to.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', source);
  await from.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', target);
  for (;;) {
    const keys = (await from.client.call('CLUSTER', 'GETKEYSINSLOT', slot, '5')) as string[];
    if (keys.length === 0) break;
    await from.client.call('MIGRATE', '127.0.0.1', String(to.port), '', '0', '1000', 'KEYS', ...keys);
    await sleep(MOVE_MS);
  }
  for (const { client } of [to, from, ...primaries]) await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', target);
}

export const startStore: Readonly<Record<Kind, () => Promise<ChaosStore>>> = {
  one: startOne,
  sentinel: startSentinel,
  cluster: startCluster,
};
