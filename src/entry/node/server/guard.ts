import type { Socket } from 'node:net';
import type { ErrorCode } from '../../../core/errors.ts';
import { canonical, hostAt } from './address.ts';
import type { Answer } from './traffic.ts';

/** More than any client sends. Beyond its own, higher limit Node drops headers silently. */
export const MAX_HEADERS = 256;

/** How large a head may be, with its separators and line ends. Node reads more than that, so that the refusal can be one of ours. */
const MAX_BYTES = 16_384;

const ABSOLUTE = /^https?:\/\/([^/?#]+)(\/.*)?$/i;
const SIMPLE_PATH = /^[A-Za-z0-9/._~!$&'()*+,;=:@-]*$/;
const DOT_SEGMENT = /\/\.\.?(?:\/|$)/;

/** Why a request is refused before the app sees it; undefined if it is not. */
export function refusalOf(answer: Answer): ErrorCode | undefined {
  const { rawHeaders, headers, method = '', url = '', httpVersionMajor, httpVersionMinor, socket } = answer.req;
  const { 'transfer-encoding': coding } = headers;
  // A proxy may see the end of the request elsewhere. Node's parser refuses most of these, but accepts HTTP/0.9 and HTTP/2.0,
  // codings in front of `chunked`, and any coding at all from a client of HTTP/1.0 (RFC 9112, section 6.1).
  const isFramed = coding === undefined || (httpVersionMinor > 0 && coding.toLowerCase() === 'chunked');
  const isGood = isFramed && httpVersionMajor === 1;
  if (!isGood) answer.closeAfter();
  let size = method.length + url.length + ' '.length + ' HTTP/1.1\r\n\r\n'.length + 2 * rawHeaders.length;
  for (const text of rawHeaders) size += text.length;
  if (rawHeaders.length > 2 * MAX_HEADERS || size > MAX_BYTES) return 'request_header_fields_too_large';
  if (!isGood) return 'bad_request';
  const [, authority, rest = '/'] = url.startsWith('/') ? [] : (ABSOLUTE.exec(url) ?? []);
  if (httpVersionMinor === 0) {
    answer.useChunkedEncodingByDefault = false; // Node would send chunks where there is a `TE` (RFC 9112, section 6.1)
    if (headers.host === undefined && authority === undefined && headers.origin !== undefined) return 'origin_rejected';
    // So HAProxy's plain `option httpchk` asks whether an instance is ready.
    if (headers.host === undefined && method === 'OPTIONS' && url === '/')
      Object.assign(answer.req, { method: 'GET', url: '/readyz' });
    headers.host ??= authority ?? hostOf(socket);
  }
  const { host = '' } = headers;
  if (!isGoodHost(host)) return 'bad_request';
  let target = url;
  if (!url.startsWith('/')) {
    if (authority?.toLowerCase() !== host.toLowerCase()) return 'bad_request'; // RFC 9112, section 3.2
    answer.req.url = target = rest; // of an absolute one the adapter would make another
  }
  // A URL parser resolves dot segments, encoded ones too, turns backslashes round, and ends a path at a `#`.
  const [path = ''] = target.split('?', 1);
  const isKept = SIMPLE_PATH.test(path)
    ? !DOT_SEGMENT.test(path)
    : URL.parse(`http://portico${path}`)?.pathname === path;
  return isKept ? undefined : 'unknown_endpoint';
}

/** Where the client has connected, in place of a host that it does not name. No `Origin` is compared with that. */
function hostOf({ localAddress, localPort = 0 }: Socket): string {
  return hostAt(canonical(localAddress) ?? 'localhost', localPort);
}

const HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

/** Most requests in a row are for the same host. */
let last = { host: '', isGood: false };

/** A host is bad, too, where a URL parser writes it in another way. Two `Host` headers, which Node joins, are a bad one. */
function isGoodHost(host: string): boolean {
  if (host === last.host) return last.isGood;
  const name = host.replace(/:\d+$/, '').toLowerCase();
  last = { host, isGood: HOST.test(host) && URL.parse(`http://${host}`)?.hostname === name };
  return last.isGood;
}
