import { allOperations } from '../../test/support/account-api.ts';
import { LOAD_CORE, node, type Server, start } from './servers.ts';

const cacheable = allOperations.filter(({ cache }) => cache).map(({ id }) => id);
const policy = (of: object | false) => JSON.stringify(Object.fromEntries(cacheable.map((id) => [id, of])));

/** Nothing goes stale while it is measured. */
export const ALL_KEPT = { CACHE_POLICY: policy({ fresh: 3_600 }) };
/** Every read is a cold one. */
export const NOTHING_KEPT = { CACHE_POLICY: policy(false) };

/** Access log, metrics and limits as in service. */
export const startGateway = (upstream: Server, more: Readonly<Record<string, string>>): Promise<Server> => {
  const env = {
    UPSTREAM_BASE_URL: upstream.url,
    ADMIN_PORT: '0',
    RATE_LIMIT_PER_MINUTE: '1000000000', // counted, and never reached
    ...more,
  };
  return start({ command: node('src/entry/node.ts'), env });
};

/** A file of `bench/contenders`. */
export const startContender = (name: string, upstream?: Server): Promise<Server> =>
  start({ command: node(`bench/contenders/${name}.ts`), env: { UPSTREAM: upstream?.url ?? '' } });

export const startUpstream = (): Promise<Server> =>
  start({ command: node('bench/contenders/json-upstream.ts'), core: LOAD_CORE });
