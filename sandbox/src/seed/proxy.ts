import type { AggregateStats, IpAuthorization, Subuser } from '../resources/proxy.ts';
import { datedAt } from '../resources/dated.ts';
import type { OfPlan, SubuserState } from '../state.ts';
import { DAY, HOUR, type Instant } from '../time.ts';

/** Two sub-users: the first with a custom proxy list, the second without. */
export function seedSubusers(firstId: number, plan: number, now: Instant): SubuserState[] {
  return [
    { plan, hasCustomList: true, item: subuser(firstId, 'scraper', now) },
    { plan, hasCustomList: false, item: subuser(firstId + 1, 'monitor', now) },
  ];
}

function subuser(id: number, label: string, now: Instant): Subuser {
  return {
    id,
    label,
    proxy_countries: { US: 5, FR: 3, ZZ: 2 },
    proxy_limit: 10,
    max_thread_count: 50,
    aggregate_stats: stats(now),
    ...datedAt(now - 60 * DAY),
    stats_start_date: now - 6 * DAY,
    stats_end_date: now,
    bandwidth_use_start_date: now - 12 * DAY,
    bandwidth_use_end_date: now + 18 * DAY,
  };
}

function stats(now: Instant): AggregateStats {
  return {
    bandwidth_projected: 1_250_000.5,
    bandwidth_total: 900_000,
    bandwidth_average: 30_000,
    requests_total: 120,
    requests_successful: 118,
    requests_failed: 2,
    error_reasons: [
      {
        reason: 'client_connect_forbidden_host',
        type: 'configuration',
        how_to_fix: 'Ask support to allow this host for your account.',
        http_status: 403,
        count: 2,
      },
    ],
    countries_used: { US: 100, FR: 20 },
    number_of_proxies_used: 10,
    protocols_used: { http: 110, socks5: 10 },
    average_concurrency: 2,
    average_rps: 0.25,
    last_request_sent_at: now - HOUR,
  };
}

/** One that is in use and one that never was on the first plan, one more on the second. */
export function seedIpAuthorizations(
  firstId: number,
  [active, inactive]: readonly [active: number, inactive: number],
  now: Instant,
): OfPlan<IpAuthorization>[] {
  const authorization = (offset: number, lastUsedAt: Instant | null): IpAuthorization => ({
    id: firstId + offset,
    ip_address: `198.51.100.${offset + 7}`,
    created_at: now - (50 + offset) * DAY,
    last_used_at: lastUsedAt,
  });
  return [
    { plan: active, item: authorization(0, now - 2 * HOUR) },
    { plan: active, item: authorization(1, null) },
    { plan: inactive, item: authorization(2, null) },
  ];
}
