import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../../../../bench/harness/client.ts';
import { atExit, type Running, SECRET, startGateway } from '../../../../bench/harness/processes.ts';
import { freePort } from '../../../../scripts/free-port.ts';

const REQUEST_TIMEOUT_MS = 2_000;

const CONNECTIONS = 64;
const PROCESSES = 2;

/** An instance that comes back on the same port. Without a store it is several processes, of which one is replaced. */
export class ChaosGateway {
  readonly client: Client;
  readonly #env: Readonly<Record<string, string>>;
  #running: Running;

  private constructor(running: Running, env: Readonly<Record<string, string>>) {
    this.#running = running;
    this.#env = env;
    this.client = new Client(running.url, CONNECTIONS);
    atExit(() => this.#running.signal('SIGKILL'));
  }

  static async open(upstream: string, storeUrl?: string): Promise<ChaosGateway> {
    const env = {
      PORT: String(await freePort()),
      ADMIN_PORT: '0',
      RATE_LIMIT_PER_MINUTE: '0',
      REQUEST_TIMEOUT_MS: String(REQUEST_TIMEOUT_MS),
      UPSTREAM_TIMEOUT_MS: '1000',
      UPSTREAM_BASE_URL: upstream,
      ...(storeUrl === undefined ? { WORKERS: String(PROCESSES) } : { STORE_URL: storeUrl, SECRETS: SECRET }),
    };
    return new ChaosGateway(await startGateway({ env }), env);
  }

  async killFor(ms: number): Promise<void> {
    if (this.#isSeveral) return void process.kill(this.#one(), 'SIGKILL');
    await this.#running.stop();
    await sleep(ms);
    this.#running = await startGateway({ env: this.#env });
  }

  async pauseFor(ms: number): Promise<void> {
    const pid = this.#isSeveral ? this.#one() : this.#running.pid;
    process.kill(pid, 'SIGSTOP');
    await sleep(ms);
    process.kill(pid, 'SIGCONT');
  }

  get #isSeveral(): boolean {
    return 'WORKERS' in this.#env;
  }

  /** One of the processes that its first one has started. */
  #one(): number {
    const { pid } = this.#running;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    return Number(children[Math.floor(Math.random() * children.length)]);
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.#running.stop();
  }
}
