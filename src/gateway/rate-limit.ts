import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import { secondsLeft, type WindowUse } from '../store/store.ts';
import type { Quota, RequestContext } from '../upstream/request-context.ts';

interface RateLimitOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Requests of one account; 0 turns all limits off. */
  readonly rateLimitPerMinute: number;
}

/** How many requests a principal may make in a minute. A quota is absent if there is no limit. */
export interface RateLimit {
  readonly account: Quota | undefined;
  readonly address: Quota | undefined;
  /**
   * Notes the count of a request, for the headers of its answer.
   * @throws GatewayError `rate_limited` if it is over the limit
   */
  counted(context: RequestContext, quota: Quota | undefined, use: WindowUse | undefined): void;
}

/** Social calls, which have no credential, of one address. */
const SOCIAL_PER_MINUTE = 20;
const MINUTE_MS = 60_000;

export function rateLimit({ clock, metrics, rateLimitPerMinute: perMinute }: RateLimitOptions): RateLimit {
  const quota = (name: Quota['name'], limit: number): Quota | undefined =>
    perMinute === 0 ? undefined : { name, window: { name: `requests by ${name}`, lengthMs: MINUTE_MS, limit } };
  return {
    account: quota('account', perMinute),
    address: quota('address', SOCIAL_PER_MINUTE),
    counted(context, counted, use) {
      if (!counted || !use) return;
      context.counted = { quota: counted, use };
      if (use.used <= counted.window.limit) return;
      metrics.refused('rate_limit');
      throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter: secondsLeft(use, clock.now()) });
    },
  };
}
