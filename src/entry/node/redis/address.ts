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

export const A_STORE =
  'redis://user:password@host:6379/0 or redis-sentinel://user:password@host:26379,…/primary/0, with TLS rediss or ' +
  'rediss-sentinel; user and password percent-encoded where they are not plain';

const ADDRESS =
  /^redis(?<tls>s?)(?<sentinel>-sentinel)?:\/\/(?:(?<login>[^/?#@,]*)@)?(?<nodes>[^/?#@]+)(?:\/(?<path>[\w./-]*))?$/;
const PATH = { one: /^(?<db>\d{0,4})$/, sentinel: /^(?<master>[\w.-]+)(?:\/(?<db>\d{0,4}))?$/ };
const NODE = /^(?<host>\[[0-9a-f:.]+\]|[\w.-]+)(?::(?<port>\d{1,5}))?$/i;

/** Undefined if the text is no such address. */
export function storeAddressOf(text: string): StoreAddress | undefined {
  const parts: Partial<Record<string, string>> = ADDRESS.exec(text)?.groups ?? {};
  const kind = parts['sentinel'] === undefined ? 'one' : 'sentinel';
  const path = PATH[kind].exec(parts['path'] ?? '')?.groups;
  const login = loginOf(parts['login'] ?? '');
  const nodes = parts['nodes']?.split(',').map((node) => nodeOf(node, kind === 'one' ? 6379 : 26_379));
  if (!path || !login || !nodes?.every((node) => node !== undefined)) return undefined;
  if (kind === 'one' && nodes.length > 1) return undefined;
  return { kind, tls: parts['tls'] === 's', ...login, nodes, master: path['master'], db: Number(path['db'] ?? 0) };
}

function nodeOf(text: string, otherwise: number): StoreNode | undefined {
  const { host, port: given }: Partial<Record<string, string>> = NODE.exec(text)?.groups ?? {};
  const port = Number(given ?? otherwise);
  return host !== undefined && port > 0 && port < 65_536 ? { host: host.replace(/^\[|\]$/g, ''), port } : undefined;
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
