import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import type { Store } from '../store/store.ts';
import type { Layer } from '../upstream/client.ts';

interface BudgetOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly store: Pick<Store, 'spend'>;
  /** Calls of one account in a minute, retries counted; 0: any number. */
  readonly perMinute: number;
}

/**
 * Bounds what an account may cost the upstream.
 * @throws GatewayError `rate_limited`
 */
export function budget({ clock, metrics, store, perMinute }: BudgetOptions): Layer {
  if (perMinute === 0) return (next) => next;
  return (next) => async (call) => {
    const { account, background } = call;
    if (account === undefined) return next(call);
    const now = clock.now();
    const { used, endsAt } = store.spend(account, now, background);
    if (used <= perMinute) return next(call);
    metrics.refused('budget');
    const detail = 'The account has used up its upstream calls of this minute.';
    const retryAfter = Math.max(1, Math.ceil((endsAt - now) / 1000));
    throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter, detail });
  };
}
