import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Kind, startBalancer } from '../../support/balancers.ts';
import { Instance, type Variables } from './gateways.ts';

/** What clients talk to, and the gateways behind it. */
export interface Front {
  readonly url: string;
  /** Of one gateway after the other; resolves where the new one is asked. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const compose = readFileSync(join(import.meta.dirname, '../../../compose.yaml'), 'utf8');
const [, DELAY_MS = '3000'] = /SHUTDOWN_DELAY_MS: .*?(\d+)/.exec(compose) ?? [];

export async function startFront(kind: Kind, env: Variables): Promise<Front> {
  const common = { SHUTDOWN_DELAY_MS: DELAY_MS, ...env };
  const instances = await Promise.all([Instance.start(common), Instance.start(common)]);
  const balancer = await startBalancer(
    kind,
    instances.map(({ port }) => `127.0.0.1:${port}`),
  );
  let turn = 0;
  return {
    url: balancer.url,
    restart: async () => instances[turn++ % instances.length]?.restart(),
    async stop() {
      await balancer.stop();
      await Promise.all(instances.map((one) => one.stop()));
    },
  };
}
