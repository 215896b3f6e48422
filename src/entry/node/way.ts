import { type buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';
import type { Config } from '../../config.ts';
import type { WatchedTls } from './certificates.ts';

export type Bounds = Pick<Config, 'upstreamMaxConnections' | 'upstreamTimeoutMs'>;

/** How the upstream is reached. */
export interface Way {
  readonly tls?: WatchedTls | undefined;
  /** Its proxy, if there is one for its scheme. */
  readonly proxy?: URL | undefined;
  /** Hosts, each with all below it, that are reached without. */
  readonly noProxy?: string;
}

/** Undici's pool, or its agent where there is a proxy, with what the files hold now. */
export function dispatcherTo({ origin }: URL, bounds: Bounds, { tls, proxy, noProxy = '' }: Way): Dispatcher {
  const { upstreamMaxConnections: connections, upstreamTimeoutMs: timeoutMs } = bounds;
  const options = {
    connections,
    pipelining: 1,
    allowH2: false,
    // The attempt's signal spans the whole exchange; undici's own timers restart with each byte.
    headersTimeout: 0,
    bodyTimeout: 0,
    connectTimeout: timeoutMs,
  };
  const { secureContext, trusting } = tls ?? {};
  const connect = secureContext && { secureContext };
  if (!proxy) return new Pool(origin, { ...options, ...(connect && { connect }) });
  return new EnvHttpProxyAgent({
    ...options,
    ...(connect && { connect }),
    httpProxy: proxy.href,
    httpsProxy: '', // then it is the other one
    noProxy,
    requestTls: { ...connect, allowH2: false } as buildConnector.BuildOptions,
    proxyTls: { ...(trusting && { secureContext: trusting }), allowH2: false } as buildConnector.BuildOptions,
    // What it does not answer to a CONNECT in that time is not waited for: its place is needed.
    clientFactory: (url, own) => new Tunnels(url, toProxy({ ...own, headersTimeout: timeoutMs })),
    factory: (to, own: Pool.Options) =>
      new Pool(to, new URL(to).origin === origin ? own : toProxy({ ...own, ...options })),
  });
}

/** What fails on the way to the proxy says so. */
function toProxy(options: Pool.Options): Pool.Options {
  const { connect } = options;
  if (typeof connect !== 'function') return options;
  const marking: buildConnector.connector = (at, callback) =>
    connect(at, (...result) => {
      const [error, socket] = result;
      return error ? callback(ofProxy(error), null) : callback(null, socket);
    });
  return { ...options, connect: marking };
}

/** Makes tunnels. What fails of a CONNECT says so too: nothing else has been asked yet. */
class Tunnels extends Pool {
  override connect = ((options: Dispatcher.ConnectOptions) =>
    super.connect(options).catch((error: Error) => {
      throw ofProxy(error);
    })) as Pool['connect'];
}

/** A failure of the proxy, or of the way to it. Its code is that of what has failed, or the proxy's status, behind `PROXY_`. */
export class ProxyError extends Error {
  readonly code: string;

  constructor(code: string, cause: Error) {
    super('the proxy has failed', { cause });
    this.code = `PROXY_${code}`;
  }
}

const ofProxy = (error: Error & { code?: string }) =>
  error instanceof ProxyError ? error : new ProxyError(error.code ?? 'UNKNOWN', error);

/** How undici says that a proxy has refused: the upstream has not seen the request. */
const REFUSED = /^Proxy (?:response|Authentication Required) \((\d{3})\)/;

/** A failure as one of the proxy if it is. */
export function told(error: Error): Error {
  const status = REFUSED.exec(error.message)?.[1];
  return status === undefined ? error : new ProxyError(status, error);
}
