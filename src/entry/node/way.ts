import { type buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';
import type { Config } from '../../config.ts';
import type { Tls } from './certificates.ts';

export type Bounds = Pick<Config, 'upstreamMaxConnections' | 'upstreamTimeoutMs'>;

/** How the upstream is reached. */
export interface Way {
  readonly tls?: Tls;
  /** The proxy for the upstream's scheme, if there is one. */
  readonly proxy?: URL | undefined;
  /** Hosts, each with all below it, that are reached without. */
  readonly noProxy?: string;
}

/** Undici's pool, or its agent where there is a proxy. */
export function dispatcherTo({ origin }: URL, bounds: Bounds, { tls = {}, proxy, noProxy = '' }: Way): Dispatcher {
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
  const { secureContext, trusting } = tls;
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
    clientFactory: (url, own) => new Pool(url, { ...own, headersTimeout: timeoutMs }),
    factory: (to, own: Pool.Options) => new Pool(to, { ...own, ...options }),
  });
}
