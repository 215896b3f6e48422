import { createRequire } from 'node:module';
import type * as ioredis from 'ioredis';
import type { Cluster, Redis } from 'ioredis';
import type { StoreAddress as Address } from './address.ts';
import type { Tls } from '../certificates.ts';

export interface StoreAddress extends Address {
  /** With what its connections are secured. */
  readonly secured?: Tls | undefined;
}

/** Loaded where there is a store: it takes a start 30 ms. */
const load = createRequire(import.meta.url) as (name: 'ioredis') => typeof ioredis;

/** A node that owes a reply for so long is disconnected and looked for again. */
const SILENCE_MS = 2_000;
const MOST_RECONNECT_MS = 500;
const FIRST_RECONNECT_MS = 10;

export const pauseOf = (times: number) => (times === 1 ? FIRST_RECONNECT_MS : Math.min(50 * times, MOST_RECONNECT_MS));

/** Sees each error first. Returns whether to connect again, to the current primary. */
function reconnecting(): (error: Error) => boolean {
  let before = -Infinity;
  return (error) => {
    // While a slot moves. Under this name ioredis does not retry it on a random node.
    if (error.message.startsWith('TRYAGAIN')) error.message = `ERR ${error.message}`;
    if (!error.message.startsWith('READONLY') || performance.now() - before < MOST_RECONNECT_MS) return false;
    before = performance.now();
    return true;
  };
}

const tlsOf = (secured: Tls | undefined) => ({ secureContext: secured?.secureContext });

const optionsOf = ({ tls, user, password, secured }: StoreAddress) => ({
  ...(tls && { tls: tlsOf(secured) }),
  ...(user !== undefined && { username: user }),
  ...(password !== undefined && { password }),
  protocol: 2 as const,
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  autoResubscribe: false, // nobody would see that it fails
  connectTimeout: 1_000,
  socketTimeout: SILENCE_MS,
  reconnectOnError: reconnecting(),
});

/** Where changes are told, which in a cluster they are not. Pub/sub knows no databases. */
export const channelOf = ({ kind, db }: StoreAddress): string => (kind === 'cluster' ? '' : `portico:changes:${db}`);

/** How long to wait until another attempt to connect, the first being 1. */
type Retry = (times: number) => number;

/** It fails fast, and connects again by itself. `isTold`: the sentinels tell it of a new primary. */
export function clientOf(address: StoreAddress, retryStrategy: Retry = pauseOf, isTold = true): Redis | Cluster {
  const options = optionsOf(address);
  const { Cluster, Redis } = load('ioredis');
  const { kind, tls, secured, nodes, master = '', db } = address;
  if (kind === 'one') return new Redis({ ...options, ...nodes[0], db, retryStrategy });
  if (kind === 'sentinel')
    return new Redis({
      ...options,
      db,
      retryStrategy,
      sentinels: [...nodes],
      name: master,
      ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: tlsOf(secured) }),
      sentinelCommandTimeout: 1_000,
      sentinelRetryStrategy: pauseOf,
      failoverDetector: isTold,
    });
  return new Cluster([...nodes], {
    redisOptions: options, // no retryStrategy: a lost node is found again through the others
    lazyConnect: true,
    scaleReads: 'master',
    enableOfflineQueue: false,
    clusterRetryStrategy: pauseOf,
    slotsRefreshInterval: 5_000,
    maxRedirections: 3, // after MOVED and ASK
    retryDelayOnClusterDown: 0,
    retryDelayOnFailover: 0,
    ...(tls && { dnsLookup: (host, found) => found(null, host) }), // the certificate is for the name
  });
}

export const isCluster = (client: Redis | Cluster): client is Cluster => client.isCluster;

/** Whether changes can be told, and who listens can be counted; false only where the store refuses it. */
export const mayPublish = (node: Redis | Cluster, channel: string): Promise<boolean> =>
  Promise.all([node.publish(channel, ''), node.call('PUBSUB', 'NUMSUB', channel)]).then(
    () => true,
    (error: unknown) => !(error instanceof Error) || error.name !== 'ReplyError',
  );

/** What `INFO` says of one thing. */
export const fieldIn = (info: string, field: string): string | undefined =>
  new RegExp(`^${field}:(.*?)\\r?$`, 'm').exec(info)?.[1];

/** Codes of a node's settings that are wrong, as far as it shows them. `channel`: on which changes are published, if any. */
export async function troublesOf(node: Redis, channel: string): Promise<readonly string[]> {
  const [info, isPublished, settings] = await Promise.all([
    node.info().catch(() => ''),
    channel === '' || mayPublish(node, channel),
    node.call('CONFIG', 'GET', 'replica-read-only', 'min-replicas-to-write').then(String, () => ''),
  ]);
  const leastReplicas = /min-replicas-to-write,(\d+)/.exec(settings)?.[1];
  const of = (field: string) => fieldIn(info, field);
  const attached = Number(of('connected_slaves') ?? 0);
  const troubles = {
    // Records and marks would be evicted.
    EVICTS: Number(of('maxmemory') ?? 0) > 0 && of('maxmemory_policy') !== 'noeviction',
    NOT_PERSISTENT: of('aof_enabled') === '0',
    REPLICA_WRITABLE: settings.includes('replica-read-only,no'),
    NO_CHANNEL: !isPublished,
    // A primary that is cut off with some of its replicas would go on taking writes.
    FEW_MIN_REPLICAS: leastReplicas !== undefined && attached > Number(leastReplicas),
  };
  return Object.entries(troubles).flatMap(([word, isSo]) => (isSo ? [word] : []));
}
