import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import { secondsLeft, type Store } from '../store/store.ts';
import type { Gate } from './gates.ts';

interface BudgetOptions {
  readonly metrics: Metrics;
  readonly store: Pick<Store, 'spend'>;
  /** Calls of one account in a minute, retries counted; 0: any number. */
  readonly perMinute: number;
}

/** Bounds the upstream calls of one account. Refuses with `rate_limited`. */
export function budget({ metrics, store, perMinute }: BudgetOptions): Gate {
  if (perMinute === 0) return {};
  return {
    admit({ call: { account, owner, context }, now }) {
      if (account === undefined) return;
      const use = store.spend({ principal: account, owner }, now, context.background);
      if (use.used <= perMinute) return;
      metrics.refused('budget');
      const detail = 'The account has used up its upstream calls of this minute.';
      throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter: secondsLeft(use, now), detail });
    },
  };
}
