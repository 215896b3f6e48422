import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { allOperations } from '../../test/support/account-api.ts';
import { LOAD_CORE, node, type Server, start } from './servers.ts';

const BUNDLE = 'dist/portico.mjs';
const SOURCE = 'src';

const cacheable = allOperations.filter(({ cache }) => cache).map(({ id }) => id);
const policy = (of: object | false) => JSON.stringify(Object.fromEntries(cacheable.map((id) => [id, of])));

/** Nothing goes stale while it is measured. */
export const ALL_KEPT = { CACHE_POLICY: policy({ fresh: 3_600 }) };
/** Every read is a cold one. */
export const NOTHING_KEPT = { CACHE_POLICY: policy(false) };

/** Access log, metrics and limits as in service. */
export const gatewayEnv = (upstream: string, more: Readonly<Record<string, string>> = ALL_KEPT) => ({
  UPSTREAM_BASE_URL: upstream,
  ADMIN_PORT: '0',
  RATE_LIMIT_PER_MINUTE: '1000000000', // counted, and never reached
  ...more,
});

export const fromSource = node('src/entry/node.ts');

export const startGateway = (upstream: Server, more?: Readonly<Record<string, string>>): Promise<Server> =>
  start({ command: fromSource, env: gatewayEnv(upstream.url, more) });

/** A file of `bench/contenders`. */
export const startContender = (name: string, upstream?: Server): Promise<Server> =>
  start({ command: node(`bench/contenders/${name}.ts`), env: { UPSTREAM: upstream?.url ?? '' } });

/** Answers after so many milliseconds. */
export const startUpstream = (delayMs = 0): Promise<Server> => {
  const command = node('bench/contenders/json-upstream.ts');
  return start({ command, env: { DELAY_MS: String(delayMs) }, core: LOAD_CORE });
};

/** As it is installed. Built where it is missing or older than a source. */
export function fromBundle(): readonly string[] {
  const [main = '', bundle = ''] = node(BUNDLE);
  const sources = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).map((name) => join(SOURCE, name));
  const newest = Math.max(...sources.map((path) => statSync(path).mtimeMs));
  if (!existsSync(bundle) || statSync(bundle).mtimeMs < newest)
    execFileSync(main, ['scripts/build.ts'], { stdio: 'pipe' });
  return [main, bundle];
}
