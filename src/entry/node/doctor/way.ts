import { type Side, WatchedTls } from '../certificates.ts';
import { pinoLogger } from '../logger.ts';
import { proxyTo, type Settings } from '../settings.ts';
import { refuse } from '../variables.ts';
import type { Way } from '../way.ts';
import { hostIn } from './name.ts';

/** What TLS goes by on that side, as for the gateway. */
export const tlsOf = (side: Side, { files }: Settings): WatchedTls =>
  new WatchedTls(side, files[side], { logger: pinoLogger('silent'), refuse });

export const wayTo = (upstream: URL, settings: Settings): Way => ({
  tls: tlsOf('UPSTREAM', settings),
  ...proxyTo(upstream, settings),
});

/** The proxy by which the upstream is reached, if any: it looks up the name, and makes the connection. */
export function proxyIn({ proxy, noProxy = '' }: Way, upstream: URL): URL | undefined {
  const host = hostIn(upstream);
  const excepted = noProxy.split(/[\s,]+/).map((name) => name.replace(/^\*?\./, ''));
  const isExcepted = excepted.some(
    (name) => name === '*' || name === host || (name !== '' && host.endsWith(`.${name}`)),
  );
  return isExcepted ? undefined : proxy;
}
