import * as z from 'zod/mini';
import {
  counts,
  dated,
  documented,
  identifier,
  integer,
  number,
  resource,
  text,
  timestamp,
} from '../upstream/fields.ts';
import { pageOf } from '../upstream/page.ts';
import { anyText, idText, paging, timestampText } from '../upstream/parameters.ts';
import { chapter, PROXIES } from './chapter.ts';

const errorReason = z.looseObject({
  reason: text('error reason', 'client_connect_forbidden_host'),
  type: text('type of the reason', 'configuration'),
  how_to_fix: text('remedy', 'Allow the host.'),
  http_status: integer('HTTP status', 403),
  count: integer('number of requests', 2),
});

const aggregateStats = resource('AggregateStats', {
  bandwidth_projected: number('projected bandwidth', 1250.5),
  bandwidth_total: number('bandwidth used', 900),
  bandwidth_average: number('average bandwidth', 30),
  requests_total: integer('requests', 120),
  requests_successful: integer('requests that succeeded', 118),
  requests_failed: integer('requests that failed', 2),
  error_reasons: z.array(errorReason),
  countries_used: counts('country code to requests', { US: 100, FR: 20 }),
  number_of_proxies_used: integer('proxies used', 10),
  protocols_used: counts('protocol to requests', { http: 120 }),
  average_concurrency: number('average concurrency', 1.5),
  average_rps: number('average requests a second', 0.25),
  last_request_sent_at: z.nullable(timestamp('when the last request was sent')),
});

const subuser = resource('Subuser', {
  id: identifier('identifier', 1081),
  label: text('label', 'scraper'),
  proxy_countries: counts('country code to number of proxies', { US: 5, ZZ: 5 }),
  proxy_limit: number('proxy limit', 10),
  max_thread_count: integer('most concurrent threads', 50),
  aggregate_stats: aggregateStats,
  ...dated,
  stats_start_date: timestamp('start of the statistics window'),
  stats_end_date: timestamp('end of the statistics window'),
  bandwidth_use_start_date: timestamp('start of the bandwidth window'),
  bandwidth_use_end_date: timestamp('end of the bandwidth window'),
});

const ipAuthorization = resource('IpAuthorization', {
  id: z.union([identifier('identifier', 1091), text('identifier', '1091')]),
  ip_address: text('IP address', '198.51.100.7'),
  created_at: timestamp('when it was made'),
  last_used_at: z.nullable(timestamp('when it was last used')),
});

const activity = resource('ProxyActivity', {
  timestamp: timestamp('when the request was made'),
  protocol: text('protocol', 'http'),
  request_duration: number('duration; the unit is not documented', 0.25),
  handshake_duration: number('duration; the unit is not documented', 0.02),
  tunnel_duration: number('duration; the unit is not documented', 0.2),
  error_reason: z.nullable(text('error reason', 'client_connect_forbidden_host')),
  error_reason_how_to_fix: z.nullable(text('remedy', 'Allow the host.')),
  auth_username: z.nullable(text('user name of the proxy', 'user')),
  proxy_address: text('address of the proxy', '198.51.100.8'),
  bytes: integer('bytes transferred', 1500),
  client_address: text('address of the client', '198.51.100.9'),
  ip_address: text('address of the target', '203.0.113.5'),
  hostname: text('host name of the target', 'www.example.com'),
  domain: text('domain of the target', 'example.com'),
  port: integer('port of the target', 443),
  proxy_port: z.nullable(integer('port of the proxy', 8080)),
  listen_address: text('address that listened', '198.51.100.8'),
  listen_port: integer('port that listened', 80),
});

const planId = {
  plan_id: documented(idText, { description: 'id of the plan to act on; the default plan when left out' }),
};

/** Sub-users, IP authorizations, list refresh and activity (`upstream-api.md`, endpoints 19 to 24). */
export const proxy = chapter('Proxy', 'Sub-users, IP authorizations, list refresh, activity.', {
  getSubuser: {
    at: 'GET /api/v2/subuser/{id}/',
    query: planId,
    answer: subuser,
    group: 'subusers',
    cache: PROXIES,
    summary: 'Read a sub-user and its statistics',
  },
  refreshSubuser: {
    at: 'POST /api/v2/subuser/{id}/refresh/',
    answer: subuser,
    invalidates: [{ item: 'subusers' }],
    summary: 'Refresh the custom proxy list of a sub-user',
    description: 'Allowed only when the sub-user has a custom proxy list.',
  },
  getIpAuthorization: {
    at: 'GET /api/v2/proxy/ipauthorization/{id}/',
    params: { id: 'slug' },
    query: planId,
    answer: ipAuthorization,
    group: 'ipAuthorizations',
    cache: PROXIES,
  },
  deleteIpAuthorization: {
    at: 'DELETE /api/v2/proxy/ipauthorization/{id}/',
    params: { id: 'slug' },
    query: planId,
    answer: null,
    invalidates: [{ item: 'ipAuthorizations' }],
  },
  refreshProxyList: {
    at: 'POST /api/v2/proxy/list/refresh/',
    query: planId,
    answer: null,
    invalidates: ['subusers'],
    description: 'Spends one of the plan’s on-demand refreshes.',
  },
  listProxyActivity: {
    at: 'GET /api/v2/proxy/activity/',
    query: {
      ...planId,
      timestamp__lte: timestampText('default now; a future one adds projected records'),
      timestamp__gte: timestampText('default six days ago; at most 90 days back'),
      search: anyText(),
      error_reason: anyText('`*`: any request with an error'),
      starting_after: timestampText('timestamp of the last record of the page before'),
      bytes__gte: anyText(),
      bytes__lte: anyText(),
      verification_category: anyText(),
      page_size: paging.page_size,
    },
    ...pageOf(activity),
    group: 'proxyActivity',
    cache: PROXIES,
    description: 'Pages by `starting_after` instead of `page`.',
  },
});
