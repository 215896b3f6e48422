import type { Config } from '../config.ts';
import { originOf } from '../core/http-url.ts';
import { isAllowed } from '../core/address.ts';
import type { Answer } from './reply.ts';
import type { HonoRequest } from './request.ts';

/** Headers that scripts of an allowed origin may read, besides those that browsers always show them. */
export const EXPOSED =
  'ETag, Age, Cache-Status, Retry-After, RateLimit, RateLimit-Policy, Server-Timing, X-Request-Id, ' +
  'Idempotency-Replayed, Preference-Applied';

/**
 * The answer to a preflight: all that the gateway and handlers of a host take, whatever the browser asked for. The methods
 * are `KNOWN_METHODS` without OPTIONS; the headers are those that something here reads and a script may set,
 * and two that tracing in browsers adds to each request.
 */
const PREFLIGHT = {
  'Access-Control-Max-Age': '7200',
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, PATCH, DELETE, PUT',
  'Access-Control-Allow-Headers':
    'Authorization, Cache-Control, Content-Type, Idempotency-Key, If-None-Match, Prefer, X-Request-Id, ' +
    'traceparent, tracestate, baggage, sentry-trace',
} as const;

const MCP_HEADERS = ', MCP-Protocol-Version, Mcp-Method, Mcp-Name';

type CorsConfig = Pick<Config, 'allowedOrigins' | 'allowsLocalOrigins' | 'sessions' | 'mcp'>;

/**
 * Headers for browsers on other origins (`contract.md` section 9). There are none if no origin is allowed. This is not
 * `hono/cors`, which answers every OPTIONS, and changes headers of a finished response: that costs as much as a hit.
 */
export class Cors {
  readonly #config: CorsConfig;
  /** Whether any origin is allowed. */
  readonly #hasAny: boolean;
  readonly #preflight: Readonly<Record<string, string>>;
  readonly #listed: ReadonlyMap<string, Readonly<Record<string, string>>>;

  constructor(config: CorsConfig) {
    const { allowedOrigins: allowed, allowsLocalOrigins, sessions, mcp } = config;
    this.#config = config;
    this.#hasAny = allowed.length > 0 || allowsLocalOrigins;
    const allowsHeaders = 'Access-Control-Allow-Headers';
    this.#preflight = mcp ? { ...PREFLIGHT, [allowsHeaders]: PREFLIGHT[allowsHeaders] + MCP_HEADERS } : PREFLIGHT;
    this.#listed = new Map(allowed.map((origin) => [origin, originHeaders(origin, sessions)]));
  }

  /** Adds what allows the request's origin to read the answer. */
  add(headers: Record<string, string>, request: HonoRequest): void {
    if (!this.#hasAny) return;
    headers['Vary'] = headers['Vary'] === undefined ? 'Origin' : `${headers['Vary']}, Origin`;
    Object.assign(headers, this.#headersFor(request.header('origin')));
    if (headers['Link'] !== undefined && 'Timing-Allow-Origin' in headers)
      headers['Access-Control-Expose-Headers'] = `${EXPOSED}, Link`;
  }

  /** The answer to a preflight; undefined for any other request. */
  preflight(request: HonoRequest): Answer | undefined {
    if (!this.#hasAny || !isPreflight(request)) return undefined;
    const isListed = this.#headersFor(request.header('origin')) !== undefined;
    return { status: 204, headers: isListed ? this.#preflight : {}, body: null };
  }

  #headersFor(origin: string | undefined): Readonly<Record<string, string>> | undefined {
    if (origin === undefined) return undefined;
    const headers = this.#listed.get('*') ?? this.#listed.get(origin);
    if (headers || !isAllowed(this.#config, origin)) return headers;
    return originHeaders(origin, this.#config.sessions);
  }
}

const isPreflight = ({ method, head }: HonoRequest): boolean =>
  method === 'OPTIONS' && head.header('access-control-request-method') !== undefined;

/** Whether an origin is the gateway's. Without `PUBLIC_URL` only the host is compared: TLS may end before the gateway. */
export function isOwn(origin: string, request: HonoRequest, { publicUrl }: Config): boolean {
  if (publicUrl !== undefined) return origin === originOf(publicUrl);
  const [, scheme, host] = /^(https?):\/\/([\w.:[\]-]+)$/.exec(origin) ?? [];
  const hostOf = (authority: string) => URL.parse(`${scheme}://${authority}`)?.host; // without the scheme's own port
  return host !== undefined && hostOf(host) === hostOf(request.hostOrigin.replace(/^.*:\/\//, ''));
}

const originHeaders = (origin: string, withCookies: boolean) => ({
  'Access-Control-Allow-Origin': origin,
  'Access-Control-Expose-Headers': EXPOSED,
  'Timing-Allow-Origin': origin,
  ...(withCookies && { 'Access-Control-Allow-Credentials': 'true' }),
});
