import { type Metric, Registry } from 'prom-client';
import { type Gauge as UnderWay, type Metrics, SECTION_STATES, STATUS_CLASSES } from '../../../core/metrics.ts';
import type { Scrape } from '../../../routes/health.ts';
import type { Table } from '../../../upstream/table.ts';
import { buildInfo, instruments, UNDER_WAY, WORKER_DEATHS } from './instruments.ts';
import { CONTENT_TYPE, measureProcess, type ReadMetrics, scrapeProcess } from './measured.ts';
import { counted, Counts, gauge } from './series.ts';

/** The metrics of the gateway, of the process and what `others` measure, in Prometheus' format. */
export function promMetrics(
  table: Table,
  others: readonly Metric[],
): Metrics & { readonly scrape: Scrape; readonly measure: ReadMetrics } {
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
    gauge('portico_workers', 'Processes that serve.', () => 1),
    counted(WORKER_DEATHS.name, WORKER_DEATHS.help, () => 0),
  ];
  const metrics = Object.values(own).map((one) => (one instanceof Counts ? one.metric : one));
  for (const metric of [...metrics, ...gauges, ...others]) registry.registerMetric(metric);
  return {
    expect({ operations, sections }) {
      own.total.expect([...operations, '(none)'], STATUS_CLASSES);
      own.sections.expect(sections, SECTION_STATES);
    },
    requestDone: ({ operation, status, cache }, ms) => {
      own.total.add(operation, status);
      own.requests.observe({ operation, status, cache }, ms / 1000);
    },
    callDone({ operation, outcome, reason }, ms) {
      own.calls.inc({ operation, outcome, reason });
      if (outcome !== 'abandoned') own.seconds.observe({ operation }, ms / 1000);
    },
    phaseDone: (phase, ms) => own.phases.observe({ phase }, ms / 1000),
    sectionDone: (section, state) => own.sections.add(section, state),
    problem: (code) => own.problems.inc({ code }),
    drifted: (operation) => own.drift.inc({ operation }),
    retried: (operation) => own.retries.inc({ operation }),
    circuitIs: (state) => void (open = state === 'open' ? 1 : 0),
    readDone: (outcome) => own.reads.inc({ outcome }),
    idempotency: (outcome) => own.writes.inc({ outcome }),
    refused: (by) => own.refusals.inc({ by }),
    watch: (which, read) => void (underWay[which] = read),
    measure: async () => [...(await registry.getMetricsAsJSON()), ...(await measureProcess())],
    scrape: async () => ({
      contentType: CONTENT_TYPE,
      text: (await registry.metrics()) + (await scrapeProcess()),
    }),
  };
}
