/** The URL of a server; undefined if the text is none. */
export function httpUrlOf(text: string): URL | undefined {
  const url = URL.parse(text.replace(/\/+$/, ''));
  return url && /^https?:\/\/[^/]/i.test(text) && url.port !== '0' ? url : undefined;
}

/** What a text would need to be such a URL, for an error message. */
export function expectedHttpUrl(text: string): string {
  const [, authority] = /^https?:\/\/([^/?#]*)/i.exec(text) ?? [];
  if (authority === undefined) return 'a URL whose scheme is http or https';
  const hasHost = URL.canParse(`http://${authority.replace(/:[^:@\]]*$/, '')}`);
  return hasHost ? 'a URL whose port is an integer from 1 to 65535' : 'a URL whose host is a name or an IP address';
}

/** What comes before the path of an absolute URL. */
export function originOf(url: string): string {
  const slash = url.indexOf('/', url.indexOf('://') + 3);
  return slash < 0 ? url : url.slice(0, slash);
}

/** Percent-encodes what may not stand in a link or in JSON as it is. */
export const encoded = (text: string): string => text.replaceAll(/[^!#-[\]-~]/g, encodeURIComponent);
