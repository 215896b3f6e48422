import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import type { AccountId, Store } from '../store/store.ts';
import type { Gate, Outcome } from './gates.ts';

interface CooldownOptions {
  readonly metrics: Metrics;
  readonly store: Pick<Store, 'coolDown' | 'coolsUntil'>;
}

interface Cooldown extends Required<Gate> {
  /** @throws GatewayError `rate_limited` */
  assertOver(account: AccountId | undefined, now: number): void;
}

/** Refuses an account's calls for as long as the upstream's last 429 to it asked for. */
export function cooldown({ metrics, store }: CooldownOptions): Cooldown {
  const assertOver = (account: AccountId | undefined, now: number): void => {
    const leftMs = account === undefined ? 0 : store.coolsUntil(account) - now;
    if (leftMs <= 0) return;
    metrics.refused('cooldown');
    const detail = 'The upstream has asked for fewer calls of this account.';
    throw GatewayError.of('rate_limited', { fault: 'not_sent', retryAfter: Math.ceil(leftMs / 1000), detail });
  };
  return {
    assertOver,
    admit: ({ call, now }) => assertOver(call.account, now),
    settled({ call: { account, owner, context } }, outcome) {
      const seconds = secondsOf(outcome);
      if (account === undefined || seconds === 0) return;
      store.coolDown({ principal: account, owner }, outcome.now + seconds * 1000, context.background);
    },
  };
}

/** Seconds that the upstream has asked for; 0 if the 429 was ours. */
function secondsOf({ error }: Outcome): number {
  if (!(error instanceof GatewayError) || error.status !== 429 || error.isUnsent) return 0;
  return error.particulars.retryAfter ?? 0;
}
