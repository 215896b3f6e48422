import { Counter, Registry } from 'prom-client';
import type { CallOutcome, IdempotencyOutcome, Metrics, Refusal } from '../../../core/metrics.ts';
import type { Scrape } from '../../../routes/metrics.ts';
import type { Usage } from '../../../store/store.ts';
import { allOperations } from '../../../upstream/operations/index.ts';
import { Durations } from './durations.ts';
import { engineMetrics } from './engine-metrics.ts';
import { storeGauges, underWayGauges } from './gauges.ts';
import { counter, gauge, processRegistry } from './instruments.ts';
import type { SharedEngine } from '../store.ts';

interface Watched {
  readonly usage: () => Usage;
  readonly shared: SharedEngine | undefined;
}

/** The metrics of the gateway and of the process, in Prometheus' format. */
export function promMetrics({ usage, shared }: Watched): Metrics & { readonly scrape: Scrape } {
  const registry = new Registry();
  const { requests, calls } = durations();
  const process = processRegistry();
  storeGauges(registry, usage);
  if (shared) engineMetrics(registry, shared);
  return {
    requestDone: ({ operation, status, cache }, ms) => requests.observe([operation, status, cache], ms / 1000),
    ...upstreamMetrics(registry, calls),
    ...outcomes(registry),
    watch: underWayGauges(registry),
    scrape: async () => ({
      contentType: registry.contentType,
      text: [requests.text(), calls.text(), await registry.metrics(), await process.metrics()].join('\n'),
    }),
  };
}

function durations() {
  return {
    requests: new Durations({
      name: 'portico_request_duration_seconds',
      help: 'From the head of a request to the end of its answer.',
      labels: ['operation', 'status', 'cache'],
      bounds: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    }),
    calls: new Durations({
      name: 'portico_upstream_call_duration_seconds',
      help: 'From sending a call to the end of its answer, or its failure; not of calls that were abandoned.',
      labels: ['operation'],
      bounds: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    }),
  };
}

function upstreamMetrics(registry: Registry, seconds: Durations): Pick<Metrics, 'callDone' | 'retried' | 'circuitIs'> {
  const counts = new Map<string, Record<CallOutcome, number>>();
  const calls: Counter = new Counter({
    name: 'portico_upstream_calls_total',
    help: 'Calls of the upstream, by what became of them.',
    labelNames: ['operation', 'outcome'],
    registers: [registry],
    collect() {
      calls.reset();
      for (const [operation, byOutcome] of counts)
        for (const [outcome, count] of Object.entries(byOutcome)) calls.inc({ operation, outcome }, count);
    },
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
    counts.set(operation, { good: 0, refused: 0, failed: 0, abandoned: 0 });
    if (method === 'GET') retries.inc({ operation }, 0);
  }
  return {
    callDone({ operation, outcome }, ms) {
      const byOutcome = counts.get(operation);
      if (byOutcome) byOutcome[outcome]++;
      if (outcome !== 'abandoned') seconds.observe([operation], ms / 1000);
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
      values: { rate_limit: 0, cooldown: 0, circuit: 0, budget: 0, slots: 0, event_loop: 0 },
    }),
  };
}
