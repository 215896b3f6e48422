import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type * as ioredis from 'ioredis';
import type { Redis } from 'ioredis';
import type { StoreAddress, StoreNode } from './address.ts';
import { isReply, Trouble } from './troubles.ts';

/** Loaded where there is a store: it takes a start 30 ms. */
const load = createRequire(import.meta.url) as (name: 'ioredis') => typeof ioredis;

const OPTIONS = {
  connectTimeout: 1_000,
  socketTimeout: 2_000,
  protocol: 2,
  lazyConnect: true,
  retryStrategy: () => null,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false, // nothing waits for a connection
  autoResendUnfulfilledCommands: false, // and nothing is sent twice
  enableReadyCheck: false, // the first command is one
  disableClientInfo: true, // hence what a node says before it closes is the reply to a command of ours
} as const;

/** A connection to one node. When it is closed another one is made, perhaps to another node. */
export class Connection {
  readonly client: Redis;
  /** Resolves when it is closed. */
  readonly closed: Promise<void>;
  /** After how long its sentinels take it for gone, where it is a primary. */
  downAfterMs: number | undefined;
  #isGathering = false;
  /** The first error. Those that follow from it say less. */
  #cause: Error | undefined;

  constructor({ host, port }: StoreNode, { tls, secured, timeouts }: StoreAddress) {
    const { Redis } = load('ioredis');
    const named = isIP(host) === 0 ? { servername: host.replace(/\.$/, '') } : {}; // in TLS an IP address is no name
    const security = tls ? { tls: { secureContext: secured?.secureContext, ...named } } : {};
    this.client = new Redis({ ...OPTIONS, ...timeouts, host, port, ...security });
    this.client.on('error', (error) => (this.#cause ??= error));
    this.closed = new Promise((resolve) => void this.client.once('end', resolve));
  }

  /** Commands of one turn of the event loop go out together: one system call here, and one there. */
  gather(): void {
    const { stream } = this.client;
    if (this.#isGathering) return;
    this.#isGathering = true;
    stream.cork();
    setImmediate(() => {
      this.#isGathering = false;
      stream.uncork();
    });
  }

  /** @throws Trouble: the first cause, where what is done with it fails; then it is closed */
  async use<T>(act: (own: this) => Promise<T>, who?: string): Promise<T> {
    try {
      await this.client.connect();
      this.client.stream.on('error', () => undefined); // ioredis hears one: another would end the process
      // A node that refuses a connection says why, and closes it. A write would fail then before that is read.
      for (let turns = 0; turns < 2; turns++) await nextTurn();
      return await act(this);
    } catch (error) {
      this.client.disconnect();
      throw new Trouble(this.causeOf(error), who);
    }
  }

  /** Why it is closed, or why a command has failed. */
  causeOf(error?: unknown): unknown {
    return isReply(error) ? error : (this.#cause ?? error);
  }

  async logIn({ user, password }: StoreAddress): Promise<void> {
    if (password === undefined) return;
    const login = user === undefined ? [password] : [user, password];
    await this.client.call('AUTH', ...login).catch((error: unknown) => {
      if (!String(error).includes('without any password configured')) throw error; // who asks for none lets anybody in
    });
  }
}

interface Primary extends StoreNode {
  readonly downAfterMs?: number | undefined;
}

/** Connects to the node, or to the primary that a sentinel names. `turn`: which sentinel is asked first. */
export async function connect(address: StoreAddress, turn = 0): Promise<Connection> {
  return connectTo(await primaryOf(address, turn), address, async (connection) => connection);
}

/** @throws Trouble, where what is done with the connection fails; then it is closed */
export function connectTo<T>(
  primary: Primary,
  address: StoreAddress,
  act: (own: Connection) => Promise<T>,
): Promise<T> {
  const logIn = async (connection: Connection) => {
    await connection.logIn(address);
    if (address.db > 0) await connection.client.select(address.db);
    connection.downAfterMs = primary.downAfterMs;
    return act(connection);
  };
  const who = address.kind === 'sentinel' ? 'the primary that a sentinel names' : undefined;
  return new Connection(primary, address).use(logIn, who);
}

/** @throws Trouble: what the first sentinel says that can be reached, or else why the first cannot */
export async function primaryOf(address: StoreAddress, turn = 0): Promise<Primary> {
  const { kind, nodes } = address;
  const troubles: Trouble[] = [];
  for (const i of nodes.keys()) {
    const node = nodes[(turn + i) % nodes.length];
    if (!node) continue;
    if (kind === 'one') return node;
    try {
      return await new Connection(node, address).use((opened) => primaryIn(opened, address), 'a sentinel');
    } catch (error) {
      troubles.push(Trouble.of(error));
    }
  }
  throw troubles.find(({ isUnreachable }) => !isUnreachable) ?? troubles[0] ?? new Trouble('NO_SENTINEL');
}

/** Logs in where the sentinel wants it: those without a password would refuse the login. */
async function primaryIn(connection: Connection, address: StoreAddress): Promise<Primary> {
  const { client } = connection;
  const name = address.master ?? '';
  const ask = () =>
    Promise.all([
      client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name),
      client.call('SENTINEL', 'MASTER', name).then(String, () => ''),
    ]);
  const [at, settings] = await ask().catch(async (error: unknown) => {
    if (address.password === undefined || !/^NO(AUTH|PERM)$/.test(Trouble.of(error).reason)) throw error;
    await connection.logIn(address);
    return ask();
  });
  client.disconnect();
  if (!Array.isArray(at)) throw new Error('NO_SENTINEL'); // that knows the name
  const downAfter = /down-after-milliseconds,(\d+)/.exec(settings)?.[1];
  const downAfterMs = downAfter === undefined ? undefined : Number(downAfter);
  return { host: String(at[0]), port: Number(at[1]), downAfterMs };
}

/** What `INFO` says of one thing. */
export const fieldIn = (info: string, field: string): string | undefined =>
  new RegExp(`^${field}:(.*?)\\r?$`, 'm').exec(info)?.[1];

/** A primary that is cut off goes on for so many seconds. */
const MOST_LAG_SECONDS = 2;
/** Sentinels that take a primary for gone sooner may name another one while it still takes writes. */
const LEAST_DOWN_AFTER_MS = 5_000;

/** The part of the memory from which on no write begins. */
export const FULL = 0.75;

/** Codes of what is wrong with a node, as far as it shows its settings. */
export async function troublesOf({ client, downAfterMs }: Connection): Promise<readonly string[]> {
  const names = ['min-replicas-to-write', 'min-replicas-max-lag'];
  const [info, settings] = await Promise.all([
    client.info().catch(() => ''),
    client.call('CONFIG', 'GET', ...names).then(String, () => ''),
  ]);
  const of = (field: string) => fieldIn(info, field);
  const setting = (name: string) => Number(new RegExp(`${name},(\\d+)`).exec(settings)?.[1] ?? NaN);
  const hasReplicas = downAfterMs !== undefined || Number(of('connected_slaves') ?? 0) > 0;
  const lag = setting('min-replicas-max-lag');
  const troubles = {
    // Records and marks would be evicted.
    EVICTS: Number(of('maxmemory') ?? 0) > 0 && of('maxmemory_policy') !== 'noeviction',
    NOT_PERSISTENT: of('aof_enabled') === '0',
    // A primary that is cut off from its replicas would go on taking writes: without end, or for too long.
    FEW_MIN_REPLICAS: hasReplicas && setting('min-replicas-to-write') === 0,
    LAG: hasReplicas && (lag === 0 || lag > MOST_LAG_SECONDS),
    DOWN_AFTER: downAfterMs !== undefined && downAfterMs < LEAST_DOWN_AFTER_MS,
    FULL: Number(of('used_memory')) >= FULL * (Number(of('maxmemory')) || Infinity),
    CLUSTER: of('cluster_enabled') === '1',
    HIDDEN: hasReplicas && settings === '',
  };
  return Object.entries(troubles).flatMap(([word, isSo]) => (isSo ? [word] : []));
}
