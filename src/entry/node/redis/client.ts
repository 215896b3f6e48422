import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import type * as ioredis from 'ioredis';
import type { Redis } from 'ioredis';
import { codeOf } from '../files.ts';
import type { StoreAddress, StoreNode } from './address.ts';

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

  private constructor({ host, port }: StoreNode, { tls, secured, timeouts }: StoreAddress) {
    const { Redis } = load('ioredis');
    const named = isIP(host) === 0 ? { servername: host } : {}; // in TLS an IP address is no name
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

  /** @throws the first cause, where what is done with it fails; then it is closed */
  static async open<T>(node: StoreNode, address: StoreAddress, use: (opened: Connection) => Promise<T>): Promise<T> {
    const opened = new Connection(node, address);
    try {
      await opened.client.connect();
      return await use(opened);
    } catch (error) {
      opened.client.disconnect();
      throw opened.causeOf(error);
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

/** Connects to the node, or to the primary that a sentinel names. `turn`: which sentinel is asked first. */
export async function connect(address: StoreAddress, turn = 0): Promise<Connection> {
  const [first] = address.nodes;
  const isOne = address.kind === 'one' && first;
  const { node, downAfterMs } = isOne ? { node: first, downAfterMs: undefined } : await primaryOf(address, turn);
  return Connection.open(node, address, async (connection) => {
    await connection.logIn(address);
    if (address.db > 0) await connection.client.select(address.db);
    connection.downAfterMs = downAfterMs;
    return connection;
  });
}

/** @throws what a sentinel has replied, or else what the first one failed with */
async function primaryOf(address: StoreAddress, turn: number) {
  const { nodes } = address;
  const causes: unknown[] = [];
  for (const i of nodes.keys()) {
    const sentinel = nodes[(turn + i) % nodes.length];
    try {
      if (sentinel) return await Connection.open(sentinel, address, (opened) => primaryIn(opened, address));
    } catch (error) {
      causes.push(error);
    }
  }
  const cause = causes.find(isReply) ?? causes[0];
  const isUnreachable = cause instanceof Error && 'syscall' in cause;
  throw isUnreachable ? new Error('NO_SENTINEL', { cause }) : cause;
}

/** Logs in where the sentinel wants it: those without a password would refuse the login. */
async function primaryIn(connection: Connection, address: StoreAddress) {
  const { client } = connection;
  const name = address.master ?? '';
  const ask = () =>
    Promise.all([
      client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name),
      client.call('SENTINEL', 'MASTER', name).then(String, () => ''),
    ]);
  const [at, settings] = await ask().catch(async (error: unknown) => {
    if (address.password === undefined || !['NOAUTH', 'NOPERM'].includes(reasonOf(error))) throw error;
    await connection.logIn(address);
    return ask();
  });
  client.disconnect();
  if (!Array.isArray(at)) throw new Error('NO_SENTINEL'); // that knows the name
  const downAfter = /down-after-milliseconds,(\d+)/.exec(settings)?.[1];
  const node = { host: String(at[0]), port: Number(at[1]) };
  return { node, downAfterMs: downAfter === undefined ? undefined : Number(downAfter) };
}

export const isReply = (error: unknown): error is Error => error instanceof Error && error.name === 'ReplyError';

/** The reasons that have no code, by how their messages begin. */
const REASONS = [
  [/max number of clients/, 'MAXCLIENTS'],
  [/ACL failure in script|user executing the script can't/, 'NOPERM'],
  [/^Socket timeout/, 'ETIMEDOUT'],
  [/^Connection is closed|^Stream isn't writeable/, 'ECONNRESET'],
] as const;

/** The system's error code, or the first word of the node's message; nothing that could be a secret. */
export function reasonOf(error: unknown): string {
  const { message } = error instanceof Error ? error : { message: '' };
  const known = codeOf(error) ?? REASONS.find(([pattern]) => pattern.test(message))?.[1];
  return known ?? /^(?:ERR )?([A-Z_]{3,40})\b/.exec(message)?.[1] ?? 'UNKNOWN';
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
    HIDDEN: hasReplicas && settings === '',
  };
  return Object.entries(troubles).flatMap(([word, isSo]) => (isSo ? [word] : []));
}
