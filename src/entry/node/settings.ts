import { availableParallelism } from 'node:os';
import * as z from 'zod/mini';
import { type ConfigProblem, integerVariable, namesIn, readAs, readVariables, textsIn } from '../../config.ts';
import type { Variables } from '../../config.ts';
import { readTls, type Side, SIDES, type TlsFiles } from './certificates.ts';

const MOST_WORKERS = 256;

const workers = readAs(`an integer from 1 to ${MOST_WORKERS}, or auto`, (text) => {
  const count =
    text === 'auto' ? Math.min(MOST_WORKERS, availableParallelism()) : /^\d+$/.test(text) ? Number(text) : 0;
  return count >= 1 && count <= MOST_WORKERS ? count : undefined;
});

/** A path. What is in the file is looked at by `readTls`. */
const file = z.optional(z.string());

/** As curl has it, the scheme may be left out. */
const proxy = z.optional(
  readAs('the http:// or https:// URL of a proxy, such as http://proxy.example:3128', (text) => {
    const url = URL.parse(text.includes('://') ? text : `http://${text}`);
    return url && /^https?:$/.test(url.protocol) && url.pathname === '/' && url.search + url.hash === ''
      ? url
      : undefined;
  }),
);

/** What only a process is told, and a Worker is not. */
const variables = z.object({
  /** Processes on one port. */
  workers: z._default(workers, 1),
  shutdownDelayMs: integerVariable(0, 600_000, 0),
  /** For how long an idle connection of a client is kept. */
  keepAliveMs: integerVariable(1_000, 3_600_000, 65_000),
  upstreamCaFile: file,
  upstreamCertFile: file,
  upstreamKeyFile: file,
  storeCaFile: file,
  storeCertFile: file,
  storeKeyFile: file,
  httpsProxy: proxy,
  httpProxy: proxy,
  noProxy: z._default(z.string(), ''),
});

export interface Settings extends z.output<typeof variables> {
  readonly files: Readonly<Record<Side, TlsFiles>>;
}

export const SETTINGS: readonly string[] = namesIn(variables);

/** Durations in milliseconds, as named in `contract.md` section 1. */
export function settingsIn(
  record: Variables,
): { readonly data: Settings } | { readonly problems: readonly ConfigProblem[] } {
  const given = textsIn(record);
  const read = readVariables(variables, { ...given, ...proxiesIn(given) });
  const files = { UPSTREAM: filesIn(given, 'UPSTREAM'), STORE: filesIn(given, 'STORE') };
  const problems = [
    ...('problems' in read ? read.problems : withoutStore(read.data.workers, given)),
    ...withoutTls(files.STORE, given),
    ...SIDES.flatMap((side) => readTls(side, files[side]).problems ?? []),
  ];
  return 'data' in read && problems.length === 0 ? { data: { ...read.data, files } } : { problems };
}

/** The proxy of an upstream. That of the other scheme is not its own. */
export const proxyTo = ({ protocol }: URL, { httpsProxy, httpProxy, noProxy }: Settings) => ({
  proxy: protocol === 'https:' ? httpsProxy : httpProxy,
  noProxy,
});

/** Everywhere they may be written small, which then counts. */
const proxiesIn = (given: Variables): Variables =>
  Object.fromEntries(PROXIES.map((name) => [name, given[name.toLowerCase()] ?? given[name]]));

const PROXIES = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'];

function filesIn(given: Variables, side: Side): TlsFiles {
  const path = (name: string) => {
    const text = given[name];
    return typeof text === 'string' ? text : undefined;
  };
  return { ca: path(`${side}_CA_FILE`), cert: path(`${side}_CERT_FILE`), key: path(`${side}_KEY_FILE`) };
}

function withoutStore(count: number, given: Variables): readonly ConfigProblem[] {
  if (count === 1 || given['STORE_URL'] !== undefined) return [];
  return [{ variable: 'STORE_URL', expected: `a store for ${count} workers to share` }];
}

/** Files that a store without TLS would leave aside. */
function withoutTls(files: TlsFiles, given: Variables): readonly ConfigProblem[] {
  const [kind] = Object.entries(files).flatMap(([name, path]) => (path === undefined ? [] : name.toUpperCase()));
  if (kind === undefined || String(given['STORE_URL']).startsWith('rediss')) return [];
  return [{ variable: 'STORE_URL', expected: `one with TLS, rediss…, since STORE_${kind}_FILE is set` }];
}
