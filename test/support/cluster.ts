import { vi } from 'vitest';
import { freePort } from './ports.ts';
import { startRedis, type TestRedis } from './redis.ts';

/** Three masters, each with a third of the slots, and a replica of the first. */
export interface TestCluster {
  readonly url: string;
  readonly masters: readonly TestRedis[];
  readonly replica: TestRedis;
  /** Where the slot of a key is served, as the nodes were at the start. */
  masterOf(key: string): Promise<TestRedis>;
  /** Lets so much time pass on all masters. */
  pass(ms: number): Promise<void>;
  /** Resolves when the replica has taken the place of the first master, and the others know. */
  promote(): Promise<void>;
  close(): Promise<void>;
}

const SLOTS = 16_384;
const PASSWORD = 'p@ss:word';
/** On a busy machine every step takes a while. */
const PATIENCE = { timeout: 50_000, interval: 20 };
/** No node is taken for dead by itself: with less one that a busy machine holds up is. */
const NODE_TIMEOUT_MS = 60_000;

const idOf = ({ client }: TestRedis) => client.cluster('MYID');

const infoOf = async ({ client }: TestRedis) => String(await client.call('CLUSTER', 'INFO'));

async function startNode() {
  const bus = await freePort();
  const node = await startRedis({
    requirepass: PASSWORD,
    masterauth: PASSWORD,
    'cluster-enabled': 'yes',
    'cluster-port': String(bus),
    'cluster-node-timeout': String(NODE_TIMEOUT_MS),
    'cluster-replica-validity-factor': '0',
  });
  return { node, bus };
}

async function join(all: readonly { node: TestRedis; bus: number }[]): Promise<void> {
  const [first, ...others] = all;
  for (const { node, bus } of others)
    await first?.node.client.call('CLUSTER', 'MEET', '127.0.0.1', String(node.port), String(bus));
  await vi.waitFor(async () => {
    for (const { node } of all)
      if (!(await infoOf(node)).includes(`cluster_known_nodes:${all.length}`)) throw new Error('not all are known');
  }, PATIENCE);
}

async function untilWhole(all: readonly TestRedis[]): Promise<void> {
  await vi.waitFor(async () => {
    for (const node of all)
      if (!(await infoOf(node)).includes('cluster_state:ok')) throw new Error('the cluster is not whole yet');
  }, PATIENCE);
}

export async function startCluster(): Promise<TestCluster> {
  const all = await Promise.all([startNode(), startNode(), startNode(), startNode()]);
  const nodes = all.map(({ node }) => node);
  const masters = nodes.slice(0, 3);
  const [first, replica] = [nodes[0], nodes[3]];
  if (!first || !replica) throw new Error('there is no node');
  const bounds = masters.map((_, i) => Math.floor((i * SLOTS) / 3)).concat(SLOTS);
  for (const [i, { client }] of masters.entries()) {
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1));
    await client.call('CLUSTER', 'ADDSLOTSRANGE', String(bounds[i]), String((bounds[i + 1] ?? 0) - 1));
  }
  await join(all);
  await replica.client.call('CLUSTER', 'REPLICATE', await idOf(first));
  await untilWhole(nodes);
  await vi.waitFor(async () => {
    if (!/master_link_status:up/.test(await replica.client.info('replication'))) throw new Error('not attached yet');
  }, PATIENCE);
  return {
    url: `redis-cluster://:${encodeURIComponent(PASSWORD)}@${masters.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    masters,
    replica,
    async masterOf(key) {
      const slot = Number(await first.client.call('CLUSTER', 'KEYSLOT', key));
      const found = masters.findLast((_, i) => slot >= (bounds[i] ?? 0));
      if (!found) throw new Error('no node has the slot');
      return found;
    },
    async promote() {
      await replica.client.call('CLUSTER', 'FAILOVER', 'TAKEOVER');
      const line = new RegExp(`:${replica.port}@.* connected \\d`); // it has slots
      await vi.waitFor(async () => {
        for (const { client } of [...masters.slice(1), replica])
          if (!line.test(String(await client.call('CLUSTER', 'NODES'))))
            throw new Error('the replica is not promoted yet');
      }, PATIENCE);
    },
    pass: async (ms) => void (await Promise.all(masters.map((node) => node.pass(ms)))),
    close: async () => void (await Promise.all(nodes.map((node) => node.close()))),
  };
}

/** Moves the slot of a key and all that is in it, as far as `from` has it; `during` runs in between. */
export async function moveSlot(
  { key, from, to }: { readonly key: string; readonly from: TestRedis; readonly to: TestRedis },
  during: (step: 'begun' | 'half') => Promise<void>,
): Promise<void> {
  const slot = String(await from.client.call('CLUSTER', 'KEYSLOT', key));
  const [source, target] = [await idOf(from), await idOf(to)];
  await to.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', source);
  await from.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', target);
  await during('begun');
  const keys = (await from.client.call('CLUSTER', 'GETKEYSINSLOT', slot, '1000')) as string[];
  const move = (names: readonly string[]) =>
    from.client.call('MIGRATE', '127.0.0.1', String(to.port), '', '0', '1000', 'AUTH', PASSWORD, 'KEYS', ...names);
  await move([key]);
  await during('half');
  const others = keys.filter((name) => name !== key);
  if (others.length > 0) await move(others);
  for (const { client } of [to, from]) await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', target);
}
