import { example, type Resource } from './resource.ts';
import { HOUR, MINUTE, type Instant } from './time.ts';

/** A request through the proxies, with what the upstream filters by but does not show. */
export type Activity = Resource<'listProxyActivity'> & { readonly category?: string };

/** Time between two requests. */
const INTERVAL = 2 * HOUR;

const USUAL = example('listProxyActivity', 0);

const FORBIDDEN = {
  tunnel_duration: 0,
  bytes: 0,
  error_reason: 'client_connect_forbidden_host',
  error_reason_how_to_fix: 'Ask support to allow this host for your account.',
  category: 'acceptable_use_violation',
};

const TIMED_OUT = { tunnel_duration: 0, bytes: 0, error_reason: 'server_connect_timeout' };

const DOMAINS = ['example.com', 'example.org', 'example.net'];

/** The request at `index` times the interval; computed, so that every window has some. */
function activityAt(index: number): Activity {
  const varied = index * 7919; // a prime: looks random, and is always the same
  const domain = DOMAINS[varied % DOMAINS.length] ?? USUAL.domain;
  return {
    ...USUAL,
    timestamp: index * INTERVAL + (varied % MINUTE),
    protocol: varied % 5 === 0 ? 'socks5' : 'http',
    ip_address: `203.0.113.${(varied % 90) + 1}`,
    hostname: `www.${domain}`,
    domain,
    bytes: 500 + (varied % 200_000),
    ...(varied % 11 === 0 && FORBIDDEN),
    ...(varied % 11 === 1 && TIMED_OUT),
  };
}

/** Requests in a window, both ends included, newest first. */
export function activityBetween(from: Instant, until: Instant): Activity[] {
  const first = Math.floor(from / INTERVAL);
  const count = Math.max(0, Math.floor(until / INTERVAL) - first + 1);
  return Array.from({ length: count }, (_, index) => activityAt(first + index))
    .filter(({ timestamp }) => timestamp >= from && timestamp <= until)
    .toReversed();
}

/** Projected records: one for each hour between now and a date to come, newest first. */
export function projectedBetween(now: Instant, until: Instant): Activity[] {
  const hours = Math.max(0, Math.floor((until - now) / HOUR));
  return Array.from({ length: hours }, (_, past) => ({ ...USUAL, timestamp: now + (hours - past) * HOUR }));
}
