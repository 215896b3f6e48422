import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../support/client.ts';
import { SECRET } from '../support/gateways.ts';
import { atExit, type Running, startGateway } from '../support/processes.ts';
import { freePort } from '../../../scripts/free-port.ts';

const REQUEST_TIMEOUT_MS = 2_000;

const CONNECTIONS = 64;
/** An instance that comes back on the same port. */
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

  static async open(upstream: string, storeUrl: string): Promise<ChaosGateway> {
    const env = {
      PORT: String(await freePort()),
      ADMIN_PORT: '0',
      RATE_LIMIT_PER_MINUTE: '0',
      REQUEST_TIMEOUT_MS: String(REQUEST_TIMEOUT_MS),
      UPSTREAM_TIMEOUT_MS: '1000',
      UPSTREAM_BASE_URL: upstream,
      STORE_URL: storeUrl,
      SECRETS: SECRET,
    };
    return new ChaosGateway(await startGateway({ env }), env);
  }

  async killFor(ms: number): Promise<void> {
    await this.#running.stop();
    await sleep(ms);
    this.#running = await startGateway({ env: this.#env });
  }

  async pauseFor(ms: number): Promise<void> {
    this.#running.signal('SIGSTOP');
    await sleep(ms);
    this.#running.signal('SIGCONT');
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.#running.stop();
  }
}
