import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { Pool } from 'undici';
import { vi } from 'vitest';
import type { Change, Engine, Question, Save, SaveReply, SnapshotReply } from '../../src/store/shared/engine.ts';
import type { WriteBegin, WriteBegun, WriteEnded } from '../../src/store/writes.ts';
import { compatibility, workerd } from './bare-worker.ts';
import { emptyFolder, ROOT, run, type Running } from './node-gateway.ts';
import { freePort } from '../support/ports.ts';
import { pack, unpack } from './object-worker-wire.ts';
import { complaintsIn } from './worker-gateway.ts';

const MAIN = 'object-worker.js';

/** The objects of accounts in a workerd, by object-worker.ts in front of them. */
export class ObjectWorld implements Engine {
  readonly #folder = emptyFolder();
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

  /** What there is, as 'kind name'. */
  async kept(account: string): Promise<readonly string[]> {
    return (await this.#call(account, 'kept')) as string[];
  }

  /** A table as an earlier release has left it. */
  async leaveTable(account: string, name: string): Promise<void> {
    await this.#call(account, 'leaveTable', name);
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

  async snapshot(account: string, question: Question): Promise<SnapshotReply> {
    return (await this.#call(account, 'snapshot', question)) as SnapshotReply;
  }

  async save(account: string, save: Save): Promise<SaveReply> {
    return (await this.#call(account, 'save', save)) as SaveReply;
  }

  async beginWrite(account: string, write: WriteBegin): Promise<WriteBegun> {
    return (await this.#call(account, 'beginWrite', write)) as WriteBegun;
  }

  async endWrite(account: string, write: WriteEnded): Promise<void> {
    await this.#call(account, 'endWrite', write);
  }

  async change(account: string, change: Change): Promise<void> {
    await this.#call(account, 'change', change);
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
