import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster, Redis } from 'ioredis';
import { NotAsked } from '../../../store/shared/engine.ts';
import { channelOf, clientOf, isCluster, mayPublish, troublesOf, type StoreAddress } from './client.ts';
import { SCRIPTS, type ScriptName } from './scripts.ts';

export interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly (string | number | Buffer)[];
}

export interface Listeners {
  /** Called after each command; `hello` is only reported where it succeeds. */
  readonly onCommand: (command: ScriptName, outcome: 'good' | 'failed', ms: number) => void;
  /** A code of what is wrong with the store, repeated for as long as it is. */
  readonly onTrouble: (reason: string) => void;
}

interface ConnectionOptions extends Listeners {
  readonly address: StoreAddress;
  /** A node can be asked, for the first time or again after a loss. */
  readonly onReady: () => void;
  /** There is no connection any more. */
  readonly onLost: () => void;
}

const FIRST_MS = 1_000;
/** Redis' `timeout` and balancers close a connection on which nothing is said for a while, most after 30 s or more. */
const KEEP_ALIVE_MS = 3_000;

const shas = Object.fromEntries(
  Object.entries(SCRIPTS).map(([name, lua]) => [name, createHash('sha1').update(lua).digest('hex')]),
) as Record<ScriptName, string>;

/** Connections to Redis or Valkey that fail fast: nothing waits for a connection, and nothing is sent twice. */
export class Connection {
  readonly #client: Redis | Cluster;
  readonly #listeners: Listeners;
  readonly #keepAlive: NodeJS.Timeout;
  readonly #channel: string;
  #isSelected = false;
  #isClosed = false;
  /** Commands without a reply. */
  #owed = 0;
  /** Ends with the first attempt to connect again after a connection was closed that owed nothing. */
  #returning: PromiseWithResolvers<void> | undefined;

  constructor({ address, onReady, onLost, ...listeners }: ConnectionOptions) {
    this.#listeners = listeners;
    this.#client = clientOf(address);
    this.#channel = channelOf(address);
    const client = this.#client;
    this.#keepAlive = setInterval(() => this.#ping(), KEEP_ALIVE_MS).unref();
    const lose = () => {
      this.#return();
      onLost();
    };
    client.on('close', () => {
      const isIdle = this.#isIdle;
      this.#isSelected = false;
      // Who goes on at once has missed no more than with a connection that stayed; each script looks which store it is.
      if (isIdle) this.#returning = Promise.withResolvers();
      else lose();
    });
    client.on('error', (error) => {
      if (this.#isIdle) return; // it is closed next
      listeners.onTrouble(reasonOf(error));
      if (!this.isOpen) lose(); // without a sentinel there is nothing that closes
    });
    // ioredis gives up where a sentinel tells of a new primary while it is asked for it.
    client.on('end', () => {
      if (!this.#isClosed) client.connect().catch(() => undefined);
    });
    if (isCluster(client)) this.#watchNodes(client, onReady);
    else client.on('ready', () => void this.#select(client, address.db, onReady));
  }

  /** Of a cluster it is not known which of its nodes owe something. */
  get #isIdle(): boolean {
    return this.#isSelected && this.#owed === 0;
  }

  /** Whether there is a connection at all. */
  get isOpen(): boolean {
    return this.#client.status === 'ready' && (this.#isSelected || isCluster(this.#client));
  }

  /** Resolves after the first attempt to connect, or after a second; attempts go on in the background. */
  async open(): Promise<void> {
    const connected = this.#client.connect().then(() => reach(this.#client));
    await Promise.race([connected.catch(() => undefined), sleep(FIRST_MS, undefined, { ref: false })]);
  }

  /** Runs a script on the node of its first key. */
  async run(name: ScriptName, call: ScriptCall): Promise<unknown> {
    const { onCommand, onTrouble } = this.#listeners;
    const startedAt = performance.now();
    if (this.#returning) await this.#returning.promise;
    this.#owed++;
    try {
      if (!this.isOpen) throw new NotAsked();
      const reply = await this.#evaluate(name, call);
      onCommand(name, 'good', performance.now() - startedAt);
      return reply;
    } catch (error) {
      if (isReply(error)) onTrouble(reasonOf(error));
      if (name !== 'hello') onCommand(name, 'failed', performance.now() - startedAt);
      throw isUnsent(error) ? new NotAsked() : error;
    } finally {
      this.#owed--;
    }
  }

  /** Whether the store lets this user tell of changes. */
  mayPublish(): Promise<boolean> {
    return mayPublish(this.#client, this.#channel);
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#keepAlive);
    this.#isSelected = false;
    this.#return();
    this.#client.disconnect();
  }

  /** Here and not by ioredis, which goes on in database 0 where it may not select another. */
  async #select(node: Redis, db: number, onReady: () => void): Promise<void> {
    try {
      if (db > 0) await node.select(db);
      this.#isSelected = true;
      this.#prepare(node);
      this.#return();
      onReady();
    } catch (error) {
      this.#listeners.onTrouble(reasonOf(error));
      node.disconnect(true);
    }
  }

  #return(): void {
    this.#returning?.resolve();
    this.#returning = undefined;
  }

  #ping(): void {
    const nodes = isCluster(this.#client) ? this.#client.nodes('master') : [this.#client];
    for (const node of nodes) {
      if (node.status !== 'ready') continue;
      this.#owed++;
      const done = () => void this.#owed--;
      node.ping().then(done, done);
    }
  }

  #watchNodes(cluster: Cluster, onReady: () => void): void {
    let isReached = false;
    cluster.on('close', () => (isReached = false));
    cluster.on('node error', (error) => this.#listeners.onTrouble(reasonOf(error)));
    const begin = () => {
      isReached = true;
      onReady();
    };
    cluster.on('ready', () => void reach(cluster).then(begin));
    cluster.on('+node', (node: Redis) =>
      node.on('ready', () => {
        if (node.options.readOnly) return;
        this.#prepare(node);
        if (isReached) onReady();
      }),
    );
  }

  /** By its hash, and by its text where the node does not know it. */
  async #evaluate(name: ScriptName, { keys, args }: ScriptCall): Promise<unknown> {
    const rest = [keys.length, ...keys, ...args];
    try {
      return await this.#client.callBuffer('evalsha', [shas[name], ...rest]);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return this.#client.callBuffer('eval', [SCRIPTS[name], ...rest]);
    }
  }

  #prepare(node: Redis): void {
    for (const lua of Object.values(SCRIPTS)) node.script('LOAD', lua).catch(() => undefined);
    void troublesOf(node, this.#channel).then((troubles) =>
      troubles.forEach((trouble) => this.#listeners.onTrouble(trouble)),
    );
  }
}

/** Connects to all masters of a cluster, which ioredis does only when it needs them. */
export async function reach(client: Redis | Cluster): Promise<void> {
  if (isCluster(client)) await Promise.allSettled(client.nodes('master').map((node) => node.ping()));
}

/** What ioredis throws where a connection has just closed. */
const isUnsent = (error: unknown) => error instanceof Error && error.message.startsWith("Stream isn't writeable");

/** An error that a node replied. All others are reported by events. */
const isReply = (error: unknown) =>
  error instanceof Error && /^ReplyError|Last error: ReplyError/.test(`${error.name} ${error.message}`);

/** Errors of ioredis itself, by how their messages begin. */
const OWN_ERRORS = [
  ['Socket timeout', 'ETIMEDOUT'],
  ['Connection is closed', 'ECONNRESET'],
  ['All sentinels', 'NO_SENTINEL'],
  ['Failed to refresh slots', 'NO_NODE'],
] as const;

/** The system's error code, or the first word of the node's message; nothing that could be a secret. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'UNKNOWN';
  if ('code' in error && typeof error.code === 'string') return error.code;
  const word = /(?:^|ReplyError: )(?:ERR )?([A-Z_]{3,40})\b/.exec(error.message)?.[1];
  return word ?? OWN_ERRORS.find(([begin]) => error.message.startsWith(begin))?.[1] ?? 'UNKNOWN';
}
