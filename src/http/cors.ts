import type { Config } from '../config.ts';
import { GatewayError } from '../core/errors.ts';
import type { Inbound } from '../core/inbound.ts';
import type { Logger } from '../core/logger.ts';
import { isAllowed, isOrigin } from '../core/origin.ts';
import type { Clock } from '../core/runtime.ts';
import type { Context } from './context.ts';
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

/** Of an origin that is refused. Others in the same time are refused in silence. */
const SILENT_MS = 60_000;
/** The longest name of a host has 253 characters. */
const MAX_ORIGIN = 300;

const NO_ORIGIN =
  'No page of another origin may call this gateway. Its operator can allow the origins of pages with `ALLOWED_ORIGINS`.';

interface CorsDeps {
  readonly config: Pick<Config, 'allowedOrigins' | 'allowsLocalOrigins' | 'publicUrl' | 'sessions'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly logger: Pick<Logger, 'warn'>;
}

export type Cors = ReturnType<typeof corsFor>;

/** Headers for browsers on other origins (`contract.md` section 9). None are sent if none is allowed. */
export function corsFor({ config, clock, logger }: CorsDeps) {
  const { allowedOrigins: allowed, sessions: withCookies } = config;
  const hasAny = allowed.length > 0 || config.allowsLocalOrigins;
  const byOrigin = new Map(allowed.map((origin) => [origin, originHeaders(origin, withCookies)]));
  const headersFor = (origin: string | undefined) => {
    if (origin === undefined) return undefined;
    const listed = byOrigin.get('*') ?? byOrigin.get(origin);
    return listed ?? (isAllowed(config, origin) ? originHeaders(origin, withCookies) : undefined);
  };
  let silentUntil = -Infinity;
  return {
    /** Whether any is allowed: only then a path has something to say to a preflight. */
    hasAny,
    /** The headers of an answer, with those that allow its origin to read it. */
    added(headers: Readonly<Record<string, string>>, inbound: Inbound): Readonly<Record<string, string>> {
      if (!hasAny) return headers;
      const vary = headers['Vary'] === undefined ? 'Origin' : `${headers['Vary']}, Origin`;
      return { ...headers, Vary: vary, ...headersFor(inbound.header('origin')) };
    },
    /** Warns of a request from a page that may not read the answer. */
    watch({ inbound, requestId }: Context): void {
      const origin = inbound.header('origin');
      if (origin === undefined || headersFor(origin) || !isKnownForm(origin) || isOwn(origin, inbound, config)) return;
      if (inbound.header('sec-fetch-site') === 'same-origin') return; // a proxy has changed the host
      const now = clock.now();
      if (now < silentUntil) return;
      silentUntil = now + SILENT_MS;
      logger.warn({ request_id: requestId, origin }, 'an origin that is not in ALLOWED_ORIGINS was refused');
    },
    /** Answers preflights, and leaves other requests to `otherwise`. Without `supported`, nothing is at the path. */
    preflights(otherwise: Route['handle'], supported?: Supported): Route['handle'] {
      const allowing = supported ? preflightHeaders(supported) : {};
      return async (context) => {
        const { inbound } = context;
        if (!isPreflight(inbound)) return otherwise(context);
        if (!hasAny) return explained(otherwise, context);
        return { status: 204, headers: headersFor(inbound.header('origin')) ? allowing : {}, body: null };
      };
    },
  };
}

/** A 405 to a preflight says what the page's author has to know. */
async function explained(otherwise: Route['handle'], context: Context) {
  try {
    return await otherwise(context);
  } catch (error) {
    const is405 = error instanceof GatewayError && error.status === 405;
    throw is405 ? error.with({ detail: NO_ORIGIN }) : error;
  }
}

/** `null` is that of a file, and of a frame without one. */
const isKnownForm = (origin: string) => origin === 'null' || (origin.length <= MAX_ORIGIN && isOrigin(origin));

/** Whether an origin is the gateway's. Without `PUBLIC_URL` only the host is compared: TLS may end before the gateway. */
export function isOwn(origin: string, inbound: Inbound, { publicUrl }: Pick<Config, 'publicUrl'>): boolean {
  if (publicUrl !== undefined) return origin === publicUrl;
  return /^https?:\/\//.test(origin) && hostOf(origin) === hostOf(inbound.origin);
}

const hostOf = (origin: string) => origin.slice(origin.indexOf('://') + 3).toLowerCase();

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
