import { availableParallelism } from 'node:os';
import * as z from 'zod/mini';
import {
  A_SECRET,
  integerVariable,
  namesIn,
  problemIf,
  readAs,
  readVariables,
  textsIn,
  type Variables,
} from '../../config.ts';
import { noProxy } from './no-proxy.ts';
import { A_STORE, storeAddressOf } from './redis/address.ts';
import { type Read, readTls, type Tls } from './certificates.ts';

/** `SO_REUSEPORT` lets several processes listen on a port, but spreads the connections over them on some systems only. */
const mostWorkers = process.platform === 'darwin' || process.platform === 'win32' ? 1 : 64;

const expectedWorkers =
  mostWorkers === 1
    ? '1, or auto, which is the same here: on this system several processes cannot share a port'
    : `an integer from 1 to ${mostWorkers}, or auto for one a core`;

const workers = readAs(expectedWorkers, (text) => {
  if (text === 'auto') return Math.min(availableParallelism(), mostWorkers);
  return /^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= mostWorkers ? Number(text) : undefined;
});

/** A path. What is in the file is looked at by `readTls`. */
const file = z.optional(z.string('the path of a file'));

/** The scheme may be left out, as curl allows it. */
const proxy = z.optional(
  readAs('the http:// or https:// URL of a proxy, such as http://proxy.example:3128', (text) => {
    const url = URL.parse(text.includes('://') ? text : `http://${text}`);
    const isOne = url && /^https?:$/.test(url.protocol) && url.pathname === '/' && url.search + url.hash === '';
    return isOne && [url.username, url.password].every(isDecodable) ? url : undefined;
  }),
);

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** What only a process is told, and a Worker is not. */
const variables = z.object({
  workers: z._default(workers, 1),
  /** The address of the store that instances share. */
  storeUrl: z.optional(readAs(A_STORE, storeAddressOf)),
  shutdownDelayMs: integerVariable(0, 600_000, 0),
  upstreamCaFile: file,
  upstreamCertFile: file,
  upstreamKeyFile: file,
  storeCaFile: file,
  storeCertFile: file,
  storeKeyFile: file,
  httpsProxy: proxy,
  httpProxy: proxy,
  noProxy,
});

export interface Settings extends z.output<typeof variables> {
  readonly upstreamTls: Tls;
  readonly storeTls: Tls;
}

export const SETTINGS: readonly string[] = namesIn(variables);

/** Durations in milliseconds, as named in `contract.md` section 1. */
export function settingsIn(record: Variables): Read<Settings> {
  const given = textsIn(record);
  // The names of proxies may be written small, as everywhere, and those then count.
  const proxies = PROXIES.map((name) => [name, given[name.toLowerCase()] ?? given[name]] as const);
  const read = readVariables(variables, { ...given, ...Object.fromEntries<unknown>(proxies) });
  const [upstream, store] = [readTls('UPSTREAM', given), readTls('STORE', given)];
  const lacksSecrets = given['STORE_URL'] !== undefined && given['SECRETS'] === undefined;
  const problems = [
    ...[read, upstream, store].flatMap((one) => ('problems' in one ? one.problems : [])),
    ...problemIf(lacksSecrets, 'SECRETS', `${A_SECRET}, since STORE_URL is set`),
  ];
  if ('data' in read && 'data' in upstream && 'data' in store && problems.length === 0)
    return { data: { ...read.data, upstreamTls: upstream.data, storeTls: store.data } };
  return { problems };
}

/** The proxy of an upstream, if there is one. That of the other scheme is not its own. */
export function proxyTo(upstream: URL, settings: Settings): { readonly proxy: URL | undefined } {
  const proxyOf = upstream.protocol === 'https:' ? settings.httpsProxy : settings.httpProxy;
  return { proxy: settings.noProxy(upstream) ? undefined : proxyOf };
}

const PROXIES = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'];
