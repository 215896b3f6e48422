import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../../scripts/free-port.ts';
import { until } from '../load/chaos/node.ts';
import { atExit } from '../load/support/processes.ts';
import { redisBinary } from '../load/support/redis.ts';
import { ViewsRelay } from './views-relay.ts';

const USUAL = { bind: '127.0.0.1', save: '', appendonly: 'no', loglevel: 'warning' };
const DATABASES = 256;

export interface ViewsServer {
  readonly port: number;
  readonly client: Redis;
  signal(name: NodeJS.Signals): void;
  close(): Promise<void>;
}

async function startServer(settings: Readonly<Record<string, string>>): Promise<ViewsServer> {
  const [port, dir] = [await freePort(), mkdtempSync(join(tmpdir(), 'portico-views-'))];
  const args = Object.entries({ ...USUAL, port: String(port), dir, ...settings });
  const child: ChildProcess = spawn(
    redisBinary ?? '',
    args.flatMap(([name, value]) => [`--${name}`, value]),
    { stdio: 'ignore' },
  );
  atExit(() => child.kill('SIGKILL'));
  const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 20, maxRetriesPerRequest: null });
  client.on('error', () => undefined); // until it listens
  child.once('exit', () => client.disconnect()); // whoever asks one that has ended fails, and does not wait
  await client.ping();
  return {
    port,
    client,
    signal: (name) => void child.kill(name),
    async close() {
      client.disconnect();
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** A store is not taken for a new one, which is not relied upon, once it is up for longer than the window of its instances. */
const isOlder =
  ({ client }: ViewsServer, seconds: number) =>
  async () =>
    Number(/uptime_in_seconds:(\d+)/.exec(await client.info('server'))?.[1]) >= seconds;

/** One Redis for many schedules at once, each in a database of its own. */
export class Databases {
  readonly #server: ViewsServer;
  readonly #free = Array.from({ length: DATABASES }, (_, db) => db);

  private constructor(server: ViewsServer) {
    this.#server = server;
  }

  /** `windowMs`: of the instances. */
  static async open(windowMs: number): Promise<Databases> {
    const server = await startServer({ databases: String(DATABASES) });
    await until(isOlder(server, windowMs / 1_000 + 1));
    return new Databases(server);
  }

  get port(): number {
    return this.#server.port;
  }

  take(): number {
    const db = this.#free.shift();
    if (db === undefined) throw new Error(`no more than ${DATABASES} schedules at once`);
    return db;
  }

  async giveBack(db: number): Promise<void> {
    await this.#server.client.multi().select(db).flushdb('ASYNC').exec();
    this.#free.push(db);
  }

  close(): Promise<void> {
    return this.#server.close();
  }
}

const offsetOf = async ({ client }: ViewsServer, field: string): Promise<number> =>
  Number(new RegExp(`${field}:(\\d+)`).exec(await client.info('replication'))?.[1]);

const LAG_SECONDS = 2;

/** A primary and its replica, with a relay between them. */
export class Pair {
  readonly primary: ViewsServer;
  readonly replica: ViewsServer;
  readonly #link: ViewsRelay;

  private constructor(nodes: Pick<Pair, 'primary' | 'replica'>, link: ViewsRelay) {
    this.primary = nodes.primary;
    this.replica = nodes.replica;
    this.#link = link;
  }

  static async open(windowMs: number): Promise<Pair> {
    const settings = {
      'min-replicas-to-write': '1',
      'min-replicas-max-lag': String(LAG_SECONDS),
      'repl-diskless-sync-delay': '0',
      'repl-timeout': '60',
    };
    // The replica is asked for what it has only once it is the primary, and then it has none itself.
    const [primary, replica] = await Promise.all([
      startServer(settings),
      startServer({ ...settings, 'min-replicas-to-write': '0' }),
    ]);
    const link = await ViewsRelay.open(primary.port);
    await replica.client.replicaof('127.0.0.1', link.port);
    await until(async () => /state=online/.test(await primary.client.info('replication')));
    await Promise.all([primary, replica].map((one) => until(isOlder(one, windowMs / 1_000 + 1))));
    return new Pair({ primary, replica }, link);
  }

  /** They do not hear of each other any more, and nobody tells them. */
  cutOff(): void {
    this.#link.hold();
  }

  /** What the replica has missed it gets again, as a whole or in part; what was published meanwhile is lost. */
  async resync(forMs: number): Promise<void> {
    this.#link.cut();
    const mend = this.#link.hold();
    await new Promise((resolve) => setTimeout(resolve, forMs));
    mend();
  }

  /** All that the primary has acknowledged so far is at the replica. */
  async replicated(): Promise<void> {
    const wanted = await offsetOf(this.primary, 'master_repl_offset');
    await until(async () => (await offsetOf(this.replica, 'slave_repl_offset')) >= wanted);
  }

  async promote(): Promise<void> {
    await this.replica.client.replicaof('NO', 'ONE');
  }

  async untilRefused(): Promise<void> {
    const refuses = async () => {
      const tried = this.primary.client.set('portico-views', '1').then(String, String);
      return (await tried).includes('NOREPLICAS');
    };
    await until(refuses);
  }

  async close(): Promise<void> {
    await Promise.all([this.primary.close(), this.replica.close()]);
    await this.#link.close();
  }
}
