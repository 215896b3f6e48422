import type { Tls } from '../certificates.ts';

export interface StoreNode {
  readonly host: string;
  readonly port: number;
}

/** The address of the store that instances share, and how its nodes are reached. */
export interface StoreAddress {
  readonly kind: 'one' | 'sentinel';
  readonly tls: boolean;
  /** The login for the nodes, and for sentinels that ask for one. */
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** The node, or the sentinels. */
  readonly nodes: readonly StoreNode[];
  /** The name that the sentinels have for it. */
  readonly master?: string | undefined;
  readonly db: number;
  /** What secures connections where there is TLS. */
  readonly secured?: Tls | undefined;
  /** Milliseconds. A node that owes a reply for longer than `socketTimeout` is disconnected. */
  readonly timeouts?: { readonly connectTimeout: number; readonly socketTimeout: number };
}

const ADDRESS =
  /^redis(?<tls>s?)(?:-(?<kind>sentinel))?:\/\/(?:(?<login>[^/?#@]*)@)?(?<nodes>[^/?#@]*)(?<path>\/[^?#@]*)?(?<rest>.*)$/s;
const NODE = /^(?<host>\[[0-9a-f:.]+\]|[\w.-]+)(?::(?<port>\d{1,5}))?$/i;
const HAS_HOST = /^(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::|$)/i;
const PATHS = {
  one: /^\/?(?<db>\d{0,4})$/,
  sentinel: /^\/(?<master>[\w.-]+)(?:\/(?<db>\d{0,4}))?$/,
};

const EXPECTED = {
  scheme: 'a URL whose scheme is redis or redis-sentinel, or with TLS rediss or rediss-sentinel',
  login: 'a URL whose user and password are percent-encoded where they are not plain',
  query: 'a URL without a query',
  fragment: 'a URL without a fragment',
  host: 'a URL whose hosts are names or IP addresses',
  port: 'a URL whose ports are integers from 1 to 65535',
  oneHost: 'a URL with one host; for several sentinels there is redis-sentinel',
  path: {
    one: 'a URL whose path is nothing, or the number of a database such as /1',
    sentinel: 'a URL whose path is the name that the sentinels have for the store, such as /primary or /primary/1',
  },
};

/** Undefined if the text is no such address. */
export function storeAddressOf(text: string): StoreAddress | undefined {
  const read = readAddress(text);
  return typeof read === 'string' ? undefined : read;
}

/** What was expected instead, and of which part, where the text is no such address. */
export function expectedStoreAddress(text: string): string {
  const read = readAddress(text);
  return typeof read === 'string' ? read : '';
}

/** The address, or what was expected. */
function readAddress(text: string): StoreAddress | string {
  const parts = ADDRESS.exec(text)?.groups;
  if (!parts) return EXPECTED.scheme;
  const kind = (parts['kind'] ?? 'one') as StoreAddress['kind'];
  const login = loginOf(parts['login'] ?? '');
  const rest = parts['rest'] ?? '';
  if (!login || rest.includes('@')) return EXPECTED.login;
  if (rest !== '') return rest.startsWith('?') ? EXPECTED.query : EXPECTED.fragment;
  const nodes = nodesOf(parts['nodes'] ?? '', kind);
  if (typeof nodes === 'string') return nodes;
  const path = PATHS[kind].exec(parts['path'] ?? '')?.groups;
  if (!path) return EXPECTED.path[kind];
  return { kind, tls: parts['tls'] === 's', ...login, nodes, master: path['master'], db: Number(path['db'] ?? 0) };
}

function nodesOf(text: string, kind: StoreAddress['kind']): StoreAddress['nodes'] | string {
  const texts = text.split(',');
  if (!texts.every((node) => HAS_HOST.test(node))) return EXPECTED.host;
  if (kind === 'one' && texts.length > 1) return EXPECTED.oneHost;
  const nodes = texts.map((node) => {
    const { host, port }: Partial<Record<string, string>> = NODE.exec(node)?.groups ?? { port: '0' };
    return { host: host?.replace(/^\[|\]$/g, '') ?? '', port: Number(port ?? (kind === 'sentinel' ? 26_379 : 6379)) };
  });
  return nodes.every(({ port }) => port > 0 && port < 65_536) ? nodes : EXPECTED.port;
}

function loginOf(text: string): Pick<StoreAddress, 'user' | 'password'> | undefined {
  const [name = '', ...rest] = text.split(':');
  try {
    const user = decodeURIComponent(name);
    const password = decodeURIComponent(rest.join(':'));
    return text.includes(',') ? undefined : { ...(user && { user }), ...((password || user) && { password }) };
  } catch {
    return undefined;
  }
}
