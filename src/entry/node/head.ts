import type { IncomingMessage } from 'node:http';
import type { Bindings } from '../../http/bindings.ts';

const HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

/** Paths that URL parsers leave as they are. */
const PLAIN_TARGET = /^\/(?!\/)(?:(?!\/\.{1,2}(?:[/?]|$))[^\\?#%])*(?:\?|$)/;

/**
 * Looks at the head before any URL is made of it. What fails is refused by the app itself, so that the answer and the
 * log line are like all others; the request is given a harmless URL for that.
 */
export function bindingsOf(incoming: IncomingMessage): Pick<Bindings, 'target' | 'refused'> {
  const hosts = hostsOf(incoming.rawHeaders);
  const host = hosts[0] ?? '';
  const target = originForm(incoming.url ?? '', host);
  const isRefused = hosts.length !== 1 || !isHost(host) || target === undefined;
  if (isRefused) incoming.headers.host = 'invalid';
  incoming.url = isRefused || !PLAIN_TARGET.test(target) ? '/' : target;
  return { target: target ?? '/', ...(isRefused && { refused: 'bad_request' }) };
}

/** Also for a URL's parser, which knows more numbers that are none. */
const isHost = (host: string) => HOST.test(host) && URL.canParse(`http://${host}`);

function hostsOf(rawHeaders: readonly string[]): string[] {
  const hosts: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts.push(rawHeaders[at + 1] ?? '');
  }
  return hosts;
}

/** RFC 9112 section 3.2: an absolute target is fine as long as it names the same host as `Host`. */
function originForm(target: string, host: string): string | undefined {
  if (target.startsWith('/')) return target;
  const [, authority, rest = '/'] = /^https?:\/\/([^/?#]+)(\/.*)?$/i.exec(target) ?? [];
  return authority?.toLowerCase() === host.toLowerCase() ? rest : undefined;
}
