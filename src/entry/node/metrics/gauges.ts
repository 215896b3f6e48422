import type { Registry } from 'prom-client';
import type { Gauge, Metrics } from '../../../core/metrics.ts';
import type { Usage } from '../../../store/store.ts';
import { gauge } from './instruments.ts';

/** Gauges of what is under way; each reads 0 until its source is set. */
export function underWayGauges(registry: Registry): Metrics['watch'] {
  const now: Record<Gauge, () => number> = { reads: () => 0, calls: () => 0, waiting_calls: () => 0 };
  const gauges = [
    { name: 'portico_reads_under_way', help: 'Reads under way that equal reads join.', read: () => now.reads() },
    { name: 'portico_upstream_calls_under_way', help: 'Calls of the upstream under way.', read: () => now.calls() },
    { name: 'portico_upstream_calls_waiting', help: 'Calls that wait for a slot.', read: () => now.waiting_calls() },
  ];
  for (const one of gauges) gauge(registry, one);
  return (which, read) => {
    now[which] = read;
  };
}

export function storeGauges(registry: Registry, usage: () => Usage): void {
  const pinned =
    'Idempotency records under way, of unknown outcome or of purchases, which are not evicted before their time.';
  const gauges = [
    { name: 'portico_cache_bytes', help: 'Keys and bodies of cached answers.', read: () => usage().bytes },
    { name: 'portico_cache_entries', help: 'Cached answers.', read: () => usage().entries },
    { name: 'portico_accounts', help: 'Accounts of which something is held.', read: () => usage().accounts },
    { name: 'portico_idempotency_records', help: 'Idempotency records.', read: () => usage().records },
    { name: 'portico_idempotency_pinned_records', help: pinned, read: () => usage().pinnedRecords },
    {
      name: 'portico_limit_windows',
      help: 'Windows of limits and budgets, and cooldowns.',
      read: () => usage().windows,
    },
  ];
  for (const one of gauges) gauge(registry, one);
}
