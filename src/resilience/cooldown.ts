import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import type { AccountId, Store } from '../store/store.ts';
import type { Layer } from '../upstream/client.ts';

interface CooldownOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly store: Pick<Store, 'coolDown' | 'coolsUntil'>;
}

/** Keeps an account's calls back for as long as the upstream's last 429 to it said. */
export function cooldown({ clock, metrics, store }: CooldownOptions) {
  /** @throws GatewayError `rate_limited` */
  const assertOver = (account: AccountId | undefined): void => {
    const leftMs = account === undefined ? 0 : store.coolsUntil(account) - clock.now();
    if (leftMs <= 0) return;
    metrics.refused('hold');
    const detail = 'The upstream has asked for fewer calls of this account.';
    throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter: Math.ceil(leftMs / 1000), detail });
  };
  const layer: Layer = (next) => async (call) => {
    const { account, background } = call;
    assertOver(account);
    try {
      return await next(call);
    } catch (error) {
      const seconds = secondsOf(error);
      if (account !== undefined && seconds > 0) store.coolDown(account, clock.now() + seconds * 1000, background);
      throw error;
    }
  };
  return { layer, assertOver };
}

/** Seconds that the upstream has asked for; none where the 429 was ours. */
function secondsOf(error: unknown): number {
  if (!(error instanceof GatewayError) || error.status !== 429 || error.isUnsent) return 0;
  return error.particulars.retryAfter ?? 0;
}
