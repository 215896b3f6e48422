import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import type { Window } from '../store/shared/engine.ts';
import type { WindowUse } from '../store/store.ts';

interface RateLimitOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Requests of one account; 0 turns all limits off. */
  readonly perMinute: number;
}

/** What a request counts for, under a name that clients see. */
export type Quota = 'account' | 'address';

/** `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10). */
export type RateLimitHeaders = Readonly<Record<string, string>>;

/** How often one principal may ask in a minute. */
export interface RateLimit {
  windowOf(quota: Quota): Window | undefined;
  headersOf(quota: Quota, use: WindowUse): RateLimitHeaders;
  /** @throws GatewayError `rate_limited` */
  assertWithin(quota: Quota, use: WindowUse): void;
}

/** Calls without a credential, of one address. */
const SOCIAL_PER_MINUTE = 20;
const WINDOW_SECONDS = 60;

export function rateLimit({ clock, metrics, perMinute }: RateLimitOptions): RateLimit {
  const lengthMs = WINDOW_SECONDS * 1000;
  const windows = {
    account: { name: 'requests by account', lengthMs, limit: perMinute },
    address: { name: 'requests by address', lengthMs, limit: SOCIAL_PER_MINUTE },
  } as const;
  const secondsLeft = ({ endsAt }: WindowUse) => Math.max(1, Math.ceil((endsAt - clock.now()) / 1000));
  return {
    windowOf: (quota) => (perMinute === 0 ? undefined : windows[quota]),
    headersOf(quota, use) {
      const { limit } = windows[quota];
      return {
        RateLimit: `"${quota}";r=${Math.max(0, limit - use.used)};t=${secondsLeft(use)}`,
        'RateLimit-Policy': `"${quota}";q=${limit};w=${WINDOW_SECONDS}`,
      };
    },
    assertWithin(quota, use) {
      if (use.used <= windows[quota].limit) return;
      metrics.refused('rate_limit');
      throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter: secondsLeft(use) });
    },
  };
}
