import { IncomingMessage } from 'node:http';
import type { ErrorCode } from '../../../core/errors.ts';

const HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

/** More than any client sends. Beyond its own, higher limit Node drops headers silently. */
const MAX_HEADERS = 256;

/** How large a head may be. Node reads more than that, so that the refusal can be one of ours. */
const MAX_BYTES = 16_384;

/** Why a request is refused before the app sees it; undefined if it is not. */
export function refusalOf(incoming: IncomingMessage): ErrorCode | undefined {
  const { rawHeaders, headers, url = '' } = incoming;
  if (rawHeaders.length > 2 * MAX_HEADERS || sizeOf(incoming) > MAX_BYTES) return 'request_header_fields_too_large';
  const { host = '' } = headers;
  const target = url.startsWith('/') ? url : originForm(url, host);
  if (!isGoodHost(host) || target === undefined || isMisframed(incoming)) return 'bad_request';
  incoming.url = target; // of an absolute one the adapter would make another
  const [path = ''] = target.split('?', 1);
  return isKept(path) ? undefined : 'unknown_endpoint';
}

/** The address at the other end of the connection, from what @hono/node-server passes with a request. */
export const peerIn = (env: object): string | undefined =>
  'incoming' in env && env.incoming instanceof IncomingMessage ? env.incoming.socket.remoteAddress : undefined;

/** The URL of a request that is refused. What is in a head that is too large is not looked at. */
export function urlOfRefused({ url = '', rawHeaders }: IncomingMessage): string {
  const isReadable = rawHeaders.length <= 2 * MAX_HEADERS && url.startsWith('/');
  return `http://portico${isReadable ? url : '/'}`;
}

/** How large a head is, with the separators and line ends. */
function sizeOf({ method = '', url = '', rawHeaders }: IncomingMessage): number {
  let size = method.length + url.length + ' '.length + ' HTTP/1.1\r\n\r\n'.length + 2 * rawHeaders.length;
  for (const text of rawHeaders) size += text.length;
  return size;
}

const SIMPLE_PATH = /^[A-Za-z0-9/._~!$&'()*+,;=:@-]*$/;
const DOT_SEGMENT = /\/\.\.?(?:\/|$)/;

/**
 * Whether a URL parser leaves a path as it is. It resolves dot segments, encoded ones too, turns backslashes round, and
 * ends it at a `#`.
 */
const isKept = (path: string): boolean =>
  SIMPLE_PATH.test(path) ? !DOT_SEGMENT.test(path) : URL.parse(`http://portico${path}`)?.pathname === path;

/**
 * Whether a proxy may see the end of the request elsewhere. Node's parser refuses most of these requests, but accepts
 * HTTP/0.9 and HTTP/2.0, codings in front of `chunked`, and any coding at all from a client of HTTP/1.0 (RFC 9112 section
 * 6.1 wants that connection closed).
 */
export function isMisframed({ headers, httpVersionMajor, httpVersionMinor }: IncomingMessage): boolean {
  if (httpVersionMajor !== 1) return true;
  const { 'transfer-encoding': coding } = headers;
  if (coding === undefined) return false;
  return httpVersionMinor === 0 || coding.toLowerCase() !== 'chunked';
}

/** Most requests in a row are for the same host. */
let last = { host: '', isGood: false };

/** A host is bad, too, where a URL parser writes it in another way. Two `Host` headers, which Node joins, are a bad one. */
function isGoodHost(host: string): boolean {
  if (host === last.host) return last.isGood;
  const name = host.replace(/:\d+$/, '').toLowerCase();
  last = { host, isGood: HOST.test(host) && URL.parse(`http://${host}`)?.hostname === name };
  return last.isGood;
}

/** RFC 9112 section 3.2: an absolute target is fine as long as it names the same host as `Host`. */
function originForm(target: string, host: string): string | undefined {
  const [, authority, rest = '/'] = /^https?:\/\/([^/?#]+)(\/.*)?$/i.exec(target) ?? [];
  return authority?.toLowerCase() === host.toLowerCase() ? rest : undefined;
}
