import type { Redis } from 'ioredis';

/** Codes of a node's settings that are wrong, as far as it shows them. */
export async function troublesOf(node: Redis): Promise<readonly string[]> {
  const [info, writable, replicas] = await Promise.all([
    node.info().catch(() => ''),
    settingOf(node, 'replica-read-only'),
    settingOf(node, 'min-replicas-to-write'),
  ]);
  const of = (field: string) => new RegExp(`^${field}:(.*?)\\r?$`, 'm').exec(info)?.[1];
  const attached = Number(of('connected_slaves') ?? 0);
  const troubles = {
    // Records and marks would be evicted.
    EVICTS: Number(of('maxmemory') ?? 0) > 0 && of('maxmemory_policy') !== 'noeviction',
    NOT_PERSISTENT: of('aof_enabled') === '0',
    REPLICA_WRITABLE: writable === 'no',
    // A primary that is cut off with some of its replicas would go on taking writes.
    FEW_MIN_REPLICAS: replicas !== undefined && attached > Number(replicas),
  };
  return Object.entries(troubles).flatMap(([word, isSo]) => (isSo ? [word] : []));
}

async function settingOf(node: Redis, name: string): Promise<string | undefined> {
  const reply = await node.config('GET', name).catch(() => undefined);
  return Array.isArray(reply) ? (reply as readonly string[])[1] : undefined;
}
