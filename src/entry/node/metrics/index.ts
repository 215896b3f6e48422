import {
  type Aggregator,
  AggregatorRegistry,
  collectDefaultMetrics,
  Counter,
  Gauge,
  Histogram,
  type Metric,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
  type RegistryContentType,
} from 'prom-client';
import { ERROR_CODES, REASONS } from '../../../core/errors.ts';
import {
  type Gauge as UnderWay,
  IDEMPOTENCY_OUTCOMES,
  type Metrics,
  READ_OUTCOMES,
  REFUSALS,
  STATUS_CLASSES,
} from '../../../core/metrics.ts';
import { CALL_OUTCOMES, PHASES } from '../../../core/timeline.ts';
import { VERSION } from '../../../core/version.ts';
import { OF_UPSTREAM } from '../../../http/problem.ts';
import type { Scrape } from '../../../routes/health.ts';
import type { Table } from '../../../upstream/table.ts';
import type { Recordings } from '../console/recordings.ts';

/** One registry for all gateways in the process: each further one would start a timer and an observer that never end. */
const ofProcess = new Registry();
collectDefaultMetrics({ register: ofProcess });
// A graph shows when a process was started last, of several too.
Object.assign(ofProcess.getSingleMetric('process_start_time_seconds') ?? {}, { aggregator: 'max' });

const build = { version: VERSION, node: process.version };
new Gauge({
  name: 'portico_build_info',
  help: 'Which version this is.',
  aggregator: 'first',
  labelNames: Object.keys(build),
  registers: [ofProcess],
}).set(build, 1);

/** Metrics of one process, as they are sent to another one. */
export type Measured = readonly MetricObjectWithValues<MetricValue<string>>[];

export const measuredOfProcess = (): Promise<Measured> => ofProcess.getMetricsAsJSON();

/** Metrics of several processes, added up. */
export const sumOf = (all: readonly Measured[]): Registry<RegistryContentType> =>
  AggregatorRegistry.aggregate(all.map((one) => [...one]));

export const pageOf = async (registry: Registry<RegistryContentType>) => ({
  contentType: registry.contentType,
  text: await registry.metrics(),
});

/** The metrics of the gateway, of the process and what `others` measure, in Prometheus' format. The console shows some. */
export function promMetrics(
  table: Table,
  others: readonly Metric[],
  recordings?: Recordings,
): Metrics & { readonly scrape: Scrape; readonly measured: () => Promise<Measured> } {
  const registry = Registry.merge([ofProcess]);
  const own = instruments(table);
  const underWay: Partial<Record<UnderWay, () => number>> = {};
  let operations: readonly string[] = [];
  const gauges = Object.entries(UNDER_WAY).map(([which, [name, help]]) =>
    gauge(`portico_${name}`, help, () => underWay[which as UnderWay]?.() ?? 0),
  );
  const total = totalOf(own.requests, () => operations);
  for (const one of [...Object.values(own), total, ...gauges, ...others]) registry.registerMetric(one);
  return {
    expect: (ids) => void (operations = [...ids, '(none)']),
    requestDone: (labels, ms) => own.requests.observe(labels, ms / 1000),
    callDone({ operation, outcome, reason }, ms) {
      own.calls.inc({ operation, outcome, reason });
      if (outcome !== 'abandoned') own.seconds.observe({ operation }, ms / 1000);
      if (reason) recordings?.count(reason);
    },
    phaseDone: (phase, ms) => own.phases.observe({ phase }, ms / 1000),
    problem: (code) => own.problems.inc({ code }),
    drifted: (operation) => own.drift.inc({ operation }),
    retried: (operation) => own.retries.inc({ operation }),
    circuitIs: (state) => own.circuit.set(state === 'open' ? 1 : 0),
    readDone(outcome) {
      own.reads.inc({ outcome });
      recordings?.count(outcome === 'collapsed' ? 'miss' : outcome);
    },
    idempotency: (outcome) => own.writes.inc({ outcome }),
    refused: (by) => own.refusals.inc({ by }),
    watch: (which, read) => void (underWay[which] = read),
    measured: () => registry.getMetricsAsJSON(),
    scrape: () => pageOf(registry),
  };
}

/** None: each gateway registers its metrics with a registry of its own. */
export const registers: Registry[] = [];

/** Read when metrics are scraped. `aggregator` says what becomes of those of several processes. */
export const gauge = (name: string, help: string, read: () => number, aggregator: Aggregator = 'sum'): Metric =>
  new Gauge({
    name,
    help,
    aggregator,
    registers,
    collect() {
      this.set(read());
    },
  });

/** Series of all values that labels may have are there from the start, since one that begins with 1 has no rate. */
export function counter(name: string, help: string, ...values: readonly Readonly<Record<string, readonly string[]>>[]) {
  const metric = new Counter<string>({ name, help, labelNames: Object.keys(values[0] ?? {}), registers });
  for (const each of values) {
    let series: Record<string, string>[] = [{}];
    for (const [label, all] of Object.entries(each))
      series = series.flatMap((labels) => all.map((value) => ({ ...labels, [label]: value })));
    for (const labels of series) metric.inc(labels, 0);
  }
  return metric;
}

export const histogram = (name: string, help: string, labelNames: string[], buckets: number[]) =>
  new Histogram<string>({ name, help, labelNames, buckets, registers });

const OPEN = '1 while the circuit to the upstream is open.';
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

function instruments({ operations }: Table) {
  const operation = operations.map(({ id }) => id);
  const ofReads = operations.filter(({ method }) => method === 'GET').map(({ id }) => id);
  const made = {
    requests: histogram(
      'portico_request_duration_seconds',
      'From the head of a request to the end of its answer.',
      ['operation', 'status', 'cache'],
      BUCKETS,
    ),
    seconds: histogram(
      'portico_upstream_call_duration_seconds',
      'From sending a call to the end of its answer, or its failure; not of calls that were abandoned.',
      ['operation'],
      BUCKETS.slice(3),
    ),
    calls: counter(
      'portico_upstream_calls_total',
      'Attempts at calls of the upstream, by what became of them, and why they failed.',
      { operation, outcome: CALL_OUTCOMES.filter((one) => one !== 'failed'), reason: [''] },
      { operation, outcome: ['failed'], reason: ['', ...REASONS] },
    ),
    problems: counter('portico_problems_total', 'Problems that clients got, also in overviews and batches.', {
      code: [...ERROR_CODES, OF_UPSTREAM],
    }),
    phases: histogram(
      'portico_phase_seconds',
      'What the time of requests went to. Answers from the cache have no phases.',
      ['phase'],
      BUCKETS,
    ),
    drift: counter('portico_drift_total', 'Fields of answers that did not fit their schemas.', { operation }),
    retries: counter('portico_upstream_retries_total', 'Calls that were made once more.', { operation: ofReads }),
    reads: counter('portico_cache_reads_total', 'Reads, by how the cache came to an answer.', {
      outcome: READ_OUTCOMES,
    }),
    writes: counter('portico_idempotency_total', 'Writes that must not happen twice, by what became of them.', {
      outcome: IDEMPOTENCY_OUTCOMES,
    }),
    refusals: counter(
      'portico_refused_total',
      'Requests and calls that the gateway itself turned away, by the reason.',
      { by: REFUSALS },
    ),
    circuit: new Gauge({ name: 'portico_circuit_open', help: OPEN, aggregator: 'max', registers }),
  };
  for (const phase of PHASES) made.phases.zero({ phase });
  return made;
}

/** Taken from the histogram of requests at a scrape, which it costs some milliseconds; so a request is counted once. */
const totalOf = (requests: Histogram, operations: () => readonly string[]): Metric =>
  new Counter<string>({
    name: 'portico_requests_total',
    help: 'Requests that were answered. Probes are not counted.',
    labelNames: ['operation', 'status'],
    registers,
    async collect() {
      const { values } = await requests.get();
      this.reset();
      for (const operation of operations()) for (const status of STATUS_CLASSES) this.inc({ operation, status }, 0);
      for (const { metricName, labels, value } of values) {
        const { operation, status } = labels;
        if (metricName?.endsWith('_count')) this.inc({ operation, status }, value);
      }
    },
  });

/** The names and help texts of gauges. */
const UNDER_WAY: Readonly<Record<UnderWay, readonly [name: string, help: string]>> = {
  reads: ['reads_under_way', 'Reads under way that equal reads join.'],
  calls: ['upstream_calls_under_way', 'Calls of the upstream under way.'],
  calls_limit: ['upstream_calls_limit', 'How many calls of the upstream may be under way.'],
  waiting_calls: ['upstream_calls_waiting', 'Calls that wait for a slot.'],
  requests: ['requests_under_way', 'Requests under way.'],
  requests_limit: ['requests_limit', 'How many requests may be under way.'],
  connections: ['connections', 'Connections of clients.'],
  connections_limit: ['connections_limit', 'How many connections clients may have.'],
  waits: ['waiting_requests', 'Requests that wait for a change; they are not under way.'],
};
