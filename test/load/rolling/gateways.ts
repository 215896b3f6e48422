import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../../scripts/free-port.ts';
import { SECRET } from '../support/gateways.ts';
import { scrape } from '../support/metrics.ts';
import { startGateway } from '../support/processes.ts';

const LOOK_MS = 20;
/** A step of a restart that takes longer never ends. */
const STEP_MS = 60_000;

export type Variables = Readonly<Record<string, string>>;

/** Resolves where it is so. */
async function until(isSo: () => Promise<boolean>, what: string): Promise<void> {
  const endAt = performance.now() + STEP_MS;
  while (!(await isSo())) {
    if (performance.now() > endAt) throw new Error(`waited for too long until ${what}`);
    await sleep(LOOK_MS);
  }
}

const COMMON = { RATE_LIMIT_PER_MINUTE: '0', LOG_REQUESTS: 'failures', REQUEST_TIMEOUT_MS: '5000', SECRETS: SECRET };

/** One that is stopped, and started again on its port. */
export class Instance {
  readonly port: string;
  readonly #env: Variables;
  #running: Awaited<ReturnType<typeof startGateway>>;

  private constructor(running: Awaited<ReturnType<typeof startGateway>>, port: string, env: Variables) {
    [this.#running, this.port, this.#env] = [running, port, env];
  }

  static async start(env: Variables): Promise<Instance> {
    const port = String(await freePort());
    const all = { ...COMMON, PORT: port, ...env };
    return new Instance(await startGateway({ env: all }), port, all);
  }

  get admin(): string {
    return this.#running.admin;
  }

  async restart(): Promise<void> {
    const status = await this.#running.end();
    if (status !== 0) throw new Error(`a gateway ended with status ${status}`);
    this.#running = await startGateway({ env: this.#env });
    const isAsked = async () => (await scrape(this.admin)).sum('portico_requests_total') > 0;
    await until(isAsked, 'a new gateway is asked');
  }

  stop = () => this.#running.stop();
}
