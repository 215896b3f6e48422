import { availableParallelism } from 'node:os';
import * as z from 'zod/mini';
import {
  type ConfigProblem,
  integerVariable,
  namesIn,
  plainText,
  problemIf,
  readAs,
  readVariables,
  textsIn,
} from '../../config.ts';
import type { Variables } from '../../config.ts';
import { A_SECRET } from '../../core/secrets.ts';
import { expectedStoreAddress, storeAddressOf } from './redis/address.ts';
import { readTls, type Side, SIDES, type TlsFiles } from './certificates.ts';

const ONE_PROCESS =
  '1, or auto on one core: several processes on one port come with a later version, and until then several instances ' +
  'share a store by STORE_URL';

const workers = readAs(ONE_PROCESS, (text) =>
  text === '1' || (text === 'auto' && availableParallelism() === 1) ? 1 : undefined,
);

/** A path. What is in the file is looked at by `readTls`. */
const file = z.optional(z.string('the path of a file'));

/** As curl has it, the scheme may be left out. */
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
  /** That of the store that instances share. */
  storeUrl: z.optional(readAs(expectedStoreAddress, storeAddressOf)),
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
  noProxy: z._default(plainText, ''),
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
    ...('problems' in read ? read.problems : []),
    ...conflictsIn(given),
    ...SIDES.flatMap((side) => withoutTls(side, files[side], given)),
    ...SIDES.flatMap((side) => readTls(side, files[side]).problems ?? []),
  ];
  return 'data' in read && problems.length === 0 ? { data: { ...read.data, files } } : { problems };
}

/** Problems that depend on two variables. */
function conflictsIn(given: Variables): ConfigProblem[] {
  const lacks = (name: string) => given[name] === undefined;
  return problemIf(!lacks('STORE_URL') && lacks('SECRETS'), 'SECRETS', `${A_SECRET}, since STORE_URL is set`);
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
  const paths = ['CA', 'CERT', 'KEY'].map((kind) => given[`${side}_${kind}_FILE`]);
  if (paths.some((path) => path !== undefined && typeof path !== 'string')) return {}; // that is said already
  const [ca, cert, key] = paths as (string | undefined)[];
  return { ca, cert, key };
}

/** The address of each side, and how one without TLS begins. Where there is no upstream the sandbox is, which needs nothing. */
const ADDRESSES = {
  UPSTREAM: { variable: 'UPSTREAM_BASE_URL', isPlain: /^http:/i, scheme: 'https' },
  STORE: { variable: 'STORE_URL', isPlain: /^(?!rediss)/, scheme: 'rediss' },
} as const;

/** Files that a side without TLS would leave aside. A proxy with TLS is trusted by the upstream's. */
function withoutTls(side: Side, files: TlsFiles, given: Variables): readonly ConfigProblem[] {
  const { variable, isPlain, scheme } = ADDRESSES[side];
  const isOfProxy = side === 'UPSTREAM' && /^https:/i.test(String(proxiesIn(given)['HTTP_PROXY']));
  const { ca, ...shown } = files;
  const used = isOfProxy ? shown : { ca, ...shown };
  const [kind] = Object.entries(used).flatMap(([name, path]) => (path === undefined ? [] : name.toUpperCase()));
  if (kind === undefined || !isPlain.test(String(given[variable]))) return [];
  return [{ variable, expected: `one with TLS, ${scheme}…, since ${side}_${kind}_FILE is set` }];
}
