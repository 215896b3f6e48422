import {
  AggregatorRegistry,
  collectDefaultMetrics,
  type Metric,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client';
import { type Gauge as UnderWay, type Metrics, STATUS_CLASSES } from '../../../core/metrics.ts';
import type { Scrape } from '../../../routes/health.ts';
import type { Table } from '../../../upstream/table.ts';
import { buildInfo, instruments, UNDER_WAY } from './instruments.ts';
import { Counts, gauge } from './series.ts';

/** Once for all gateways in the process: each time would start a timer and an observer that never end. */
const ofProcess = new Registry();
collectDefaultMetrics({ register: ofProcess });
// A graph shows when a process was started last, of several too.
Object.assign(ofProcess.getSingleMetric('process_start_time_seconds') ?? {}, { aggregator: 'max' });

/** Metrics of one process, as they are sent to another one. */
export type Measured = readonly MetricObjectWithValues<MetricValue<string>>[];

export const measuredOfProcess = (): Promise<Measured> => ofProcess.getMetricsAsJSON();

/** Metrics of several processes, added up. */
export function sumOf(all: readonly Measured[]) {
  const registry = AggregatorRegistry.aggregate(all.map((one) => [...one]));
  return {
    json: (): Promise<Measured> => registry.getMetricsAsJSON(),
    page: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}

/** The metrics of the gateway, of the process and what `others` measure, in Prometheus' format. */
export function promMetrics(
  table: Table,
  others: readonly Metric[],
): Metrics & {
  readonly scrape: Scrape;
  readonly measured: () => Promise<Measured>;
} {
  const registry = new Registry();
  const own = instruments(table);
  const underWay: Partial<Record<UnderWay, () => number>> = {};
  let open = 0;
  const gauges = [
    buildInfo(),
    ...Object.entries(UNDER_WAY).map(([which, [name, help]]) =>
      gauge(`portico_${name}`, help, () => underWay[which as UnderWay]?.() ?? 0),
    ),
    gauge('portico_circuit_open', '1 while the circuit to the upstream is open.', () => open, 'max'),
  ];
  const metrics = Object.values(own).map((one) => (one instanceof Counts ? one.metric : one));
  for (const metric of [...metrics, ...gauges, ...others]) registry.registerMetric(metric);
  return {
    expect: (operations) => own.total.expect([...operations, '(none)'], STATUS_CLASSES),
    requestDone: ({ operation, status, cache }, ms) => {
      own.total.add(operation, status);
      own.requests.observe({ operation, status, cache }, ms / 1000);
    },
    callDone({ operation, outcome, reason }, ms) {
      own.calls.inc({ operation, outcome, reason });
      if (outcome !== 'abandoned') own.seconds.observe({ operation }, ms / 1000);
    },
    phaseDone: (phase, ms) => own.phases.observe({ phase }, ms / 1000),
    problem: (code) => own.problems.inc({ code }),
    drifted: (operation) => own.drift.inc({ operation }),
    retried: (operation) => own.retries.inc({ operation }),
    circuitIs: (state) => void (open = state === 'open' ? 1 : 0),
    readDone: (outcome) => own.reads.inc({ outcome }),
    idempotency: (outcome) => own.writes.inc({ outcome }),
    refused: (by) => own.refusals.inc({ by }),
    watch: (which, read) => void (underWay[which] = read),
    measured: async () => [...(await registry.getMetricsAsJSON()), ...(await measuredOfProcess())],
    scrape: async () => ({
      contentType: ofProcess.contentType,
      text: (await registry.metrics()) + (await ofProcess.metrics()),
    }),
  };
}
