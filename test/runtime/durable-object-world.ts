import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { Pool } from 'undici';
import { vi } from 'vitest';
import { systemClock } from '../../src/entry/node/deps.ts';
import { SharedStore } from '../../src/store/shared.ts';
import type {
  KnownRecord,
  NewCopy,
  NewRecord,
  NewTurn,
  Question,
  Remote,
  Reply,
} from '../../src/store/shared/remote.ts';
import { Vault } from '../../src/store/shared/vault.ts';
import { ENGINE_SLACK_MS, type SharedEngine } from '../store/engine.ts';
import { secret } from '../support/secrets.ts';
import { compatibility, workerd } from './bare-worker.ts';
import { emptyFolder, ROOT, run, type Running } from './node-gateway.ts';
import { freePort } from '../support/ports.ts';
import { pack, unpack } from './object-worker-wire.ts';
import { complaintsIn } from './worker-gateway.ts';

const MAIN = 'object-worker.js';

/** The objects of accounts in a workerd, by object-worker.ts in front of them, and stores on them. */
export class ObjectWorld implements Remote {
  readonly #folder = emptyFolder();
  readonly #vault = new Vault([secret('of-the-instances')]);
  #running: Running | undefined;
  #pool: Pool | undefined;
  #passedMs = 0;

  static async start(): Promise<ObjectWorld> {
    const world = new ObjectWorld();
    mkdirSync(join(world.#folder, 'objects'));
    await build({
      absWorkingDir: ROOT,
      entryPoints: ['test/runtime/object-worker.ts'],
      outfile: join(world.#folder, MAIN),
      bundle: true,
      format: 'esm',
      platform: 'neutral',
      target: 'es2024',
      external: ['cloudflare:*'],
      logLevel: 'warning',
    });
    await world.#serve();
    return world;
  }

  /** Two instances. */
  engine(): SharedEngine {
    const open = () =>
      new SharedStore({ remote: this, vault: this.#vault, maxBytes: 1_048_576, clock: systemClock, isVolatile: false });
    return { store: open(), other: open(), pass: (ms) => this.pass(ms), slackMs: ENGINE_SLACK_MS };
  }

  async pass(ms: number): Promise<void> {
    await this.#post('/pass', ms);
    this.#passedMs += ms;
  }

  /** The process gone with SIGKILL, and another one with the same disk, in which it is as late. */
  async restart(): Promise<void> {
    await this.close();
    await this.#serve();
    await this.#post('/pass', this.#passedMs);
  }

  async close(): Promise<void> {
    await this.#pool?.destroy();
    await this.#running?.kill();
  }

  /** Of workerd, since it was started last. */
  complaints(): readonly string[] {
    return this.#running ? complaintsIn(this.#running) : [];
  }

  /** All that an object has on disk, the write-ahead log too, byte for byte. */
  async onDisk(account: string): Promise<string> {
    const fileName = (await this.#call(account, 'fileName')) as string;
    const folder = join(this.#folder, 'objects/accounts');
    const files = readdirSync(folder).filter((name) => name.startsWith(fileName) && !name.endsWith('-shm'));
    return files.map((name) => readFileSync(join(folder, name), 'latin1')).join('\n');
  }

  async tables(account: string): Promise<readonly string[]> {
    return (await this.#call(account, 'tables')) as string[];
  }

  async rows(account: string): Promise<number> {
    return (await this.#call(account, 'rows')) as number;
  }

  /** How long it is until the alarm of an object. */
  async alarmIn(account: string): Promise<number | undefined> {
    return (await this.#call(account, 'alarmIn')) as number | undefined;
  }

  /** The alarm of an object, now. */
  async ring(account: string): Promise<void> {
    await this.#call(account, 'ring');
  }

  async secret(account: string): Promise<string> {
    return (await this.#call(account, 'secret')) as string;
  }

  async visit(account: string, question: Question): Promise<Reply> {
    return (await this.#call(account, 'visit', question)) as Reply;
  }

  async save(account: string, copy: NewCopy): Promise<boolean> {
    return (await this.#call(account, 'save', copy)) as boolean;
  }

  async touch(account: string, tags: readonly string[]): Promise<void> {
    await this.#call(account, 'touch', tags);
  }

  async takeTurn(account: string, turn: NewTurn): Promise<boolean> {
    return (await this.#call(account, 'takeTurn', turn)) as boolean;
  }

  async passTurn(account: string, turn: Pick<NewTurn, 'key' | 'instance'>): Promise<void> {
    await this.#call(account, 'passTurn', turn);
  }

  async hold(account: string, ms: number): Promise<void> {
    await this.#call(account, 'hold', ms);
  }

  async claim(account: string, record: NewRecord): Promise<KnownRecord | undefined> {
    return (await this.#call(account, 'claim', record)) as KnownRecord | undefined;
  }

  async advance(account: string, record: NewRecord): Promise<boolean> {
    return (await this.#call(account, 'advance', record)) as boolean;
  }

  async settle(account: string, record: NewRecord): Promise<void> {
    await this.#call(account, 'settle', record);
  }

  async release(account: string, record: Pick<NewRecord, 'key' | 'nonce'>): Promise<void> {
    await this.#call(account, 'release', record);
  }

  #call(account: string, method: string, ...args: readonly unknown[]): Promise<unknown> {
    return this.#post('/', { account, method, args });
  }

  async #post(path: string, value: unknown): Promise<unknown> {
    if (!this.#pool) throw new Error('nothing has been started');
    const { statusCode, body } = await this.#pool.request({ method: 'POST', path, body: pack(value) });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(text);
    return unpack(text);
  }

  async #serve(): Promise<void> {
    const address = `127.0.0.1:${await freePort()}`;
    writeFileSync(join(this.#folder, 'config.capnp'), configOf(address));
    const running = run({ cwd: this.#folder, command: [workerd(), 'serve', 'config.capnp'] });
    this.#running = running;
    this.#pool = new Pool(`http://${address}`, { connections: 16 });
    const isUp = async () => {
      if (running.hasExited()) throw new Error(running.stderr());
      await this.#post('/pass', 0);
    };
    await vi.waitFor(isUp, { timeout: 40_000, interval: 25 });
  }
}

const configOf = (address: string) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "objects", worker = (
      modules = [(name = "${MAIN}", esModule = embed "${MAIN}")],
      ${compatibility()}
      bindings = [(name = "ACCOUNTS", durableObjectNamespace = (className = "Account"))],
      durableObjectNamespaces = [(className = "Account", uniqueKey = "accounts", enableSql = true)],
      durableObjectStorage = (localDisk = "disk"),
    )),
    (name = "disk", disk = (path = "objects", writable = true)),
  ],
  sockets = [(name = "http", address = "${address}", http = (), service = (name = "objects", entrypoint = "front"))],
);
`;
