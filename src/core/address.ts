/** The address by which limits count a client: IPv4, or the /64 of IPv6, since one household has a whole /64. */
export function clientAt(address: string): string {
  return address.includes(':') ? prefixOf(address) : address;
}

/** `2001:db8::7` becomes `2001:db8:0:0::/64`. */
function prefixOf(address: string): string {
  const [start = '', end = ''] = address.replace(/(?<=:)\d+\.[\d.]+$/, '0:0').split('::');
  const [left, right] = [groupsOf(start), groupsOf(end)];
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`;
}

const groupsOf = (part: string) => (part === '' ? [] : part.split(':'));

/**
 * An origin as browsers write it: in lower case, without a default port or a path. Apps in web views have schemes of their own; no
 * page has an origin of `ftp`, `file`, `ws` or `wss`.
 */
const ORIGIN = /^(?!(?:ftp|file|wss?):)[a-z][a-z0-9+.-]*:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:]+\])(?::\d{1,5})?$/;

export const isOrigin = (text: string): boolean =>
  ORIGIN.test(text) && (!/^https?:/.test(text) || URL.parse(text)?.origin === text);

const LOCAL_ORIGIN = /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/;

interface Origins {
  readonly allowedOrigins: readonly string[];
  /** Origins of this machine, on any port. */
  readonly allowsLocalOrigins: boolean;
}

/** Whether an origin is allowed, other than by `*`. */
export const isAllowed = ({ allowedOrigins, allowsLocalOrigins }: Origins, origin: string): boolean =>
  allowedOrigins.includes(origin) || (allowsLocalOrigins && LOCAL_ORIGIN.test(origin));
