import type { Inbound } from '../core/inbound.ts';
import type { Route } from './lifecycle.ts';

/** What scripts of an allowed origin may read of an answer, besides what browsers always show them. */
const EXPOSED =
  'ETag, Age, Cache-Status, Retry-After, RateLimit, RateLimit-Policy, Server-Timing, X-Request-Id, Idempotency-Replayed';

/** Request headers that every path takes. */
const COMMON_HEADERS = ['X-Request-Id', 'traceparent', 'tracestate'];

const MAX_AGE_SECONDS = '7200';

/** What a path takes: methods, and request headers besides the common ones. */
export interface Taken {
  readonly methods: string;
  readonly headers: readonly string[];
}

/** Headers for browsers on other origins (`contract.md` section 9). */
export interface Cors {
  /** Those of an answer, whoever made it, with what its origin may do with it. */
  added<T extends string | number>(
    headers: Readonly<Record<string, T>>,
    origin: string | undefined,
  ): Record<string, T | string>;
  /** Answers preflights for a path, without `taken` one where nothing is; what is none is left to `otherwise`. */
  preflights(otherwise: Route['handle'], taken?: Taken): Route['handle'];
}

/** `allowed`: exact origins, or one `*`. Undefined where there is none: then nothing is said. */
export function corsFor(allowed: readonly string[]): Cors | undefined {
  if (allowed.length === 0) return undefined;
  const shown = new Map(allowed.map((origin) => [origin, shownTo(origin)]));
  const shownFor = (origin: string | undefined) =>
    origin === undefined ? undefined : (shown.get('*') ?? shown.get(origin));
  return {
    added(headers, origin) {
      const vary = headers['Vary'] === undefined ? 'Origin' : `${headers['Vary']}, Origin`;
      return { ...headers, Vary: vary, ...shownFor(origin) };
    },
    preflights(otherwise, taken) {
      const told = taken ? toldOf(taken) : {};
      return async (context) => {
        const { inbound } = context;
        if (!isPreflight(inbound)) return otherwise(context);
        return { status: 204, headers: shownFor(inbound.header('origin')) ? told : {}, body: null };
      };
    },
  };
}

const shownTo = (origin: string) => ({
  'Access-Control-Allow-Origin': origin,
  'Access-Control-Expose-Headers': EXPOSED,
  'Timing-Allow-Origin': origin,
});

const toldOf = ({ methods, headers }: Taken) => ({
  'Access-Control-Max-Age': MAX_AGE_SECONDS,
  'Access-Control-Allow-Methods': methods,
  'Access-Control-Allow-Headers': [...headers, ...COMMON_HEADERS].join(', '),
});

const isPreflight = (inbound: Inbound) =>
  inbound.method === 'OPTIONS' && inbound.header('access-control-request-method') !== undefined;
