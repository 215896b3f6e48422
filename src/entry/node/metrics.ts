import { Counter, Histogram, Registry } from 'prom-client';
import type { CallOutcome, IdempotencyOutcome, Metrics, Refusal } from '../../core/metrics.ts';
import type { Scrape } from '../../routes/metrics.ts';
import type { Usage } from '../../store/store.ts';
import { allOperations } from '../../upstream/operations/index.ts';
import { engineMetrics } from './engine-metrics.ts';
import { storeGauges, underWayGauges } from './gauges.ts';
import { counter, gauge, processRegistry } from './instruments.ts';
import { RequestSeconds } from './request-seconds.ts';
import type { SharedEngine } from './store.ts';

const CALL_OUTCOMES: readonly CallOutcome[] = ['good', 'refused', 'failed', 'abandoned'];

interface Watched {
  readonly usage: () => Usage;
  readonly shared: SharedEngine | undefined;
}

/** What the port is told, and what the process is like, as Prometheus reads it. */
export function promMetrics({ usage, shared }: Watched): Metrics & { readonly scrape: Scrape } {
  const registry = new Registry();
  const requests = new RequestSeconds();
  const process = processRegistry();
  storeGauges(registry, usage);
  if (shared) engineMetrics(registry, shared);
  return {
    requestDone: (of, ms) => requests.observe(of, ms / 1000),
    ...upstreamMetrics(registry),
    ...outcomes(registry),
    watch: underWayGauges(registry),
    scrape: async () => ({
      contentType: registry.contentType,
      text: [requests.text(), await registry.metrics(), await process.metrics()].join('\n'),
    }),
  };
}

function upstreamMetrics(registry: Registry): Pick<Metrics, 'callDone' | 'retried' | 'circuitIs'> {
  const calls = new Counter({
    name: 'portico_upstream_calls_total',
    help: 'Calls of the upstream, by what became of them.',
    labelNames: ['operation', 'outcome'],
    registers: [registry],
  });
  const seconds = new Histogram({
    name: 'portico_upstream_call_duration_seconds',
    help: 'From sending a call to the end of its answer, or its failure; not of calls that were abandoned.',
    labelNames: ['operation'],
    registers: [registry],
  });
  const retries = new Counter({
    name: 'portico_upstream_retries_total',
    help: 'Calls that were made once more.',
    labelNames: ['operation'],
    registers: [registry],
  });
  let open = 0;
  gauge(registry, {
    name: 'portico_circuit_open',
    help: '1 while the circuit to the upstream is open.',
    read: () => open,
  });
  for (const { id: operation, method } of allOperations) {
    for (const outcome of CALL_OUTCOMES) calls.inc({ operation, outcome }, 0);
    if (method === 'GET') retries.inc({ operation }, 0);
  }
  return {
    callDone({ operation, outcome }, ms) {
      calls.inc({ operation, outcome });
      if (outcome !== 'abandoned') seconds.observe({ operation }, ms / 1000);
    },
    retried: (operation) => retries.inc({ operation }),
    circuitIs(state) {
      open = state === 'open' ? 1 : 0;
    },
  };
}

function outcomes(registry: Registry): Pick<Metrics, 'readDone' | 'idempotency' | 'refused'> {
  return {
    readDone: counter(registry, {
      name: 'portico_cache_reads_total',
      help: 'Reads, by how the cache came to an answer.',
      label: 'outcome',
      values: { hit: 0, stale: 0, miss: 0, bypass: 0, collapsed: 0 },
    }),
    idempotency: counter<IdempotencyOutcome>(registry, {
      name: 'portico_idempotency_total',
      help: 'Writes that must not happen twice, by what became of them.',
      label: 'outcome',
      values: { answered: 0, replayed: 0, released: 0, unknown: 0, key_reused: 0, in_progress: 0, outcome_unknown: 0 },
    }),
    refused: counter<Refusal>(registry, {
      name: 'portico_refused_total',
      help: 'Requests and calls that the gateway itself turned away, by the reason.',
      label: 'by',
      values: { rate_limit: 0, hold: 0, circuit: 0, budget: 0, slots: 0, event_loop: 0 },
    }),
  };
}
