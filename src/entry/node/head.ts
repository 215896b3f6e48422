import type { IncomingMessage } from 'node:http';
import type { Bindings } from '../../http/bindings.ts';

const HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

/** Paths that URL parsers leave as they are. */
const PLAIN_TARGET = /^\/(?!\/)(?:(?!\/\.{1,2}(?:[/?]|$))[^\\?#%])*(?:\?|$)/;

/** No client has so many; Node's own limit, far above, would leave out what is beyond it. */
const MAX_HEADERS = 256;

/**
 * Looks at the head before any URL is made of it. What fails is refused by the app itself, so that the answer and the
 * log line are like all others; the request is given a harmless URL for that.
 */
export function bindingsOf(incoming: IncomingMessage): Pick<Bindings, 'refused'> & Required<Pick<Bindings, 'target'>> {
  const { rawHeaders } = incoming;
  const hosts = valuesOf('host', rawHeaders);
  const host = hosts[0] ?? '';
  const target = originForm(incoming.url ?? '', host);
  const refused = refusalOf({ incoming, isHostGood: hosts.length === 1 && isHost(host), target });
  if (refused) incoming.headers.host = 'invalid';
  incoming.url = refused || target === undefined || !PLAIN_TARGET.test(target) ? '/' : target;
  return { target: target ?? '/', ...(refused && { refused }) };
}

interface Looked {
  readonly incoming: IncomingMessage;
  readonly isHostGood: boolean;
  readonly target: string | undefined;
}

function refusalOf({ incoming, isHostGood, target }: Looked): Bindings['refused'] {
  if (incoming.rawHeaders.length > 2 * MAX_HEADERS) return 'request_header_fields_too_large';
  return isHostGood && target !== undefined && !isMisframed(incoming) ? undefined : 'bad_request';
}

/**
 * Whether others may see its end elsewhere. Node's parser refuses most of these; it takes HTTP/0.9 and HTTP/2.0, codings
 * in front of `chunked`, and any at all from a client of HTTP/1.0 (RFC 9112 section 6.1 wants that connection closed).
 */
export function isMisframed({ rawHeaders, httpVersionMajor, httpVersionMinor }: IncomingMessage): boolean {
  if (httpVersionMajor !== 1) return true;
  const codings = valuesOf('transfer-encoding', rawHeaders);
  if (codings.length === 0) return false;
  return httpVersionMinor === 0 || codings.length > 1 || codings[0]?.toLowerCase() !== 'chunked';
}

/** Also for a URL's parser, which knows more numbers that are none. */
const isHost = (host: string) => HOST.test(host) && URL.canParse(`http://${host}`);

function valuesOf(wanted: string, rawHeaders: readonly string[]): string[] {
  const values: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === wanted.length && name.toLowerCase() === wanted) values.push(rawHeaders[at + 1] ?? '');
  }
  return values;
}

/** RFC 9112 section 3.2: an absolute target is fine as long as it names the same host as `Host`. */
function originForm(target: string, host: string): string | undefined {
  if (target.startsWith('/')) return target;
  const [, authority, rest = '/'] = /^https?:\/\/([^/?#]+)(\/.*)?$/i.exec(target) ?? [];
  return authority?.toLowerCase() === host.toLowerCase() ? rest : undefined;
}
