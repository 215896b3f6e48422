import { randomUUID } from 'node:crypto';
import type { Cluster, Redis } from 'ioredis';
import { clientOf, isCluster, mayPublish, type StoreAddress } from '../redis/client.ts';
import { reasonOf } from '../redis/connection.ts';
import { about, type Finding } from './findings.ts';

const { good, poor, bad } = about('store');

/** Replies with the names of the commands of our scripts that its user may not call. Nothing is written. */
const TRY = `#!lua flags=allow-oom
local key, refused = KEYS[1], {}
local function try(...)
  if not redis.acl_check_cmd(...) then table.insert(refused, string.lower((...))) end
end
try('INFO', 'replication') try('TIME') try('EXISTS', key) try('DEL', key) try('PEXPIRE', key, 1000) try('PTTL', key)
try('SET', key, 'x', 'PX', 1000) try('GET', key) try('GETRANGE', key, 0, 0)
try('HSET', key, 'f', 'x') try('HGET', key, 'f') try('HMGET', key, 'f') try('HLEN', key) try('HKEYS', key) try('HDEL', key, 'f')
return refused`;

/** Whether the store's user may do what Portico does. */
export async function rightsFindings(
  client: Redis | Cluster,
  address: StoreAddress,
  channel: string,
): Promise<Finding[]> {
  const refused = await Promise.all([scripts(client), ...(channel === '' ? [] : [channels(client, address, channel)])]);
  const findings = refused.flat();
  return findings.length > 0 ? findings : [good('its user may do what is needed')];
}

async function scripts(client: Redis | Cluster): Promise<Finding[]> {
  try {
    const loaded = isCluster(client) ? client.nodes('master')[0] : client;
    await loaded?.script('LOAD', 'return 1');
    const refused = await client.eval(TRY, 1, `portico:doctor:${randomUUID()}`);
    const rules = (Array.isArray(refused) ? refused : []).map((name) => `+${String(name)}`);
    return rules.length === 0 ? [] : [bad('its user lacks rights', `Add '${rules.join(' ')}' to its ACL`)];
  } catch (error) {
    const reason = reasonOf(error);
    const advice = reason === 'NOPERM' ? "Add '+eval +evalsha +script|load ~portico:*' to its ACL" : REFUSALS[reason];
    return [bad(`it refuses our scripts (${reason})`, advice ?? 'Look for that code in docs/shared-state.md')];
  }
}

const REFUSALS: Readonly<Record<string, string>> = {
  READONLY: 'It is a replica: STORE_URL is to be the primary, or the sentinels',
  NOREPLICAS: 'It has fewer replicas than min-replicas-to-write: bring them back',
  OOM: 'Its memory is full: raise maxmemory',
  MISCONF: 'It cannot write to its disk',
};

async function channels(client: Redis | Cluster, address: StoreAddress, channel: string): Promise<Finding[]> {
  const [tells, hears] = await Promise.all([mayPublish(client, channel), maySubscribe(address, channel)]);
  if (tells && hears) return [];
  const verb = tells ? 'hear of' : 'tell';
  return [
    poor(
      `its user may not ${verb} changes, so every hit asks the store`,
      `Add '+publish +subscribe +pubsub|numsub &portico:changes:*' to its ACL`,
    ),
  ];
}

/** Over a connection of its own, which does nothing else from then on. */
async function maySubscribe(address: StoreAddress, channel: string): Promise<boolean> {
  const listener = clientOf(address);
  listener.on('error', () => undefined); // told of by the other connection
  try {
    await listener.connect();
    await listener.subscribe(channel);
    return true;
  } catch {
    return false;
  } finally {
    listener.disconnect();
  }
}
