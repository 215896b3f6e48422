import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { Pool } from 'undici';
import { vi } from 'vitest';
import type { Count, Swapped } from '../../src/store/backend.ts';
import type { Window } from '../../src/store/port.ts';
import type { SealedNext, SealedValue, Shelf } from '../../src/store/sealed.ts';
import { compatibility, workerd } from './bare-worker.ts';
import { emptyFolder, ROOT, run, type Running } from './node-gateway.ts';
import { freePort } from '../support/ports.ts';
import { pack, unpack } from './object-worker-wire.ts';
import { complaintsIn } from './worker-gateway.ts';

const MAIN = 'object-worker.js';

/** The objects of accounts in a workerd, and the shelf that calls them, by object-worker.ts in front of them. */
export class ObjectWorld implements Shelf {
  readonly token = '';
  readonly reliableAt = -Infinity;
  readonly #folder = emptyFolder();
  #running: Running | undefined;
  #pool: Pool | undefined;
  #passedMs = 0;
  #now = 0;

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
      mainFields: ['module', 'main'],
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
  async putAway(): Promise<void> {
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

  async tables(account: string): Promise<readonly string[]> {
    return (await this.#call(false, account, 'tables')) as string[];
  }

  /** What there is, as 'kind name'. */
  async kept(account: string): Promise<readonly string[]> {
    return (await this.#call(false, account, 'kept')) as string[];
  }

  /** How long it is until the alarm of an object. */
  async alarmIn(account: string): Promise<number | undefined> {
    return (await this.#call(false, account, 'alarmIn')) as number | undefined;
  }

  /** The alarm of an object, now. */
  async ring(account: string): Promise<void> {
    await this.#call(false, account, 'ring');
  }

  async secret(account: string): Promise<string> {
    return (await this.#call(false, account, 'secret')) as string;
  }

  now(): number {
    return this.#now;
  }

  async read(account: string, names: readonly string[]) {
    return (await this.#call(true, account, 'read', names)) as Awaited<ReturnType<Shelf['read']>>;
  }

  async swap(account: string, seen: string, next: SealedNext): Promise<Swapped> {
    return (await this.#call(true, account, 'swap', seen, next)) as Swapped;
  }

  async keep(account: string, seen: string, note: SealedValue, copy: SealedValue | undefined): Promise<boolean> {
    return (await this.#call(true, account, 'keep', seen, note, copy)) as boolean;
  }

  async count(account: string, window: Pick<Window, 'name' | 'lengthMs'>, many: number): Promise<Count> {
    return (await this.#call(true, account, 'count', window, many)) as Count;
  }

  async #call(isOfShelf: boolean, account: string, method: string, ...args: readonly unknown[]): Promise<unknown> {
    const answer = await this.#post('/', { isOfShelf, account, method, args });
    const { said, now } = answer as { readonly said: unknown; readonly now: number };
    this.#now = now;
    return said;
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
