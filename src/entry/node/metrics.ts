import { collectDefaultMetrics, Counter, Gauge, Histogram, type Metric, Registry } from 'prom-client';
import {
  CALL_OUTCOMES,
  type Gauge as UnderWay,
  IDEMPOTENCY_OUTCOMES,
  type Metrics,
  READ_OUTCOMES,
  REFUSALS,
} from '../../core/metrics.ts';
import type { Scrape } from '../../routes/health.ts';
import { type Changes, LOSSES } from '../../store/shared/changes.ts';
import type { Usage } from '../../store/store.ts';
import type { Table } from '../../upstream/table.ts';

/** Once for all gateways in the process: each time would start a timer and an observer that never end. */
const ofProcess = new Registry();
collectDefaultMetrics({ register: ofProcess });

/** None: each gateway registers its metrics with a registry of its own. */
const registers: Registry[] = [];

/** Read when metrics are scraped. */
const gauge = (name: string, help: string, read: () => number): Metric =>
  new Gauge({
    name,
    help,
    registers,
    collect() {
      this.set(read());
    },
  });

/** The same, of what only grows. */
const counted = (name: string, help: string, read: () => number): Metric =>
  new Counter({
    name,
    help,
    registers,
    collect() {
      this.reset();
      this.inc(read());
    },
  });

/** Series of all values that labels may have are there from the start, since one that begins with 1 has no rate. */
function counter(name: string, help: string, values: Readonly<Record<string, readonly string[]>>): Counter {
  const metric = new Counter<string>({ name, help, labelNames: Object.keys(values), registers });
  let series: Readonly<Record<string, string>>[] = [{}];
  for (const [label, all] of Object.entries(values))
    series = series.flatMap((labels) => all.map((value) => ({ ...labels, [label]: value })));
  for (const labels of series) metric.inc(labels, 0);
  return metric;
}

/** The metrics of the gateway, of the process and what `others` measure, in Prometheus' format. */
export function promMetrics(table: Table, others: readonly Metric[]): Metrics & { readonly scrape: Scrape } {
  const registry = new Registry();
  const own = instruments(table);
  const underWay: Record<UnderWay, () => number> = { reads: () => 0, calls: () => 0, waiting_calls: () => 0 };
  let open = 0;
  const gauges = [
    gauge('portico_reads_under_way', 'Reads under way that equal reads join.', () => underWay.reads()),
    gauge('portico_upstream_calls_under_way', 'Calls of the upstream under way.', () => underWay.calls()),
    gauge('portico_upstream_calls_waiting', 'Calls that wait for a slot.', () => underWay.waiting_calls()),
    gauge(
      'portico_circuit_open',
      '1 while the circuit to the upstream is open, but for one account alone.',
      () => open,
    ),
  ];
  for (const metric of [...Object.values(own), ...gauges, ...others]) registry.registerMetric(metric);
  return {
    requestDone: (labels, ms) => own.requests.observe(labels, ms / 1000),
    callDone({ operation, outcome }, ms) {
      own.calls.inc({ operation, outcome });
      if (outcome !== 'abandoned') own.seconds.observe({ operation }, ms / 1000);
    },
    retried: (operation) => own.retries.inc({ operation }),
    circuitIs: (state) => void (open = state === 'open' ? 1 : 0),
    readDone: (outcome) => own.reads.inc({ outcome }),
    idempotency: (outcome) => own.writes.inc({ outcome }),
    refused: (by) => own.refusals.inc({ by }),
    authenticated: (by) => own.authenticated.inc({ by }),
    watch: (which, read) => void (underWay[which] = read),
    scrape: async () => ({
      contentType: ofProcess.contentType,
      text: (await registry.metrics()) + (await ofProcess.metrics()),
    }),
  };
}

const instruments = ({ operations }: Table) => ({
  requests: new Histogram<string>({
    name: 'portico_request_duration_seconds',
    help: 'From the head of a request to the end of its answer.',
    labelNames: ['operation', 'status', 'cache'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  }),
  seconds: new Histogram<string>({
    name: 'portico_upstream_call_duration_seconds',
    help: 'From sending a call to the end of its answer, or its failure; not of calls that were abandoned.',
    labelNames: ['operation'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  }),
  calls: counter('portico_upstream_calls_total', 'Calls of the upstream, by what became of them.', {
    operation: operations.map(({ id }) => id),
    outcome: CALL_OUTCOMES,
  }),
  retries: counter('portico_upstream_retries_total', 'Calls that were made once more.', {
    operation: operations.filter(({ method }) => method === 'GET').map(({ id }) => id),
  }),
  reads: counter('portico_cache_reads_total', 'Reads, by how the cache came to an answer.', { outcome: READ_OUTCOMES }),
  writes: counter('portico_idempotency_total', 'Writes that must not happen twice, by what became of them.', {
    outcome: IDEMPOTENCY_OUTCOMES,
  }),
  authenticated: counter(
    'portico_authenticated_requests_total',
    'Requests of an account, by how they were authenticated. Only with SESSIONS.',
    { by: ['header', 'cookie'] },
  ),
  refusals: counter('portico_refused_total', 'Requests and calls that the gateway itself turned away, by the reason.', {
    by: REFUSALS,
  }),
});

/** What a store holds, and how many lines the log has lost. */
export const usageMetrics = (usage: () => Usage, droppedLines: () => number): Metric[] => [
  gauge('portico_cache_bytes', 'Keys and bodies of cached answers.', () => usage().bytes),
  gauge('portico_cache_entries', 'Cached answers.', () => usage().entries),
  gauge('portico_accounts', 'Accounts of which something is held.', () => usage().accounts),
  gauge('portico_idempotency_records', 'Idempotency records.', () => usage().records),
  gauge('portico_limit_windows', 'Windows of limits and budgets.', () => usage().windows),
  counted('portico_log_lines_dropped_total', 'Log lines that could not be written.', droppedLines),
];

const LISTENING = '1 while this instance hears of the changes of others. While it does not, every hit asks the store.';
const LATE = 'Hits that had to ask, since this instance had not heard of all changes up to that moment.';

const losses = (read: () => Changes['losses'] | undefined): Metric =>
  new Counter({
    name: 'portico_store_views_dropped_total',
    help: 'Views that were dropped: one by a change of its account; all at once by the other reasons.',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const reason of LOSSES) this.inc({ reason }, read()?.[reason] ?? 0);
    },
  });

const PENDING = 'Reports of ended writes and refused credentials that the shared store has not acknowledged yet.';

/** What the metrics of the shared store are read from. */
interface StoreState {
  /** The part of it that answers, 0 to 1. */
  readonly up: number;
  /** Reports that it has not acknowledged. */
  readonly pending: number;
  readonly unaskedHits: number;
  /** Absent in a cluster. */
  readonly changes: Changes | undefined;
}

/** Metrics of the shared store. `onCommand` is to be called after each command. */
export function engineMetrics(state: () => StoreState) {
  const seconds = new Histogram<string>({
    name: 'portico_store_command_duration_seconds',
    help: 'From sending a command to the shared store to its reply.',
    labelNames: ['command'],
    buckets: [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1], // from a local round trip up to the timeout
    registers,
  });
  const help = 'Commands to the shared store that found no connection, or no reply in time.';
  const failures = counter('portico_store_command_failures_total', help, { command: [] });
  return {
    onCommand: (command: string, outcome: 'good' | 'failed', ms: number) =>
      outcome === 'good' ? seconds.observe({ command }, ms / 1000) : failures.inc({ command }),
    instruments: [
      gauge('portico_store_up', '1 while the shared store answers; of a cluster the part that does.', () => state().up),
      gauge('portico_store_pending_writes', PENDING, () => state().pending),
      gauge('portico_store_listening', LISTENING, () => Number(state().changes?.isListening ?? false)),
      counted('portico_store_unasked_hits_total', 'Hits that asked nobody.', () => state().unaskedHits),
      counted('portico_store_late_hits_total', LATE, () => state().changes?.late ?? 0),
      losses(() => state().changes?.losses),
      seconds,
      failures,
    ] satisfies Metric[],
  };
}
