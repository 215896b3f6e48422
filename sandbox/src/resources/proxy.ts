import type { Instant } from '../time.ts';
import type { Dated } from './dated.ts';

interface ErrorReason {
  reason: string;
  type: string;
  how_to_fix: string;
  http_status: number;
  count: number;
}

export interface AggregateStats {
  bandwidth_projected: number;
  bandwidth_total: number;
  bandwidth_average: number;
  requests_total: number;
  requests_successful: number;
  requests_failed: number;
  error_reasons: ErrorReason[];
  countries_used: Record<string, number>;
  number_of_proxies_used: number;
  protocols_used: Record<string, number>;
  average_concurrency: number;
  average_rps: number;
  last_request_sent_at: Instant;
}

export interface Subuser extends Dated {
  id: number;
  label: string;
  proxy_countries: Record<string, number>;
  proxy_limit: number;
  max_thread_count: number;
  aggregate_stats: AggregateStats;
  stats_start_date: Instant;
  stats_end_date: Instant;
  bandwidth_use_start_date: Instant;
  bandwidth_use_end_date: Instant;
}

export interface IpAuthorization {
  id: number;
  ip_address: string;
  created_at: Instant;
  last_used_at: Instant | null;
}

export interface ActivityRecord {
  timestamp: Instant;
  protocol: string;
  request_duration: number;
  handshake_duration: number;
  tunnel_duration: number;
  error_reason: string | null;
  error_reason_how_to_fix: string;
  auth_username: string | null;
  proxy_address: string;
  bytes: number;
  client_address: string;
  ip_address: string;
  hostname: string;
  domain: string;
  port: number;
  proxy_port: number | null;
  listen_address: string;
  listen_port: number;
}
