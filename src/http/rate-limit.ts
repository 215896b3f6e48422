import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import { andThen, type Clock, type MaybePromise } from '../core/runtime.ts';
import type { AccountId, Limits, WindowUse } from '../store/store.ts';

export interface RateLimitTools {
  readonly limits: Limits;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Requests of one account; 0 turns all limits off. */
  readonly perMinute: number;
}

/** How often one party may ask in a minute, under a name that clients see. */
export interface Quota {
  readonly name: 'account' | 'address';
  readonly perMinute: number;
}

/** Calls without a credential, of one address. */
const SOCIAL_PER_MINUTE = 20;

const WINDOW_SECONDS = 60;
const WINDOW_MS = 60_000;
const WINDOWS = { account: 'requests by account', address: 'requests by address' } as const;

/** `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10). */
export type RateLimitHeaders = Readonly<Record<string, string>>;

export interface Admission {
  readonly headers: RateLimitHeaders;
  /** Seconds until the next request is taken; undefined where this one is. */
  readonly retryAfter: number | undefined;
}

/** Counts a request of a party against its quota. */
export type Admit = (party: AccountId, kind: Quota['name']) => MaybePromise<Admission>;

const UNLIMITED: Admission = { headers: {}, retryAfter: undefined };

export function rateLimit({ limits, clock, metrics, perMinute }: RateLimitTools): Admit {
  if (perMinute === 0) return () => UNLIMITED;
  const quotas = { account: perMinute, address: SOCIAL_PER_MINUTE };
  return (party, kind) => {
    const now = clock.now();
    const taken = limits.take({ account: party, name: WINDOWS[kind], lengthMs: WINDOW_MS, now });
    return andThen(taken, (use) => {
      const admission = admissionOf({ name: kind, perMinute: quotas[kind] }, use, now);
      if (admission.retryAfter !== undefined) metrics.refused('rate_limit');
      return admission;
    });
  };
}

function admissionOf({ name, perMinute }: Quota, { used, endsAt }: WindowUse, now: number): Admission {
  const seconds = Math.max(1, Math.ceil((endsAt - now) / 1000));
  const headers = {
    RateLimit: `"${name}";r=${Math.max(0, perMinute - used)};t=${seconds}`,
    'RateLimit-Policy': `"${name}";q=${perMinute};w=${WINDOW_SECONDS}`,
  };
  return { headers, retryAfter: used > perMinute ? seconds : undefined };
}

/** @throws GatewayError `rate_limited` */
export function assertAdmitted({ retryAfter }: Admission): void {
  if (retryAfter === undefined) return;
  throw GatewayError.of('rate_limited', { fault: 'withheld', retryAfter });
}
