import { randomBytes } from 'node:crypto';
import { allOperations } from '../../test/support/account-api.ts';
import { Metrics, scrape } from './metrics.ts';
import { startGateway } from './processes.ts';

export interface Gateways {
  readonly urls: readonly string[];
  /** The sum of all instances. */
  sum(name: string, label?: string): Promise<number>;
  stop(): Promise<void>;
}

interface Wanted {
  readonly upstream: string;
  readonly instances: number;
  readonly core: number;
  /** Of the store that they share; each has its own state without it. */
  readonly storeUrl?: string;
}

/** Of these processes only: with NODE_ENV=production none that is public is taken. */
export const SECRET = randomBytes(32).toString('base64');

/** Nothing goes stale while it is measured. */
export const POLICY = JSON.stringify(
  Object.fromEntries(allOperations.filter(({ cache }) => cache).map(({ id }) => [id, { fresh: 3_600 }])),
);

export async function startGateways({ upstream, instances, core, storeUrl }: Wanted): Promise<Gateways> {
  const all = await Promise.all(
    Array.from({ length: instances }, async () => {
      const env = {
        RATE_LIMIT_PER_MINUTE: '1000000000', // counted, and never reached
        UPSTREAM_BASE_URL: upstream,
        CACHE_POLICY: POLICY,
        ...(storeUrl !== undefined && { STORE_URL: storeUrl, SECRETS: SECRET }),
      };
      return startGateway({ env, core });
    }),
  );
  return {
    urls: all.map(({ url }) => url),
    async sum(name, label) {
      const metrics: readonly Metrics[] = await Promise.all(all.map(({ admin }) => scrape(admin)));
      return metrics.reduce((sum, one) => sum + one.sum(name, label), 0);
    },
    async stop() {
      await Promise.all(all.map((one) => one.stop()));
    },
  };
}
