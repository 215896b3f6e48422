import type { Inbound } from '../core/inbound.ts';
import type { Route } from './lifecycle.ts';

/** Headers that scripts of an allowed origin may read, besides those that browsers always show them. */
export const EXPOSED =
  'ETag, Age, Cache-Status, Retry-After, RateLimit, RateLimit-Policy, Server-Timing, X-Request-Id, Idempotency-Replayed';

/** Request headers that every path accepts. */
const COMMON_HEADERS = ['X-Request-Id', 'traceparent', 'tracestate'];

const MAX_AGE_SECONDS = '7200';

/** What a path accepts: methods, and request headers besides the common ones. */
export interface Supported {
  readonly methods: string;
  readonly headers: readonly string[];
}

export type Cors = NonNullable<ReturnType<typeof corsFor>>;

/**
 * Headers for browsers on other origins (`contract.md` section 9). Undefined if none is allowed: then none are sent.
 * @param allowed exact origins, or one `*`
 * @param withCookies whether their pages may send the session's cookie along
 */
export function corsFor(allowed: readonly string[], withCookies = false) {
  if (allowed.length === 0) return undefined;
  const byOrigin = new Map(allowed.map((origin) => [origin, originHeaders(origin, withCookies)]));
  const headersFor = (origin: string | undefined) =>
    origin === undefined ? undefined : (byOrigin.get('*') ?? byOrigin.get(origin));
  return {
    /** The headers of an answer, with those that allow its origin to read it. */
    added<T extends string | number>(headers: Readonly<Record<string, T>>, origin: string | undefined) {
      const vary = headers['Vary'] === undefined ? 'Origin' : `${headers['Vary']}, Origin`;
      return { ...headers, Vary: vary, ...headersFor(origin) } as Record<string, T | string>;
    },
    /** Answers preflights, and leaves other requests to `otherwise`. Without `supported`, nothing is at the path. */
    preflights(otherwise: Route['handle'], supported?: Supported): Route['handle'] {
      const allowing = supported ? preflightHeaders(supported) : {};
      return async (context) => {
        const { inbound } = context;
        if (!isPreflight(inbound)) return otherwise(context);
        return { status: 204, headers: headersFor(inbound.header('origin')) ? allowing : {}, body: null };
      };
    },
  };
}

const originHeaders = (origin: string, withCookies: boolean) => ({
  'Access-Control-Allow-Origin': origin,
  'Access-Control-Expose-Headers': EXPOSED,
  'Timing-Allow-Origin': origin,
  ...(withCookies && { 'Access-Control-Allow-Credentials': 'true' }),
});

const preflightHeaders = ({ methods, headers }: Supported) => ({
  'Access-Control-Max-Age': MAX_AGE_SECONDS,
  'Access-Control-Allow-Methods': methods,
  'Access-Control-Allow-Headers': [...headers, ...COMMON_HEADERS].join(', '),
});

const isPreflight = (inbound: Inbound) =>
  inbound.method === 'OPTIONS' && inbound.header('access-control-request-method') !== undefined;
