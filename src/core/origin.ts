/**
 * As browsers write it: in lower case, without a default port or a path. Apps in web views have schemes of their own; no
 * page has an origin of `ftp`, `file`, `ws` or `wss`.
 */
const ORIGIN = /^(?!(?:ftp|file|wss?):)[a-z][a-z0-9+.-]*:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:]+\])(?::\d{1,5})?$/;

export const isOrigin = (text: string): boolean =>
  ORIGIN.test(text) && (!/^https?:/.test(text) || URL.parse(text)?.origin === text);

const LOCAL_ORIGIN = /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/;

interface Origins {
  readonly allowedOrigins: readonly string[];
  /** Those of this machine, on any port. */
  readonly allowsLocalOrigins: boolean;
}

/** Whether an origin is allowed, other than by `*`. */
export const isAllowed = ({ allowedOrigins, allowsLocalOrigins }: Origins, origin: string): boolean =>
  allowedOrigins.includes(origin) || (allowsLocalOrigins && LOCAL_ORIGIN.test(origin));
