import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import type { Limits } from '../store/store.ts';
import type { Layer } from '../upstream/client.ts';

interface HoldOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly limits: Limits;
}

/**
 * Keeps an account's calls back for as long as the upstream's last 429 to it said.
 * @throws GatewayError `rate_limited`
 */
export function hold({ clock, metrics, limits }: HoldOptions): Layer {
  return (next) => async (call) => {
    const { account } = call;
    if (account === undefined) return next(call);
    const leftMs = limits.heldUntil(account) - clock.now();
    if (leftMs > 0) {
      metrics.refused('hold');
      const detail = 'The upstream has asked for fewer calls of this account.';
      throw GatewayError.of('rate_limited', { fault: 'withheld', retryAfter: Math.ceil(leftMs / 1000), detail });
    }
    try {
      return await next(call);
    } catch (error) {
      const seconds = holdOf(error);
      if (seconds > 0) await limits.hold(account, clock.now() + seconds * 1000);
      throw error;
    }
  };
}

/** Seconds that the upstream has asked for; none where the 429 was ours. */
function holdOf(error: unknown): number {
  if (!(error instanceof GatewayError) || error.status !== 429 || error.isUnsent) return 0;
  return error.particulars.retryAfter ?? 0;
}
