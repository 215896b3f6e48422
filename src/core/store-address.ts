/** The address of the store that instances share. */
export interface StoreAddress {
  readonly kind: 'one' | 'sentinel' | 'cluster';
  readonly tls: boolean;
  /** For the data nodes; sentinels are used without a login. */
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** The node, or the sentinels, or some nodes of the cluster from which the others are found. */
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  /** The name that the sentinels have for it. */
  readonly master?: string | undefined;
  readonly db: number;
}

export const STORE_ADDRESS =
  'redis://[user:password@]host[:port][/db], redis-sentinel://[…@]host[:port],…/master[/db] or ' +
  'redis-cluster://[…@]host[:port],…, or the same with rediss; what is not plain in a user or password is percent-encoded';

const ADDRESS =
  /^redis(?<tls>s?)(?:-(?<kind>sentinel|cluster))?:\/\/(?:(?<login>[^/?#@,]*)@)?(?<nodes>[^/?#@]+)(?<path>\/[^?#]*)?$/;
const NODE = /^(?<host>\[[0-9a-f:.]+\]|[\w.-]+)(?::(?<port>\d{1,5}))?$/i;
const PATHS = {
  one: /^\/?(?<db>\d{0,4})$/,
  sentinel: /^\/(?<master>[\w.-]+)(?:\/(?<db>\d{0,4}))?$/,
  cluster: /^\/?(?<db>)$/,
};

/** Undefined if the text is no such address. */
export function storeAddressOf(text: string): StoreAddress | undefined {
  const parts = ADDRESS.exec(text)?.groups;
  if (!parts) return undefined;
  const kind = (parts['kind'] ?? 'one') as StoreAddress['kind'];
  const nodes = nodesOf(parts['nodes'] ?? '', kind === 'sentinel' ? 26_379 : 6379);
  const path = PATHS[kind].exec(parts['path'] ?? '')?.groups;
  const login = loginOf(parts['login'] ?? '');
  if (!nodes || !path || !login || (kind === 'one' && nodes.length > 1)) return undefined;
  return { kind, tls: parts['tls'] === 's', ...login, nodes, master: path['master'], db: Number(path['db'] ?? 0) };
}

function nodesOf(text: string, port: number): StoreAddress['nodes'] | undefined {
  const matches = text.split(',').map((node) => NODE.exec(node)?.groups);
  const nodes = matches.map((node) => ({
    host: node?.['host']?.replace(/^\[|\]$/g, '') ?? '',
    port: Number(node?.['port'] ?? port),
  }));
  return nodes.every((node) => node.host !== '' && node.port > 0 && node.port < 65_536) ? nodes : undefined;
}

function loginOf(text: string): Pick<StoreAddress, 'user' | 'password'> | undefined {
  const [name = '', ...rest] = text.split(':');
  try {
    const user = decodeURIComponent(name);
    const password = decodeURIComponent(rest.join(':'));
    return { ...(user && { user }), ...((password || user) && { password }) };
  } catch {
    return undefined;
  }
}
