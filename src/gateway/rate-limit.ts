import { GatewayError } from '../core/errors.ts';
import { requestsBy, secondsLeft, type WindowUse } from '../store/store.ts';
import type { Quota, RequestContext } from '../upstream/request-context.ts';
import type { GatewayDeps } from './deps.ts';

/** Social calls, which have no credential, of one address. */
const SOCIAL_PER_MINUTE = 20;
const MINUTE_MS = 60_000;

export type RateLimit = ReturnType<typeof rateLimit>;

/** How many requests a principal may make in a minute. `perMinute`: of one account; 0: there is no quota at all. */
export function rateLimit({ clock, metrics }: Pick<GatewayDeps, 'clock' | 'metrics'>, perMinute: number) {
  const quota = (name: Quota['name'], limit: number): Quota | undefined =>
    perMinute === 0 ? undefined : { name, window: { name: requestsBy(name), lengthMs: MINUTE_MS, limit } };
  return {
    account: quota('account', perMinute),
    address: quota('address', SOCIAL_PER_MINUTE),
    /**
     * Notes the count of a request, for the headers of its answer.
     * @throws GatewayError `rate_limited` if it is over the limit
     */
    apply(context: RequestContext, applied: Quota | undefined, use: WindowUse | undefined): void {
      if (!applied || !use) return;
      context.counted = { quota: applied, use };
      if (use.used <= applied.window.limit) return;
      metrics.refused('rate_limit');
      const detail = `More than ${applied.window.limit} requests by this ${applied.name} in a minute.`;
      throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter: secondsLeft(use, clock.now()), detail });
    },
  };
}
