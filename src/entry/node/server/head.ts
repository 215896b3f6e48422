import type { IncomingMessage } from 'node:http';
import type { ErrorCode } from '../../../core/errors.ts';

const HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

/** Paths that URL parsers leave as they are. */
const PLAIN_TARGET = /^\/(?!\/)(?:(?!\/\.{1,2}(?:[/?]|$))[^\\?#%])*(?:\?|$)/;

/** More than any client sends. Beyond its own, higher limit Node drops headers silently. */
const MAX_HEADERS = 256;

/** Of a head. Node reads more than that, so that the refusal can be one of ours. */
const MAX_BYTES = 16_384;

/** Checks the head. `target` is in origin form, else as it came over the wire. What is `refused` is refused by the app. */
export function readHead(incoming: IncomingMessage) {
  const { rawHeaders, url = '' } = incoming;
  if (rawHeaders.length > 2 * MAX_HEADERS || sizeOf(incoming) > MAX_BYTES) return TOO_LARGE;
  const host = valueOf('host', rawHeaders) ?? '';
  const origin = originOf(host);
  const target = url.startsWith('/') ? url : originForm(url, host);
  let refused: ErrorCode | undefined;
  if (origin === undefined || target === undefined || isMisframed(incoming)) refused = 'bad_request';
  if (!refused && !PLAIN_TARGET.test(target ?? '')) refused = 'unknown_endpoint';
  return { target: target ?? '/', origin: origin ?? '', refused };
}

/** What is in it is not looked at. */
const TOO_LARGE = { target: '/', origin: '', refused: 'request_header_fields_too_large' } as const;

/** With the separators, and the line end of each. */
function sizeOf({ method = '', url = '', rawHeaders }: IncomingMessage): number {
  let size = method.length + url.length + ' '.length + ' HTTP/1.1\r\n\r\n'.length + 2 * rawHeaders.length;
  for (const text of rawHeaders) size += text.length;
  return size;
}

/**
 * Whether a proxy may see the end of the request elsewhere. Node's parser refuses most of these requests, but accepts
 * HTTP/0.9 and HTTP/2.0, codings in front of `chunked`, and any coding at all from a client of HTTP/1.0 (RFC 9112 section
 * 6.1 wants that connection closed).
 */
export function isMisframed({ rawHeaders, httpVersionMajor, httpVersionMinor }: IncomingMessage): boolean {
  if (httpVersionMajor !== 1) return true;
  const coding = valueOf('transfer-encoding', rawHeaders);
  if (coding === undefined) return false;
  return httpVersionMinor === 0 || coding.toLowerCase() !== 'chunked';
}

/** Cached, since most requests in a row are for the same host. */
let last: { readonly host: string; readonly origin: string | undefined } = { host: '', origin: undefined };

/** Undefined if it is no valid host, also by the URL parser, which refuses more. Two `Host` headers are invalid. */
function originOf(host: string): string | undefined {
  if (host !== last.host) last = { host, origin: HOST.test(host) ? URL.parse(`http://${host}`)?.origin : undefined };
  return last.origin;
}

/** The value of a header by its name in lower case; several are joined with a comma and a space. */
export function valueOf(wanted: string, rawHeaders: readonly string[]): string | undefined {
  let value: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length !== wanted.length || (name !== wanted && name.toLowerCase() !== wanted)) continue;
    value =
      value === undefined ? rawHeaders[at + 1] : `${value}${wanted === 'cookie' ? ';' : ','} ${rawHeaders[at + 1]}`;
  }
  return value;
}

/** RFC 9112 section 3.2: an absolute target is fine as long as it names the same host as `Host`. */
function originForm(target: string, host: string): string | undefined {
  const [, authority, rest = '/'] = /^https?:\/\/([^/?#]+)(\/.*)?$/i.exec(target) ?? [];
  return authority?.toLowerCase() === host.toLowerCase() ? rest : undefined;
}
