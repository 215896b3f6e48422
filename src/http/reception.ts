import { GatewayError } from '../core/errors.ts';
import type { Metrics } from '../core/metrics.ts';
import { andThen, type Clock, type MaybePromise } from '../core/runtime.ts';
import type { AccountId, Arrival, Known, Store, WindowUse } from '../store/store.ts';

export interface ReceptionTools {
  readonly store: Store;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Requests of one account; 0 turns all limits off. */
  readonly perMinute: number;
}

/** How often one principal may ask in a minute, under a name that clients see. */
export interface Quota {
  readonly name: 'account' | 'address';
  readonly perMinute: number;
}

/** Calls without a credential, of one address. */
const SOCIAL_PER_MINUTE = 20;

const WINDOW_SECONDS = 60;
const WINDOWS = {
  account: { name: 'requests by account', lengthMs: 60_000 },
  address: { name: 'requests by address', lengthMs: 60_000 },
} as const;

/** `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10). */
export type RateLimitHeaders = Readonly<Record<string, string>>;

export interface Admission {
  readonly headers: RateLimitHeaders;
  /** Seconds until the next request is taken; undefined where this one is. */
  readonly retryAfter: number | undefined;
  readonly known: Known;
}

/** Who comes, and what will be looked for. */
interface Guest {
  readonly principal: AccountId;
  readonly kind: Quota['name'];
  readonly places: Arrival['places'];
}

/** Counts a request of a principal against its quota, and brings what the store knows. */
export type Receive = (guest: Guest) => MaybePromise<Admission>;

export function reception({ store, clock, metrics, perMinute }: ReceptionTools): Receive {
  const quotas = { account: perMinute, address: SOCIAL_PER_MINUTE };
  return ({ principal, kind, places }) => {
    const now = clock.now();
    const window = perMinute === 0 ? undefined : WINDOWS[kind];
    return andThen(store.visit({ account: principal, now, window, places }), ({ use, known }) => {
      if (use === undefined) return { headers: {}, retryAfter: undefined, known };
      const standing = standingOf({ name: kind, perMinute: quotas[kind] }, use, now);
      if (standing.retryAfter !== undefined) metrics.refused('rate_limit');
      return { ...standing, known };
    });
  };
}

function standingOf({ name, perMinute }: Quota, { used, endsAt }: WindowUse, now: number): Omit<Admission, 'known'> {
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
