import type { ActivityRecord } from './resources/proxy.ts';
import { HOUR, SECOND, type Instant } from './time.ts';

/** A record with what the upstream filters by but does not show. */
export interface Activity {
  readonly record: ActivityRecord;
  readonly category: string | null;
}

interface Failure {
  readonly reason: string;
  readonly howToFix: string;
  readonly category: string | null;
}

const FAILURES: readonly Failure[] = [
  {
    reason: 'client_connect_forbidden_host',
    howToFix: 'Ask support to allow this host for your account.',
    category: 'acceptable_use_violation',
  },
  { reason: 'server_connect_timeout', howToFix: 'Try again: the target did not answer in time.', category: null },
];

const HOSTS = ['www.example.com', 'shop.example.org', 'api.example.net', 'news.example.com'] as const;

/** A number that looks random and is always the same for the same input. */
function scramble(input: number): number {
  let bits = Math.imul(input ^ 0x9e3779b9, 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}

/** The request through the proxies at `index` times the interval; computed, so that every window has some. */
function activityAt(index: number, interval: number): Activity {
  const random = scramble(index);
  const failure = random % 9 < FAILURES.length ? FAILURES[random % 9] : undefined;
  const timestamp = index * interval + (random % (60 * SECOND));
  return {
    record: { ...describeRequest(random, timestamp), ...describeOutcome(random, failure) },
    category: failure?.category ?? null,
  };
}

function describeRequest(random: number, timestamp: Instant) {
  const hostname = HOSTS[random % HOSTS.length] ?? HOSTS[0];
  return {
    timestamp,
    protocol: random % 5 === 0 ? 'socks5' : 'http',
    auth_username: random % 4 === 0 ? null : 'sandbox-user',
    proxy_address: `198.51.100.${(random % 50) + 1}`,
    client_address: '192.0.2.17',
    ip_address: `203.0.113.${(random % 90) + 1}`,
    hostname,
    domain: hostname.split('.').slice(1).join('.'),
    port: 443,
    proxy_port: random % 3 === 0 ? null : 8080,
    listen_address: '198.51.100.1',
    listen_port: 80,
  };
}

function describeOutcome(random: number, failure: Failure | undefined) {
  return {
    request_duration: (random % 400) / 100,
    handshake_duration: (random % 20) / 100,
    tunnel_duration: failure ? 0 : (random % 300) / 100,
    error_reason: failure?.reason ?? null,
    error_reason_how_to_fix: failure?.howToFix ?? '',
    bytes: failure ? 0 : 500 + (random % 200_000),
  };
}

/** Requests of an account in a window, both ends included, newest first. */
export function activityBetween(from: Instant, until: Instant, interval: number): Activity[] {
  const found: Activity[] = [];
  for (let index = Math.floor(until / interval); index >= Math.floor(from / interval); index -= 1) {
    const activity = activityAt(index, interval);
    if (activity.record.timestamp >= from && activity.record.timestamp <= until) found.push(activity);
  }
  return found;
}

/** Projected records: one for each hour between now and a date to come, newest first. */
export function projectedBetween(now: Instant, until: Instant): Activity[] {
  const hours = Math.max(0, Math.floor((until - now) / HOUR));
  return Array.from({ length: hours }, (_, past) => {
    const timestamp = now + (hours - past) * HOUR;
    const record = { ...describeRequest(0, timestamp), ...describeOutcome(100_000, undefined) };
    return { record, category: null };
  });
}
