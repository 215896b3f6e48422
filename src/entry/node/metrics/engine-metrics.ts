import { Counter, Histogram, type Registry } from 'prom-client';
import { gauge } from './instruments.ts';
import type { SharedEngine } from '../store.ts';

/** From a local round trip up to the timeout. */
const BUCKETS_SECONDS = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1];

/** Metrics of the shared store. */
export function engineMetrics(registry: Registry, { up, pending, watch }: SharedEngine): void {
  gauge(registry, {
    name: 'portico_store_up',
    help: '1 while the shared store answers; of a cluster the part that does.',
    read: up,
  });
  gauge(registry, {
    name: 'portico_store_pending_writes',
    help: 'Reports of ended writes and refused credentials that the shared store has not acknowledged yet.',
    read: pending,
  });
  const labels = { labelNames: ['command'], registers: [registry] };
  const seconds = new Histogram({
    name: 'portico_store_command_duration_seconds',
    help: 'From sending a command to the shared store to its reply.',
    buckets: BUCKETS_SECONDS,
    ...labels,
  });
  const failures = new Counter({
    name: 'portico_store_command_failures_total',
    help: 'Commands to the shared store that found no connection, or no reply in time.',
    ...labels,
  });
  watch((command, outcome, ms) => {
    if (outcome === 'good') seconds.observe({ command }, ms / 1000);
    else failures.inc({ command });
  });
}
