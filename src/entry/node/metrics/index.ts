import { collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { type Gauge as UnderWay, type Metrics, STATUS_CLASSES } from '../../../core/metrics.ts';
import type { Scrape } from '../../../routes/health.ts';
import type { Table } from '../../../upstream/table.ts';
import { buildInfo, instruments, UNDER_WAY } from './instruments.ts';
import { Counts, gauge } from './series.ts';

/** Once for all gateways in the process: each time would start a timer and an observer that never end. */
const ofProcess = new Registry();
collectDefaultMetrics({ register: ofProcess });

/** The metrics of the gateway, of the process and what `others` measure, in Prometheus' format. */
export function promMetrics(table: Table, others: readonly Metric[]): Metrics & { readonly scrape: Scrape } {
  const registry = new Registry();
  const own = instruments(table);
  const underWay: Partial<Record<UnderWay, () => number>> = {};
  let open = 0;
  const gauges = [
    buildInfo(),
    ...Object.entries(UNDER_WAY).map(([which, [name, help]]) =>
      gauge(`portico_${name}`, help, () => underWay[which as UnderWay]?.() ?? 0),
    ),
    gauge('portico_circuit_open', '1 while the circuit to the upstream is open.', () => open),
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
    scrape: async () => ({
      contentType: ofProcess.contentType,
      text: (await registry.metrics()) + (await ofProcess.metrics()),
    }),
  };
}
